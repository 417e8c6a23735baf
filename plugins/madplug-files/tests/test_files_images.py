"""Images of untrusted rows: what is sent to a model, and what is not."""

import base64
import json
import os

import pytest

from madplug import UserError
from madplug_files import Table
from madplug_files.images import kind_of

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
BMP = b"BM" + (54).to_bytes(4, "little") + bytes(8) + (40).to_bytes(4, "little") + bytes(36)
IMAGES = {"png": PNG, "jpeg": b"\xff\xd8\xff\xe0", "gif": b"GIF89a\x01", "webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
          "bmp": BMP}


def table(folder, image, **options):
    (folder / "data").mkdir(exist_ok=True)
    path = folder / "data" / "rows.jsonl"
    path.write_text(json.dumps({"question": "?", "reference": "x", "photo": image}) + "\n", "utf-8")
    return Table(path=path, **{"columns": {"images": "photo"}, **options})


def images(folder, image, **options):
    return next(table(folder, image, **options).samples())[0].images


def refused(folder, image, **options):
    with pytest.raises(UserError) as caught:
        list(table(folder, image, **options).samples())
    said = str(caught.value)
    assert "rows.jsonl: line 1, column 'photo': " in said
    return said


def address(data, kind):
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def test_a_column_called_images_is_not_an_image_unless_the_run_file_says_so(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "?", "reference": "x", "images": ["/proc/self/environ"]}) + "\n")
    assert next(Table(path=path).samples())[0].images == ()


@pytest.mark.parametrize("name", ["/proc/self/environ", "/etc/passwd", "../secret.png", "data/../../secret.png",
                                  "file:///etc/passwd", "link.png", "folder/link.png", "\u0000", "no.png", ".",
                                  "~/x.png", "C:\\x.png"])
def test_only_files_below_the_data_file_s_folder_are_read(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "data" / "folder").symlink_to(tmp_path)
    said = refused(tmp_path, name)
    assert "root:" not in said
    assert base64.b64encode(PNG).decode() not in said


def test_a_link_within_the_folder_is_followed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(PNG)
    (tmp_path / "data" / "b.png").symlink_to("a.png")
    assert images(tmp_path, "b.png") == images(tmp_path, str(tmp_path / "data" / "a.png")) == (address(PNG, "png"),)


def test_another_folder_is_named_by_an_option(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(PNG)
    assert "is not below" in refused(tmp_path, "../photos/a.png")
    assert images(tmp_path, "a.png", image_folder=tmp_path / "photos") == (address(PNG, "png"),)


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "data" / "pipe.png")
    assert "is not a regular file" in refused(tmp_path, "pipe.png")


@pytest.mark.parametrize("content", [b"OPENAI_API_KEY=sk-1", b"", b"BM is how this text begins, and more of it",
                                     b"RIFF", b"\x89PNG", b"GIF86a"])
def test_a_file_that_is_not_an_image_by_its_first_bytes_is_refused(tmp_path, content):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(content)
    assert "is not an image by its first bytes; expected PNG, JPEG, GIF, WebP or BMP" in refused(tmp_path, "a.png")


@pytest.mark.parametrize("kind", IMAGES)
def test_the_kind_is_that_of_the_bytes_and_not_of_the_name(tmp_path, kind):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_bytes(IMAGES[kind])
    assert kind_of(IMAGES[kind]) == f"image/{kind}"
    assert images(tmp_path, "a.txt") == (address(IMAGES[kind], kind),)


def test_a_large_image_is_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(PNG + bytes(2**20))
    assert "is larger than 1 MB; image_mb sets the limit" in refused(tmp_path, "a.png", image_mb=1)
    assert "is larger than 1 MB" in refused(tmp_path, address(PNG + bytes(2**20), "png"), image_mb=1)
    assert images(tmp_path, "a.png")


@pytest.mark.parametrize("name", ["https://example.org/a.png", "http://example.org/?q=1", "HTTPS://example.org/a"])
def test_addresses_are_passed_on_and_not_fetched(tmp_path, name):
    assert images(tmp_path, name) == (name,)


@pytest.mark.parametrize("name", ["https://", "http:///etc/passwd", "https://a b/", "https:x"])
def test_what_only_looks_like_an_address_is_refused(tmp_path, name):
    assert "is not an address" in refused(tmp_path, name)


def test_a_data_address_has_an_image_of_its_kind(tmp_path):
    assert images(tmp_path, address(PNG, "png")) == (address(PNG, "png"),)
    assert "says image/gif, but the image is image/png" in refused(tmp_path, address(PNG, "gif"))
    assert "is not an image by its first bytes" in refused(tmp_path, address(b"secret", "png"))
    assert "is not base64" in refused(tmp_path, "data:image/png;base64,AAAAA")
    for wrong in ("data:image/png,x", "data:text/html;base64,AAAA", "data:", "data:image/png;base64,A A="):
        refused(tmp_path, wrong)


@pytest.mark.parametrize("value", [5, {"path": None}, {"path": "/etc/passwd", "bytes": None}, [["x"]], True])
def test_other_values_are_refused(tmp_path, value):
    refused(tmp_path, value)
