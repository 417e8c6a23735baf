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


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


def rows(folder: Path, count: int = 60, name: str = "rows.jsonl", **more) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps({
        "question": f"{i}+1?", "answer": str(i + 1), "level": "hard" if i % 3 == 0 else "easy", **more}) + "\n"
        for i in range(count)), "utf-8")
    return path


def hub(path: Path, **options) -> Hub:
    return Hub(path=path, **{"columns": {"reference": "answer"}, **options})


def ids(data: Hub) -> list[int]:
    return [int(sample.id.rpartition("-")[2]) for sample, _ in data.samples()]


# Local rows

def test_a_row_becomes_a_sample(tmp_path):
    (sample, references), *_ = hub(rows(tmp_path), metadata=["level"]).samples()
    assert (sample.id, sample.question, sample.metadata, references) == ("row-1", "0+1?", {"level": "hard"}, ("1",))


@pytest.mark.parametrize("options", [{}, {"limit": 7}, {"shuffle": 3}, {"shuffle": 3, "limit": 7}, {"stratify": "level",
                         "limit": 9}, {"stratify": "level", "limit": 9, "shuffle": 1}, {"limit": "90% +- 10%"}])
def test_streamed_or_not_the_rows_are_the_same(tmp_path, options):
    path = rows(tmp_path)
    assert ids(hub(path, **options)) == ids(hub(path, streaming=True, **options))


def test_a_seed_is_an_order(tmp_path):
    path = rows(tmp_path)
    assert ids(hub(path, shuffle=1)) != ids(hub(path, shuffle=2))
    assert sorted(ids(hub(path, shuffle=1))) == list(range(1, 61))
    assert ids(hub(path, shuffle=1, limit=5)) == ids(hub(path, shuffle=1))[:5]


def test_a_wrong_column_is_named_with_the_nearest(tmp_path):
    (said,) = hub(rows(tmp_path), columns={"reference": "anser"}).check(None)
    assert "has no column 'anser' for the reference; did you mean 'answer'?" in said
    assert "(it has question, answer, level)" in said


def test_csv_tsv_and_parquet(tmp_path):
    import pyarrow
    from pyarrow.parquet import write_table

    (tmp_path / "rows.csv").write_text("question,answer\n1+1?,2\n")
    (tmp_path / "rows.tsv").write_text("question\tanswer\n1+1?\t2\n")
    write_table(pyarrow.table({"question": ["1+1?"], "answer": ["2"]}), tmp_path / "rows.parquet")
    for ending in ("csv", "tsv", "parquet"):
        ((sample, references),) = hub(tmp_path / f"rows.{ending}").samples()
        assert (sample.question, references) == ("1+1?", ("2",))


@pytest.mark.parametrize(("name", "content", "said"), [
    ("rows.txt", "x", "has the ending '.txt'"), ("rows.jsonl", "", "has no rows"),
    ("rows.jsonl", "{not json\n", "line 1: is not JSON"),
    ("othr.jsonl", None, "no such file; did you mean 'other.jsonl'"),
    ("rows.jsonl", '{"question": "a", "answer": "1"}\n{"question": "why?", "answer": null}\n',
     "line 2, column 'answer': is empty")])
def test_a_file_that_cannot_be_read(tmp_path, name, content, said):
    rows(tmp_path, 1, "other.jsonl")
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=said):
        list(hub(tmp_path / name).samples())


def test_a_changed_file_is_read_again_and_is_other_data(tmp_path):
    path = rows(tmp_path)
    data = hub(path)
    before = data.fingerprint()
    assert len(ids(data)) == 60
    rows(tmp_path, count=61)
    assert len(ids(data)) == 61
    assert data.fingerprint() != before


def test_images_become_addresses(tmp_path):
    png = b"\x89PNG\r\n\x1a\n0"
    (tmp_path / "a.dat").write_bytes(png)
    path = rows(tmp_path, 1, image="a.dat")
    ((sample, _),) = hub(path, columns={"reference": "answer", "images": "image"}).samples()
    assert sample.images[0].startswith("data:image/png;base64,")
    ((sample, _),) = hub(rows(tmp_path, 1, "b.jsonl", image="https://x.org/a.png"),
                         columns={"reference": "answer", "images": "image"}).samples()
    assert sample.images == ("https://x.org/a.png",)


