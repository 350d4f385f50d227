"""Bytes as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.topology.problems import Complaints, Misread
from graphloop.topology.source import SIZE_MAX, bytes_of, text_of


def test_a_byte_order_mark_is_left_out() -> None:
    """Some editors write one; it is no part of the text."""
    assert "a: 1" == text_of(b"\xef\xbb\xbfa: 1", Complaints("a"))


def test_no_more_is_read_than_may_stand_there(tmp_path: Path) -> None:
    """A file of ten megabytes costs the memory of one."""
    (tmp_path / "a").write_bytes(b"x" * 10 * SIZE_MAX)

    assert SIZE_MAX + 1 == len(bytes_of(tmp_path / "a", Complaints("a")))


def test_what_is_no_file_is_told_apart(tmp_path: Path) -> None:
    """A folder is not a missing file."""
    complaints = Complaints("a")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(Misread):
            bytes_of(path, complaints)

    assert ["is a folder, not a file.", "there is no such file."] == [
        one.found for one in complaints.problems
    ]
