"""The functions that make media parts: the first bytes decide the type."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.media import FileId, Inline, MediaPart, Url, audio, file, image, received, video
from tests.strategies import wrong

PNG = b"\x89PNG\r\n\x1a\n rest"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
MP4 = b"\x00\x00\x00\x20ftypisom\x00"
WEBM = b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm"
PDF = b"%PDF-1.7\n"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0 rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"BM\x36\x00\x0c\x00\x00\x00\x00\x00", "image/bmp"),
        (b"BMW is a maker of cars", "text/plain"),
        (b"II*\0 rest", "image/tiff"),
        (b"\0\0\0\x18ftypheic", "image/heic"),
        (b"\0\0\0\x18ftypavif", "image/avif"),
        (WAV, "audio/wav"),
        (b"ID3\x04 rest", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"),
        (b"fLaC rest", "audio/flac"),
        (b"OggS\0\x02 vorbis", "audio/ogg"),
        (b"OggS\0\x02 \x80theora", "video/ogg"),
        (b"FORM\0\0\0\0AIFF", "audio/aiff"),
        (b"\0\0\0\x1cftypM4A \0", "audio/mp4"),
        (MP4, "video/mp4"),
        (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
        (WEBM, "video/webm"),
        (b"\x1aE\xdf\xa3 matroska", "video/x-matroska"),
        (b"RIFF\x24\x00\x00\x00AVI LIST", "video/x-msvideo"),
        (PDF, "application/pdf"),
        (b"\n\n  %PDF-1.4", "application/pdf"),
        (b"\xef\xbb\xbf%PDF-1.4", "application/pdf"),
        (b"\xff junk %PDF-1.4", "application/pdf"),
        (b"A PDF begins with %PDF-1.7.", "text/plain"),
        (b"PK\x03\x04 rest", "application/zip"),
        ("Füße".encode(), "text/plain"),
        (b'{"a": 1}', "text/plain"),
    ],
)
def test_the_first_bytes_decide_the_type(data: bytes, media_type: str) -> None:
    assert MediaPart(media_type, Inline(data)) == file(data)


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("scan.pdf", PNG, "image/png"),
        ("a.csv", b"a,b\n", "text/csv"),
        ("a.csv", PDF, "application/pdf"),
        ("a.json", b"{}", "application/json"),
        ("A.MD", b"# A", "text/markdown"),
        ("a.png", b"no picture", "text/plain"),
        ("a.svg", b"<svg/>", "image/svg+xml"),
        ("a.bin", b"PK\x03\x04", "application/zip"),
    ],
)
def test_a_name_makes_a_type_more_exact_and_never_decides(
    tmp_path: Path, name: str, data: bytes, media_type: str
) -> None:
    """A PDF that is called `a.csv` is a PDF; a text that is called `a.png` is no picture."""
    path = tmp_path / name
    path.write_bytes(data)

    assert MediaPart(media_type, Inline(data), name) == file(path)


def test_an_office_document_is_told_by_its_bytes_and_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with ZipFile(path, "w") as document:
        document.writestr("word/document.xml", "<w/>")

    assert file(path).media_type.endswith("wordprocessingml.document")


def test_urls_and_uploaded_files_are_taken_as_they_are() -> None:
    assert MediaPart("image/*", Url("https://x/a")) == image("https://x/a")
    assert MediaPart("audio/*", FileId("f")) == audio(FileId("f"))
    assert MediaPart("video/mp4", Url("gs://b/a")) == video("gs://b/a", "video/mp4")
    assert MediaPart("application/pdf", Url("https://x/a")) == file(
        "https://x/a", "application/pdf"
    )
    assert MediaPart("image/png", Inline(b"\0\0\0")) == image("data:image/png;base64,AAAA")
    assert MediaPart("image/png", Inline(PNG), "a") == image(Inline(PNG), name="a")


def test_containers_of_sound_or_video_are_what_the_caller_says() -> None:
    """Their first bytes are the same."""
    assert "audio/webm" == audio(WEBM).media_type
    assert "audio/mp4" == audio(MP4).media_type
    assert "video/mp4" == video(MP4).media_type


@pytest.mark.parametrize(
    ("given", "media_type"),
    [
        ("audio/mp3", "audio/mpeg"),
        ("AUDIO/X-WAV", "audio/wav"),
        ("audio/flac", "audio/flac"),
        ("audio/ogg; codecs=opus", "audio/ogg"),
    ],
)
def test_a_type_of_another_spelling_becomes_the_usual_one(given: str, media_type: str) -> None:
    assert media_type == audio(b"sound", given).media_type


@pytest.mark.parametrize(
    ("told", "data", "name", "media_type"),
    [
        ("image/jpg", b"\xff\xd8\xff\xe0", "", "image/jpeg"),
        ("IMAGE/PNG", PNG, "", "image/png"),
        ("image/png", b"\xff\xd8\xff\xe0", "", "image/jpeg"),
        ("application/octet-stream", PDF, "", "application/pdf"),
        ("application/octet-stream", b"a,b\n", "a.csv", "text/csv"),
        ("application/octet-stream", b"\0\1", "a.bin", "application/octet-stream"),
        ("", b"\0\1", "", "application/octet-stream"),
        ("picture", b"\0\1", "", "application/octet-stream"),
        ("text/plain; charset=utf-8", b"hi", "", "text/plain"),
        ("application/json", b"{}", "", "application/json"),
        ("audio/webm", WEBM, "", "audio/webm"),
        ("image/svg+xml", b"<svg/>", "", "image/svg+xml"),
    ],
)
def test_media_of_another_program_have_the_type_of_their_bytes(
    told: str, data: bytes, name: str, media_type: str
) -> None:
    """Models' servers refuse a type of another spelling, and one that differs from the bytes."""
    assert MediaPart(media_type, Inline(data), name) == received(data, told, name)


