"""Questions from text files."""

import hashlib

from pydantic import Field

from madplug import Dataset, Options, RunPath, Sample, UserError, hookimpl


class Texts(Dataset):
    """A question per file: its text is the question, its last line `Answer: ...` the reference.

    The files of the folder `path` are read in the order of their names, those of a subfolder as another split; a
    file's name is the sample's id.
    """

    name = "texts"
    answers = "answers.text"

    class Options(Options):
        """Options of `folder.texts`."""

        path: RunPath = Field(description="the folder; a relative one is relative to the run file")
        glob: str = Field(default="*.txt", min_length=1, description="which files")

    def samples(self, split=None):
        """One file after the other."""
        for file in self.files(split):
            question, _, answer = file.read_text(encoding="utf-8").rstrip().rpartition("\nAnswer:")
            if not question:
                raise UserError(f"{file}: has no line that begins with 'Answer:'; add one at its end")
            yield Sample(file.stem, question.strip()), (answer.strip(),)

    def files(self, split):
        """The files in order."""
        return sorted((self.options.path / split if split else self.options.path).glob(self.options.glob))

    def size(self):
        """The number of files."""
        return len(self.files(None))

    def fingerprint(self):
        """A hash of names and contents."""
        digest = hashlib.sha256()
        for file in self.files(None):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
        return digest.hexdigest()

    def check(self, cell):
        """An empty folder is found before anything runs."""
        if not self.files(None):
            yield f"{self.options.path} has no files '{self.options.glob}'"


@hookimpl
def madplug_register_datasets():
    """Register data sets."""
    return [Texts]
