"""Where weights come from, with small files in the place of large ones."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from madplug import ModelError
from madplug_llamacpp import Chat
from madplug_llamacpp.weights import EXTRAS, Parts, default_cache, found, joined, ways

HERE = Path(__file__).parent.parent
PIECES = [b"GGUF-first", *(b"-%d-" % n for n in range(2, 13))]  # ten and more keep their order


def install(site, number, data, version="1.0", code="raise AssertionError('the package was imported')"):
    """A package as an installer leaves it."""
    package = site / f"fake_weights_part{number}"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    (package / "data" / f"part{number:02}.bin").write_bytes(data)
    info = site / f"fake_weights_part{number}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-weights-part{number}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{package.name}/__init__.py,,\n{package.name}/data/part{number:02}.bin,,\n")


def change(site, pieces):
    for number, data in enumerate(pieces, 1):
        (site / f"fake_weights_part{number}" / "data" / f"part{number:02}.bin").write_bytes(data)


def parts_of(pieces=PIECES, version="1.0"):
    whole = b"".join(pieces)
    return Parts("Fake", "fake-weights-part{}", version, len(pieces), len(whole), hashlib.sha256(whole).hexdigest())


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for number, data in enumerate(PIECES, 1):
        install(folder, number, data)
    return folder


def test_parts_are_joined_in_order_once_and_without_being_imported(site, tmp_path):
    path = joined("fake", parts_of(), tmp_path / "cache")
    assert path.read_bytes() == b"GGUF-first-2--3--4--5--6--7--8--9--10--11--12-"
    assert not [m for m in sys.modules if m.startswith("fake_weights")]
    path.write_bytes(b"GGUF-fir")  # a file cut short is joined again
    assert joined("fake", parts_of(), tmp_path / "cache").read_bytes() == b"".join(PIECES)
    made = path.stat().st_mtime_ns
    for package in site.iterdir():  # the packages are not even looked for
        package.rename(tmp_path / package.name)
    assert (joined("fake", parts_of(), tmp_path / "cache"), path.stat().st_mtime_ns) == (path, made)


def test_changed_data_is_refused_and_nothing_is_left_of_it(site, tmp_path):
    change(site, [PIECES[0], b"-SECOND-"])
    with pytest.raises(ModelError, match=r"SHA-256 .* not .*weights = \"path/to/file.gguf\""):
        joined("fake", parts_of(), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_missing_is_named_with_every_way_to_get_weights(site, tmp_path):
    with pytest.raises(ModelError) as error:
        joined("fake", Parts("Fake", "fake-weights-part{}", "1.0", 14, 9, "0" * 64), tmp_path)
    for said in ("missing: fake-weights-part13==1.0, fake-weights-part14==1.0", "path/to/file.gguf", "hf:owner/repo",
                 "madplug-llamacpp[qwen-0-5b]", "madplug-llamacpp[qwen-1-5b]"):
        assert said in str(error.value)
    with pytest.raises(ModelError, match=re.escape("fake-weights-part1==2.0")):  # another version does not count
        joined("fake", parts_of(version="2.0"), tmp_path)


def test_several_processes_at_once_make_one_file(site, tmp_path):
    big = [bytes([n]) * 750_000 for n in range(12)]
    change(site, big)
    parts = parts_of(big)
    code = (f"import sys; sys.path.insert(0, {str(site)!r}); from pathlib import Path\n"
            "from madplug_llamacpp.weights import Parts, joined\n"
            f"print(joined('fake', {parts!r}, Path({str(tmp_path)!r})))")
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(paths) == 1
    assert hashlib.sha256(Path(paths.pop()).read_bytes()).hexdigest() == parts.sha256
    assert not list(tmp_path.glob(".*"))


def test_what_a_killed_process_left_is_removed_later(site, tmp_path):
    target = joined("fake", parts_of(), tmp_path)
    target.unlink()
    old, new = (tmp_path / f".{target.name}.{end}.part" for end in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    joined("fake", parts_of(), tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_cache_that_cannot_be_written_is_named_with_the_option(site, tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(ModelError, match=r"cache.*cannot be put there.*cache_dir"):
        joined("fake", parts_of(), tmp_path / "cache")


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().parts[-2:] == ("madplug", "weights")


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_every_extra_installs_the_packages_that_are_read(name):
    declared = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(rf"^{name} = \[(.*?)\]", declared, re.M | re.S)
    assert tuple(re.findall(r'"([^"]+)"', block[1])) == EXTRAS[name].requirements


def test_the_licence_of_the_weights_comes_along():
    text = (HERE / "madplug_llamacpp" / "LICENSE-weights.txt").read_text(encoding="utf-8")
    for said in ("Qwen2.5-Coder", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", *EXTRAS):
        assert said in text


@pytest.mark.parametrize(("weights", "said"), [
    ("qwen-0.5b", "did you mean 'qwen-0-5b'?"), ("qwen-0.5b", ways()),
    ("nowhere/model.gguf", "there is no file nowhere/model.gguf; weights come from"),
    ("a" * 5000 + ".gguf", "there is no file aaaa"),
    *((address, "hf:owner/repo/file.gguf") for address in (
        "hf:owner", "hf:owner/repo", "hf:owner/repo/model.bin", "hf:a/b@/c.gguf"))])
def test_weights_that_are_nowhere_are_refused(weights, said):
    with pytest.raises(ValidationError) as error:
        Chat(weights=weights)
    assert said in error.value.errors()[0]["msg"]


def test_a_path_is_relative_to_the_run_file_and_other_weights_than_the_pinned_are_refused(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    options = Chat.Options.model_validate({"weights": "tiny.gguf"}, context={"folder": tmp_path})
    assert options.weights == str(tmp_path / "tiny.gguf")
    right = hashlib.sha256(b"GGUF").hexdigest()
    assert found(options.weights) == found(options.weights, sha256=right.upper()) == tmp_path / "tiny.gguf"
    with pytest.raises(ModelError, match="other weights"):
        found(options.weights, sha256="0" * 64)


def test_a_file_of_the_hub_is_taken_from_its_cache_without_the_network(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    revision, stored = "a" * 40, tmp_path / "models--owner--repo"
    (stored / "snapshots" / revision / "deep").mkdir(parents=True)
    (stored / "snapshots" / revision / "deep" / "tiny.gguf").write_bytes(b"GGUF")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(revision)
    for address in ("hf:owner/repo/deep/tiny.gguf", f"hf:owner/repo@{revision}/deep/tiny.gguf"):
        assert found(address).read_bytes() == b"GGUF"
    with pytest.raises(ModelError, match=r"'hf:owner/repo/other.gguf' cannot be fetched: .*; weights come from"):
        found("hf:owner/repo/other.gguf")


def test_the_hub_is_named_with_its_library_where_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match=re.escape("pip install 'madplug-llamacpp[hub]'")):
        found("hf:owner/repo/file.gguf")
