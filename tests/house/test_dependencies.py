"""docs/dependencies.md says what pyproject.toml asks for and what the code imports."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path

import pytest

MODULES = {
    "PyYAML": "yaml",
    "a2a-sdk": "a2a",
    "fpdf2": "fpdf",
    "opentelemetry-api": "opentelemetry",
}
"""Modules that are not named like their package."""
PROGRAMS = {"graphviz-pure"}
"""Packages that are started, not imported."""
CONTRIBUTORS = {"dev", "dev-temporal", "bench", "docs"}
"""Extras that no user installs."""
ROOMS_MAX = 6
"""How many rooms the page names; of more it says `most rooms`."""
NAMED_MAX, OWN_MAX = 11, 9  # aim 10 and 9: docs/decisions/2026-11-28-eleven-names-nine-installs.md
NAME = re.compile(r"[\w-]+")


@pytest.fixture(scope="module")
def project(root: Path) -> Mapping[str, object]:
    """Return the table `project` of pyproject.toml."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    found: Mapping[str, object] = tomllib.loads(text)["project"]
    return found


@pytest.fixture(scope="module")
def page(root: Path) -> Mapping[str, list[list[str]]]:
    """Return the rows of each table of the page, by the heading above it."""
    text = (root / "docs/dependencies.md").read_text(encoding="utf-8")
    return {
        section.partition("\n")[0]: [
            [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
            for line in section.splitlines()
            if line.startswith("| `")
        ]
        for section in text.split("## ")[1:]
    }


def test_the_page_lists_each_dependency(
    project: Mapping[str, list[str]], page: Mapping[str, list[list[str]]]
) -> None:
    """A package without a reason is a package that nobody dares to remove."""
    assert names(project["dependencies"]) == [row[0] for row in page["Always installed"]]


def test_few_packages_are_installed_for_the_project_alone(
    project: Mapping[str, list[str]],
) -> None:
    """A package that another dependency brings along costs its line, and no installation."""
    named = names(project["dependencies"])
    brought = {
        package
        for each in named
        for package in names([want for want in requires(each) or () if "extra ==" not in want])
    }

    assert len(named) <= NAMED_MAX
    assert len(set(named) - brought) <= OWN_MAX


def test_the_page_lists_each_extra(
    project: Mapping[str, Mapping[str, list[str]]], page: Mapping[str, list[list[str]]]
) -> None:
    """The extra `dev` holds the others, or no test could use them."""
    extras = project["optional-dependencies"]
    listed = {
        name: names(packages) for name, packages in extras.items() if name not in CONTRIBUTORS
    }
    rows = [(row[0], row[1]) for row in page["Extras"]]

    assert sorted((name, one) for name, packages in listed.items() for one in packages) == rows
    assert {package for _, package in rows} <= set(names(extras["dev"]))


def test_the_page_names_the_rooms_that_import_each_package(
    trees: Mapping[str, ast.Module], page: Mapping[str, list[list[str]]]
) -> None:
    """A package is as heavy as the rooms that cannot do without it."""
    shown = {row[0]: row[2] for row in page["Always installed"]}
    shown |= {row[1]: row[3] for row in page["Extras"]}
    imported = {path: imports(tree) for path, tree in trees.items()}
    rooms = {package: importers(imported, package) for package in shown if package not in PROGRAMS}

    expected = {
        package: "most rooms" if len(some) > ROOMS_MAX else "`, `".join(some)
        for package, some in rooms.items()
    }
    assert expected == {package: shown[package] for package in expected}


def names(requirements: list[str]) -> list[str]:
    """Return the packages that requirements name."""
    return [match[0] for each in requirements if (match := NAME.match(each))]


def importers(imported: Mapping[str, frozenset[str]], package: str) -> list[str]:
    """Return the folders, or modules at the root, that import a package."""
    module = MODULES.get(package, package.replace("-", "_"))
    rooms = {
        path.split("/")[1].removesuffix(".py")
        for path, modules in imported.items()
        if module in modules
    }
    return sorted(rooms)


def imports(tree: ast.Module) -> frozenset[str]:
    """Return the top-level modules that a module imports from elsewhere."""
    names: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names += [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(name), level=0):
                names.append(name)
            case _:
                pass
    return frozenset(name.partition(".")[0] for name in names)
