import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hub_server import SHA, Hub as Server  # noqa: I001

from madplug import UserError
from madplug_datasets import Hub
from madplug_datasets.hub import overlap
from madplug_files.sampling import sample_size


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Makes the data set of a local file with these rows; how such files are read is tested with `files.table`."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    path = tmp_path / "rows.jsonl"

    def hub(rows=60, **options):
        if isinstance(rows, int):
            rows = [json.dumps({"question": f"{i}+1?", "answer": str(i + 1), "level": "easy" if i % 3 else "hard"})
                    for i in range(rows)]
        path.write_text("".join(row + "\n" for row in rows))
        return Hub(path=path, **{"columns": {"reference": "answer"}, **options})

    return hub


def ids(data: Hub) -> list[int]:
    return [int(sample.id.rpartition("-")[2]) for sample, _ in data.samples()]


# Local rows

def test_a_row_becomes_a_sample(hub):
    (sample, references), *_ = hub(metadata=["level"], instruction="Add.").samples()
    assert (sample.id, sample.question, references) == ("row-1", "0+1?", ("1",))
    assert sample.metadata == {"level": "hard", "instruction": "Add."}


def test_a_seed_is_an_order_and_a_stratum_has_its_share(hub):
    orders = [ids(hub(shuffle=seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(1, 61))
    assert ids(hub(shuffle=1, limit=5)) == orders[0][:5]
    assert ids(hub(limit=6, stratify="level")) == [1, 2, 3, 4, 5, 6]
    chosen = ids(hub(limit=9, stratify="level", shuffle=1))
    assert (len(chosen), sum(i % 3 == 1 for i in chosen)) == (9, 3)
    assert chosen != sorted(chosen)
    data = hub(limit="90% +- 10%")
    assert len(ids(data)) == data.size() == sample_size(60, 0.9, 0.1)


@pytest.mark.parametrize(("options", "problem"), [
    ({"columns": {"reference": "anser"}}, "has no column 'anser' for the reference; did you mean 'answer'? "
                                          "(it has question, answer, level)"),
    ({"rows": []}, "has no rows"), ({"stratify": "levl"}, "has no column 'levl' to stratify by")])
def test_what_is_wrong_is_told_before_a_study_is_run(hub, options, problem):
    (said,) = hub(**options).check(None)
    assert problem in said


BAD = ['{"question": "a", "answer": "1", "level": "x"}', '{"question": "a", "answer": null, "level": "x"}', "{x",
       '{"question": "b", "answer": "1", "level": {"a": [1]}}', '{"question": "", "answer": "1"}']


@pytest.mark.parametrize("options", [{}, {"shuffle": 1}, {"streaming": True}])
def test_all_problems_of_a_file_are_named_at_once(hub, options):
    data = hub(BAD, **options)
    with pytest.raises(UserError) as caught:
        list(data.samples())
    assert sorted(str(p).removeprefix(f"{data.options.path}: ") for p in caught.value.problems) == [
        "line 2, column 'answer': is empty",
        "line 3: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        "line 5, column 'question': is empty"]
    with pytest.raises(UserError, match="has no rows"):
        list(hub([], **options).samples())


def test_a_changed_file_is_read_again_and_is_other_data(hub):
    data = hub()
    before = data.fingerprint(), len(ids(data))
    hub(61)
    assert (data.fingerprint() != before[0], before[1], len(ids(data))) == (True, 60, 61)


def test_an_image_in_a_row_is_read_below_the_file_s_folder_only(hub, tmp_path):
    (tmp_path / "a.dat").write_bytes(b"\x89PNG\r\n\x1a\n0")

    def images(name):
        data = hub([json.dumps({"question": "?", "answer": "x", "image": name})],
                   columns={"reference": "answer", "images": "image"})
        return next(data.samples())[0].images

    assert images("a.dat")[0].startswith("data:image/png;base64,")
    with pytest.raises(UserError, match="line 1, column 'image': the image '/proc/self/environ' is not below"):
        images("/proc/self/environ")


# Training rows

def test_rows_to_prepare_on_come_from_another_file_and_are_not_limited(hub, tmp_path):
    train = hub(9).options.path.rename(tmp_path / "train.jsonl")
    assert len(list(hub(limit=3, train_path=train).samples("train"))) == 9
    with pytest.raises(UserError, match=r"dataset.train_path: is not set"):
        list(hub().samples("train"))
    with pytest.raises(UserError, match="'train' is the split of the study itself"):
        list(Hub(id="me/sums", split="train").samples("train"))


@pytest.mark.parametrize(("one", "other", "shared"), [
    ("train", "test", False), ("train", "train", True), ("train", "train+validation", True),
    ("train[:10]", "train[10:]", False), ("train[:10]", "train", True), ("train[:10]", "train[:10]", True)])
def test_splits_that_share_rows(one, other, shared):
    assert overlap(one, other) is shared


def test_neither_a_name_nor_a_file():
    assert list(Hub().check(None)) == [
        'needs an id on the hub (id = "owner/name") or a local file (path = ...)']


# The hub: a process of its own, since the library reads its settings once

PROLOGUE = """
import json
from madplug import UserError
from madplug_datasets import Hub
O = dict(id="me/sums", columns={"reference": "answer"})
out = {}
def take(name, f):
    try:
        out[name] = f()
    except UserError as error:
        out[name] = str(error)
"""


def in_process(code: str, home: Path, **env: str) -> dict:
    done = subprocess.run([sys.executable, "-c", PROLOGUE + code + "\nprint(json.dumps(out))"], timeout=120,
                          env={**os.environ, "HF_HOME": str(home), **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def online(home):
    """Everything that is asked of a hub that answers."""
    with Server() as address:
        return in_process("""
take("version", lambda: Hub(**O).fingerprint())
take("rows", lambda: [(s.id, s.question, r[0]) for s, r in Hub(**O).samples()][:2])
take("count", lambda: len(list(Hub(**O).samples())))
take("train", lambda: len(list(Hub(**O).samples("train"))))
take("streamed", lambda: [s.id for s, _ in Hub(**O, streaming=True, limit=3).samples()])
take("drawn", lambda: [s.id for s, _ in Hub(**O, shuffle=1, limit=7).samples()])
take("drawn_stream", lambda: [s.id for s, _ in Hub(**O, shuffle=1, limit=7, streaming=True).samples()])
take("files", lambda: len(list(Hub(**O, files=["train.jsonl"]).samples())))
take("size", lambda: [Hub(**O).size(), Hub(**O, limit="90% +- 10%").size(), Hub(**O, limit=4, streaming=True).size()])
take("split", lambda: list(Hub(**O, split="tset").samples()))
take("config", lambda: list(Hub(**O, config="mian").samples()))
take("revision", lambda: list(Hub(**O, revision="nope").samples()))
take("gated", lambda: list(Hub(id="me/gated").samples()))
take("none", lambda: list(Hub(id="me/none").check(None))[0])
take("name", lambda: Hub(id="a b").fingerprint())
take("column", lambda: list(Hub(id="me/sums").check(None))[0])
""", home, HF_ENDPOINT=address)


@pytest.mark.parametrize(("asked", "answer"), [
    ("version", SHA), ("rows", [["sums-1", "0+1?", "1"], ["sums-2", "1+1?", "2"]]), ("count", 30), ("train", 5),
    ("files", 5), ("streamed", ["sums-1", "sums-2", "sums-3"]), ("size", [30, sample_size(30, 0.9, 0.1), 4]),
    ("split", "dataset.split: 'me/sums' has no split 'tset'; did you mean 'test'? (it has test, train)"),
    ("config", "dataset.config: 'me/sums' has no config 'mian'; did you mean 'main'? (it has main)"),
    ("revision", "dataset.revision: 'me/sums' has no revision 'nope'"),
    ("name", "dataset.id: 'a b' is not the name of a data set; expected owner/name")])
def test_what_a_hub_gives_and_how_a_wrong_name_is_explained(online, asked, answer):
    assert online[asked] == answer


@pytest.mark.parametrize(("asked", "said"), [
    ("none", "there is no data set 'me/none' on the hub, or it is private; in that case set HF_TOKEN"),
    ("gated", "dataset: 'me/gated' is gated, and there is no token: accept its terms"), ("gated", "HF_TOKEN"),
    ("column", "me/sums, test: has no column 'reference' for the reference")])
def test_what_is_missing_or_gated_is_explained_and_a_stream_is_drawn_from_alike(online, asked, said):
    assert said in online[asked]
    assert online["drawn"] == online["drawn_stream"]


def test_without_the_hub_the_cache_is_used_and_nothing_else(online, home):
    nowhere = in_process(f"""
take("version", lambda: Hub(**O).fingerprint())
take("rows", lambda: len(list(Hub(**O).samples())))
take("same", lambda: len(list(Hub(**O, revision="{SHA}").samples())))
take("other", lambda: len(list(Hub(**O, revision="f" * 40).samples())))
take("stream", lambda: len(list(Hub(**O, streaming=True).samples())))
""", home, HF_ENDPOINT="http://127.0.0.1:9")
    assert (nowhere["version"], nowhere["rows"], nowhere["same"]) == (SHA, 30, 30)
    assert f"the cache has 'me/sums' at {SHA}, not at {'f' * 40}" in nowhere["other"]
    assert "can only be streamed" in nowhere["stream"]


def test_a_hub_that_never_answers_is_given_up_within_seconds(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        took = in_process("""
import time, datasets, huggingface_hub
start = time.monotonic()
take("said", lambda: list(Hub(**O).samples()))
out["seconds"] = time.monotonic() - start
""", tmp_path, HF_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert "the hub is out of reach" in took["said"]
    assert took["seconds"] < 20


def test_the_real_hub_is_named_as_out_of_reach_or_answers(tmp_path):
    try:
        socket.create_connection(("huggingface.co", 443), timeout=3).close()
    except OSError:
        pass
    else:
        pytest.skip("the hub can be reached from here")
    start = time.monotonic()
    found = in_process('take("said", lambda: list(Hub(id="openai/gsm8k", config="main").check(None)))', tmp_path)
    assert found["said"] == ["'openai/gsm8k' is not in the local cache and the hub is out of reach; connect, "
                             "or copy the rows here and name the file with path"]
    assert time.monotonic() - start < 60, "most of it is importing the library"
