"""Data sets of inspect_ai in a study."""

import os
from base64 import b64encode
from pathlib import Path

import pytest

from madplug import StudyError, UserError

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed: tox run -e integrations")
from madplug_inspect.dataset import Imported

DOT = b"\x89PNG\r\n\x1a\n0000"
FILE = '''
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText


@task
def capitals(count=3):
    return Task(MemoryDataset([Sample(f"Capital {i}?", choices=["Oslo", "Rome"], target="B", metadata={"level": i})
                               for i in range(count)]))


def chats():
    return MemoryDataset([
        Sample([ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Why?")], target=["a", "b"], id="one"),
        Sample([ChatMessageUser(content=[ContentText(text="What is it?"), ContentImage(image="PLACE")])], id=7,
               choices=["x", "y", "z"], target=["A", "C"])])


def nothing():
    return None


def fails():
    raise ValueError("no such file")
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "dot.png").write_bytes(DOT)
    path = tmp_path / "tasks.py"
    path.write_text(FILE.replace("PLACE", str(tmp_path / "dot.png")))
    return path


def test_the_data_set_of_a_task(file):
    data = Imported(file=file, source="capitals", args={"count": 2})
    rows = list(data.samples())
    assert [(s.id, s.question, s.choices, r) for s, r in rows] == [
        ("1", "Capital 0?", ("Oslo", "Rome"), ("B",)), ("2", "Capital 1?", ("Oslo", "Rome"), ("B",))]
    assert rows[1][0].metadata == {"level": 1}
    assert (data.answers, data.size(), data.has_images) == ("answers.choice", 2, False)
    before = Imported(file=file, source="capitals").fingerprint()
    assert data.fingerprint() != before
    file.write_text(FILE.replace('"level": i', '"level": i + 1'))
    assert Imported(file=file, source="capitals").fingerprint() != before, "it covers metadata"


def test_messages_images_and_several_targets(file):
    data = Imported(file=file, source="chats")
    (one, a_or_b), (seven, both) = data.samples()
    assert (one.id, one.question, a_or_b) == ("one", "Be brief.\n\nWhy?", ("a", "b"))
    assert (seven.question, both) == ("What is it?", ("A, C",))
    assert seven.images == (f"data:image/png;base64,{b64encode(DOT).decode()}",)
    assert data.has_images


def test_its_own_examples_by_module():
    data = Imported(source="inspect_ai.dataset:example_dataset", args={"name": "theory_of_mind"}, limit=5)
    assert data.size() == 5
    assert all(references for _, references in data.samples())


@pytest.mark.parametrize(("options", "said"), [
    ({"source": "capitals"}, "names no module"),
    ({"source": "inspect_ai.dataset:example_dataste"}, "did you mean 'example_dataset'"),
    ({"source": "no_such_module:x"}, "no_such_module cannot be imported"),
    ({"source": "capitols", "file": "tasks.py"}, "did you mean 'capitals'"),
    ({"source": "nothing", "file": "tasks.py"}, "returned NoneType; expected a data set or a task"),
    ({"source": "fails", "file": "tasks.py"}, "'fails' raised ValueError: no such file"),
    ({"source": "x", "file": "other.py"}, "no such Python file")])
def test_a_mistake_is_told_in_words(file, options, said):
    given = {name: file.with_name(value) if name == "file" else value for name, value in options.items()}
    with pytest.raises(UserError, match=said):
        Imported(**given).size()


def test_there_is_no_split_to_prepare_on(file):
    with pytest.raises(StudyError, match="has no split 'train'"):
        list(Imported(file=file, source="capitals").samples("train"))


@pytest.mark.parametrize(("image", "said"), [
    (b"private notes", "dot.png' is not an image by its first bytes"), (os.mkfifo, "dot.png' is not a regular file"),
    (Path.mkdir, "dot.png' cannot be read"), (Path.exists, "dot.png' cannot be read"),
    (DOT + bytes(20 * 2**20), "dot.png' is larger than 20 MB$"),
    ("data:image/png;base64,c2VjcmV0", "is not an image by its first bytes"), ("https://", "is not an address"),
    ("/dev/zero", "is not a regular file"), ("a\\0b", "cannot be read")],
    ids=["text", "pipe", "folder", "missing", "large", "data", "address", "device", "zero"])
def test_only_an_image_is_read_and_sent(file, tmp_path, image, said):
    (tmp_path / "dot.png").unlink()
    if isinstance(image, str):
        file.write_text(FILE.replace("PLACE", image))
    elif isinstance(image, bytes):
        (tmp_path / "dot.png").write_bytes(image)
    else:
        image(tmp_path / "dot.png")
    with pytest.raises(StudyError, match=said):
        list(Imported(file=file, source="chats").samples())


def test_an_image_may_be_a_link_a_relative_path_or_an_address(file, tmp_path, monkeypatch):
    (tmp_path / "link.png").symlink_to("dot.png")
    monkeypatch.chdir(tmp_path)
    sent = f"data:image/png;base64,{b64encode(DOT).decode()}"
    for image, expected in (("link.png", sent), (sent, sent), ("https://example.org/a.png", "https://example.org/a.png")):
        file.write_text(FILE.replace("PLACE", image))
        assert list(Imported(file=file, source="chats").samples())[1][0].images == (expected,)
