"""Images of untrusted rows: what is sent to a model, and what is not."""

import base64
import json
import os

import pytest

from madplug import UserError
from madplug_files import Table

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
BMP = b"BM" + (54).to_bytes(4, "little") + bytes(8) + (40).to_bytes(4, "little") + bytes(36)
IMAGES = {"png": PNG, "jpeg": b"\xff\xd8\xff\xe0", "gif": b"GIF89a\x01", "webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
          "bmp": BMP}


@pytest.fixture
def data(tmp_path):
    """The folder of the data file."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def images(data, image, **options):
    path = data / "rows.jsonl"
    path.write_text(json.dumps({"question": "?", "reference": "x", "images": image}) + "\n", "utf-8")
    return next(Table(path=path, **{"columns": {"images": "images"}, **options}).samples())[0].images


def refused(data, image, **options):
    with pytest.raises(UserError) as caught:
        images(data, image, **options)
    said = str(caught.value)
    assert "rows.jsonl: line 1, column 'images': " in said
    return said


def address(data, kind="png"):
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("name", ["/proc/self/environ", "/etc/passwd", "../secret.png", "data/../../secret.png",
                                  "file:///etc/passwd", "link.png", "folder/link.png", "\u0000", "no.png", ".",
                                  "~/x.png", "C:\\x.png"])
def test_only_files_below_the_data_file_s_folder_are_read(data, name):
    (data.parent / "secret.png").write_bytes(PNG)
    (data / "link.png").symlink_to(data.parent / "secret.png")
    (data / "folder").symlink_to(data.parent)
    said = refused(data, name)
    assert "root:" not in said
    assert base64.b64encode(PNG).decode() not in said
    assert images(data, name, columns={}) == (), "a column is of images only if the run file says so"


def test_a_link_within_the_folder_is_followed_and_another_folder_is_named_by_an_option(data):
    (data / "a.png").write_bytes(PNG)
    (data / "b.png").symlink_to("a.png")
    assert images(data, "b.png") == images(data, str(data / "a.png")) == (address(PNG),)
    photos = data.parent / "photos"
    photos.mkdir()
    (photos / "c.png").write_bytes(PNG)
    assert "is not below" in refused(data, "../photos/c.png")
    assert images(data, "c.png", image_folder=photos) == (address(PNG),)


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(data):
    os.mkfifo(data / "pipe.png")
    assert "is not a regular file" in refused(data, "pipe.png")


@pytest.mark.parametrize("content", [b"OPENAI_API_KEY=sk-1", b"", b"BM is how this text begins, and more of it",
                                     b"RIFF", b"\x89PNG", b"GIF86a"])
def test_a_file_that_is_not_an_image_by_its_first_bytes_is_refused(data, content):
    (data / "a.png").write_bytes(content)
    assert "is not an image by its first bytes; expected PNG, JPEG, GIF, WebP or BMP" in refused(data, "a.png")


@pytest.mark.parametrize("kind", IMAGES)
def test_the_kind_is_that_of_the_bytes_and_not_of_the_name(data, kind):
    (data / "a.txt").write_bytes(IMAGES[kind])
    assert images(data, "a.txt") == (address(IMAGES[kind], kind),)


def test_a_large_image_is_refused(data):
    (data / "a.png").write_bytes(PNG + bytes(2**20))
    assert "is larger than 1 MB; image_mb sets the limit" in refused(data, "a.png", image_mb=1)
    assert "is larger than 1 MB" in refused(data, address(PNG + bytes(2**20)), image_mb=1)
    assert images(data, "a.png")


@pytest.mark.parametrize("name", ["https://example.org/a.png", "http://example.org/?q=1", "HTTPS://example.org/a",
                                  address(PNG)])
def test_addresses_are_passed_on_and_not_fetched(data, name):
    assert images(data, name) == (name,)


@pytest.mark.parametrize(("value", "said"), [
    *((name, "is not an address") for name in ("https://", "http:///etc/passwd", "https://a b/", "https:x")),
    (address(PNG, "gif"), "says image/gif, but the image is image/png"),
    (address(b"secret"), "is not an image by its first bytes"), ("data:image/png;base64,AAAAA", "is not base64"),
    *((wrong, "is not of the form") for wrong in (
        "data:image/png,x", "data:text/html;base64,A A=", "data:", "data:image/png;base64,A A=")),
    *((value, "the image is") for value in (5, {"path": None}, [["x"]], True)),
    ({"path": "/etc/passwd", "bytes": None}, "is not below")])
def test_what_only_looks_like_an_image_is_refused(data, value, said):
    assert said in refused(data, value)
