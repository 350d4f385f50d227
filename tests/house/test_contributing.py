"""Each path and each name of code that CONTRIBUTING.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

PLACEHOLDERS = frozenset({"NAME_command"})


def _is_path(word: str) -> bool:
    return "/" in word or word.endswith((".py", ".md", ".yml"))


def _spans(root: Path) -> list[str]:
    page = (root / "CONTRIBUTING.md").read_text("utf-8")
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    return [span for span in spans if " " not in span]


def test_every_path_exists(root: Path) -> None:
    """A path may leave out the folders that the same row names before it."""
    words = [word.rstrip("/") for word in _spans(root) if _is_path(word)]
    given = [word for word in words if "NAME" not in word]
    rooms = [root / name for name in ("graphloop", "tests", "docs", ".ci")]
    files = [*root.glob("*"), *[path for room in rooms for path in room.rglob("*")]]
    known = [path.relative_to(root).as_posix() for path in files]
    ends = {f"/{path}"[at:] for path in known for at in range(len(path)) if f"/{path}"[at] == "/"}

    assert [] == [word for word in given if f"/{word}" not in ends]
    assert len(given) > 40


def test_every_name_is_in_the_code(root: Path) -> None:
    """A name that was renamed away leads a stranger nowhere."""
    files = [
        *(root / "graphloop").rglob("*.py"),
        *(root / "tests" / "house").glob("test_ratchets.py"),
    ]
    words = set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in files)))
    names = [name for name in _spans(root) if re.fullmatch(r"@?[A-Za-z_][\w.]*[=]?", name)]
    named = [
        part
        for name in names
        if not _is_path(name) and name not in PLACEHOLDERS
        for part in re.findall(r"\w+", name)
    ]

    assert [] == [part for part in named if part not in words]
    assert len(named) > 20