def test_fields_of_one_wire_are_kept() -> None:
    assert {"detail": "low"} == json.loads(image(PNG, extra={"detail": "low"}).extra)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: image(PDF), "expected media of type image/…, found 'application/pdf'. Fix: use f"),
        (lambda: audio(PNG), "expected media of type audio/…, found 'image/png'. Fix: use image("),
        (lambda: video(WAV), "Fix: use audio("),
        (lambda: file(b"\x00\x01\x02"), "expected bytes of a known type, found b'\\x00\\x01\\x02'"),
        (lambda: file(b"\xff\xfe\x00"), "Fix: name the type with `media_type`"),
        (lambda: file(b""), "expected some bytes, found none"),
        (lambda: file("scan.pdf"), "expected a URL, found 'scan.pdf'. Fix: for a file, give Path("),
        (lambda: file("data:image/png,x"), "expected 'data:<type>;base64,…', found"),
        (lambda: file("https://x"), "`media_type`: expected the type of what Url(url='https://x')"),
        (lambda: file(Path("/no/such.pdf")), "found '/no/such.pdf': No such file"),
        (lambda: file(PDF, "pdf"), "expected a type such as 'application/pdf', found 'pdf'"),
        (lambda: image(PNG, "image/jpeg"), "expected 'image/png', which the first bytes tell, fo"),
        (lambda: file(PDF, "text/csv"), "`media_type`: expected 'application/pdf', which the fir"),
        (lambda: file(wrong(5)), "expected a URL, a Path, bytes or a FileId, found int"),
    ],
)
def test_what_is_no_media_is_refused_with_the_fix(make: object, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrong(make)()

    assert found in str(caught.value)


@given(st.binary())
def test_each_byte_string_has_a_type_or_is_refused(data: bytes) -> None:
    """No bytes crash the recognition, and none are given a type of which wires know nothing."""
    try:
        part = file(data)
    except ConfigError:
        return
    assert "/" in part.media_type
    assert Inline(data) == part.source