def test_images_of_the_hub_are_their_stored_bytes(tmp_path):
    import datasets
    Image = pytest.importorskip("PIL.Image")

    data = datasets.Dataset.from_dict(
        {"question": ["what?"], "answer": ["red"], "image": [Image.new("RGB", (2, 2), "red")]},
        features=datasets.Features({"question": datasets.Value("string"), "answer": datasets.Value("string"),
                                    "image": datasets.Image()}))
    data.to_parquet(tmp_path / "rows.parquet")
    ((sample, _),) = hub(tmp_path / "rows.parquet", columns={"reference": "answer", "images": "image"}).samples()
    assert sample.images[0].startswith("data:image/png;base64,")


def test_a_path_in_a_row_is_read_below_the_file_s_folder_only(tmp_path):
    path = rows(tmp_path, 1, image="/proc/self/environ")
    with pytest.raises(UserError, match="line 1, column 'image': the image '/proc/self/environ' is not below"):
        list(hub(path, columns={"reference": "answer", "images": "image"}).samples())
    path = rows(tmp_path, 1, images=["/proc/self/environ"])
    assert next(hub(path).samples())[0].images == ()


# Mistakes far down

BAD = ['{"question": "a", "answer": "1", "level": "x"}', '{"question": "a", "answer": null, "level": "x"}', "{x",
       '{"question": "b", "answer": "1", "level": {"a": [1]}}', '{"question": "", "answer": "1"}']


@pytest.mark.parametrize("options", [{}, {"shuffle": 1}, {"streaming": True}])
def test_all_problems_of_a_file_are_named_at_once(tmp_path, options):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(BAD) + "\n")
    with pytest.raises(UserError) as caught:
        list(hub(path, **options).samples())
    assert sorted(str(p).removeprefix(f"{path}: ") for p in caught.value.problems) == [
        "line 2, column 'answer': is empty",
        "line 3: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        "line 5, column 'question': is empty"]


def test_ragged_csv_rows_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbfquestion,answer\na,1\nb\nc,\xff\n")
    with pytest.raises(UserError) as caught:
        list(hub(path).samples())
    assert [p.place.rpartition(": ")[2] for p in caught.value.problems] == ["line 3", "line 4"]


def test_texts_that_look_like_dates_stay_texts(tmp_path):
    path = rows(tmp_path, 1)
    path.write_text('{"question": "When?", "answer": "2024-05-01"}\n')
    assert next(hub(path).samples())[1] == ("2024-05-01",)


def test_dates_and_decimals_of_parquet_are_kept_as_text(tmp_path):
    import datetime
    import decimal

    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"question": ["1+1?"], "answer": ["2"], "day": [datetime.datetime(2024, 5, 1)],
                               "cost": [decimal.Decimal("1.50")], "none": [float("nan")]}), tmp_path / "rows.parquet")
    ((sample, _),) = hub(tmp_path / "rows.parquet", metadata=["day", "cost", "none"]).samples()
    assert sample.metadata == {"day": "2024-05-01T00:00:00", "cost": "1.50", "none": None}


# Training rows

def test_rows_to_prepare_on_come_from_another_file_and_are_not_limited(tmp_path):
    data = hub(rows(tmp_path), limit=3, train_path=rows(tmp_path, 9, "train.jsonl"))
    assert len(list(data.samples("train"))) == 9
    with pytest.raises(UserError, match=r"dataset.train_path: is not set"):
        list(hub(rows(tmp_path)).samples("train"))


def test_the_study_s_own_split_is_not_prepared_on():
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
take("none", lambda: list(Hub(id="me/none").check(None)))
take("name", lambda: Hub(id="a b").fingerprint())
take("column", lambda: list(Hub(id="me/sums").check(None)))
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


def test_a_stream_of_the_hub_is_drawn_from_alike(online):
    assert online["drawn"] == online["drawn_stream"]


def test_a_data_set_that_is_missing_or_gated_is_explained(online):
    assert "there is no data set 'me/none' on the hub, or it is private; in that case set HF_TOKEN" in online["none"][0]
    assert online["gated"].startswith("dataset: 'me/gated' is gated, and there is no token: accept its terms")
    assert "HF_TOKEN" in online["gated"]


def test_a_wrong_column_on_the_hub_is_named(online):
    assert "me/sums, test: has no column 'reference' for the reference" in online["column"][0]


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
