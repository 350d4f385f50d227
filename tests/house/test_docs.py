"""The two tables of docs/ name tests that exist, and every row of what they answer to."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "contract.md"
SEEDS = ROOT / "docs" / "seeds.md"
PAGES = (CONTRACT, SEEDS)

REFERENCE = re.compile(r"`((?:tests/)?[\w/]+\.py)::(\w+)`")
ROWS = {"L": 47, "T": 40, "A": 38, "S": 32, "W": 27, "R": 17, "D": 25}
RESOLUTIONS = 58
PROPERTIES = 16
EXCUSES = ("not ours:", "open:")


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the functions and classes of a test file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return frozenset(names)


def rows_of(page: Path) -> list[list[str]]:
    """Return the cells of every row of a page's tables, headers left out."""
    lines = page.read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in tables]


def answered(row: list[str]) -> bool:
    """Whether a row names a test, or says why it does not."""
    last = row[-1]
    return bool(REFERENCE.search(last)) or any(excuse in last for excuse in EXCUSES)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_named_test_exists(page: Path) -> None:
    """A promise whose test was renamed away is a promise no longer."""
    named = REFERENCE.findall(page.read_text(encoding="utf-8"))

    missing = [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    assert [] == missing
    assert len(named) > 40


def test_every_row_of_the_contract_is_listed_once() -> None:
    """None is forgotten, and none has two answers."""
    expected = [f"{letter}{n:02}" for letter, count in ROWS.items() for n in range(1, count + 1)]
    expected += [f"§9.{number}" for number in range(1, RESOLUTIONS + 1)]
    expected += [f"P{number:02}" for number in range(1, PROPERTIES + 1)]

    listed = Counter(row[0] for row in rows_of(CONTRACT) if row[0] not in {"id", "---"})
    assert Counter(expected) == listed


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_row_names_a_test_or_a_reason(page: Path) -> None:
    """An empty cell would be a silent no."""
    headers = {"id", "in the seed", "---"}
    rows = [row for row in rows_of(page) if row[0] not in headers]

    assert [] == [row[0] for row in rows if not answered(row)]


def test_the_page_about_own_stores_names_each_ability() -> None:
    """A protocol that the page leaves out is found by nobody."""
    tree = ast.parse((ROOT / "graphloop/stores/base.py").read_text("utf-8"))
    page = (ROOT / "docs/how-to/own-store.md").read_text("utf-8")

    for each in tree.body:
        if isinstance(each, ast.ClassDef) and each.decorator_list:
            functions = ast.FunctionDef, ast.AsyncFunctionDef
            methods = [one.name for one in each.body if isinstance(one, functions)]
            told = ", ".join(f"`{name}`" for name in methods)
            assert f"| `{each.name}` | {told} |" in page
