"""Mistyped paths: whether a word was meant as one, and what there is in its place."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from ..errors import ConfigError

__all__ = ["not_found", "suspect"]

TOPOLOGIES = (".yaml", ".yml", ".json")
SUFFIXES = (".py", *TOPOLOGIES)
TARGETS = f"a directory, a .py file, or a topology ({', '.join(TOPOLOGIES)})"
SHOWN_MAX = 10


def suspect(text: str) -> bool:
    """Whether `text`, which names nothing, looks like a mistyped path: no blank, and path-like."""
    if any(one.isspace() for one in text):
        return False
    if "/" in text or "\\" in text or text.startswith(".") or text.endswith(SUFFIXES):
        return True
    return _is_link(Path(text)) or bool(get_close_matches(text, _targets(Path())))


def not_found(text: str, words: Iterable[str] = (), *, expected: str = TARGETS) -> ConfigError:
    """Return the error for a path that is not there; it names what is.

    Args:
        text: what was typed.
        words: what could have been typed instead of a path.
        expected: what should have been there.
    """
    missing, here, rest = Path(text).name, Path(text).parent, Path()
    while not here.is_dir():
        rest, missing, here = missing / rest, here.name, here.parent
    topologies = _topologies(here) if text.endswith(TOPOLOGIES) else []
    targets = {name: here / name for name in (*topologies, *_targets(here))}
    names = list(targets)
    shown = [str(path) for path in targets.values()][:SHOWN_MAX]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    there = (
        f"Found here: {', '.join(shown)}{more}."
        if shown
        else f"Nothing like it is in {str(here)!r}."
    )
    if close := get_close_matches(missing, [*words, *names], n=1):
        # The whole path, to be typed as it is: a mere name would be taken for a question.
        path = targets.get(close[0], Path(close[0]))
        meant = path / rest if (path / rest).exists() else path
        there = f"Did you mean {str(meant)!r}? {there}"
    found = "a link that leads nowhere" if _is_link(Path(text)) else "nothing of that name"
    return ConfigError(f"{text}: expected {expected}, found {found}. {there}")


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # Too long for a name.
        return False


def _topologies(folder: Path) -> list[str]:
    """Return the files in `folder` that may be topologies."""
    return sorted(one.name for one in folder.iterdir() if one.suffix in TOPOLOGIES)


def _targets(folder: Path) -> list[str]:
    """Return the directories and .py files in `folder` that are not hidden."""
    return sorted(
        one.name
        for one in folder.iterdir()
        if not one.name.startswith((".", "_"))
        and (one.is_dir() or (one.suffix == ".py" and one.is_file()))
    )
