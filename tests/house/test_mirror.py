"""Every room of the package has a folder of tests that goes by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def test_every_room_has_its_folder_of_tests(root: Path, trees: Mapping[str, object]) -> None:
    """A reader who changes a room finds the tests to run under the same name."""
    rooms = {Path(path).parts[1] for path in trees if len(Path(path).parts) > 2}
    folders = {path.name for path in (root / "tests/unit").iterdir() if any(path.glob("test_*.py"))}

    assert sorted(rooms) == sorted(folders)
