"""What no file of the repository may say."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

# Written so that the patterns do not find themselves.
MACHINE_PATHS = re.compile(r"(?<![\w.:/])/(?:work|root|tmp/[vw]|opt/pypi|opt/wheels)(?![\w-])")
ROOT_FILES = {
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "mkdocs.yml",
    "nodes",  # A link, which another test holds.
    "pyproject.toml",
}
ROOT_FOLDERS = {".ci", "bench", "docs", "examples", "graphloop", "tests"}
PROMISES = re.compile(r"\b(?:TO[D]O|FIX[M]E)\b(?!\(#\d+\))")


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, str]:
    """Return each text file of the repository, committed or about to be, by its path."""
    return {path: text for path in _listed(root) if (text := _text_of(root / path)) is not None}


def test_no_file_names_a_path_of_the_machine(texts: dict[str, str]) -> None:
    """What works at one desk only is not in the repository by intention."""
    assert not list(_findings(texts, MACHINE_PATHS))


def test_the_root_holds_named_files_only(root: Path) -> None:
    """A database that a command left there is committed with the next `git add`."""
    firsts = {path.partition("/")[0] for path in _listed(root) if (root / path).exists()}

    assert firsts == ROOT_FILES | ROOT_FOLDERS


def test_no_file_promises_work_without_an_issue(texts: dict[str, str]) -> None:
    """A promise nobody can find again is a comment that lies a little more each month."""
    assert not list(_findings(texts, PROMISES))


def _findings(texts: dict[str, str], pattern: re.Pattern[str]) -> Iterator[str]:
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                yield f"{path}:{number}: {line.strip()[:100]}"


def _listed(root: Path) -> list[str]:
    git = which("git")
    assert git is not None
    listed = subprocess.run(
        [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.split("\0") if path]


def _text_of(path: Path) -> str | None:
    """Return a file's text, or `None` where there is none: a link, a picture, a deleted file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
