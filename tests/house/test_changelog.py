"""The changelog is read by users who look for one line: each entry is one, and short."""

from __future__ import annotations

from pathlib import Path

WORDS_MAX = 25


def test_each_entry_of_the_changelog_is_one_short_line(root: Path) -> None:
    """An entry of a hundred words hides what it says; several changes are several entries."""
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    entries = lines[lines.index("## Unreleased") :]

    assert not [
        line for line in entries if line.strip() and not line.startswith(("- ", "## ", "### "))
    ]
    assert not [line for line in entries if len(line.removeprefix("- ").split()) > WORDS_MAX]
    assert len(set(entries) - {""}) == len([line for line in entries if line])
