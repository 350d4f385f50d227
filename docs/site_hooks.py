"""What the site has beside its pages: pictures that commands of a page draw, and the reference.

mkdocs calls these functions. A picture that a page shows and no file holds is made by running the
page (`tests/pages/page.py`), so that no picture shows what the code no longer draws.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parents[1]
SHOWN: Final = re.compile(r"!\[[^\]]*\]\(([\w-]+\.svg)\)")
MODULES: Final = ("errors", "events", "outcomes", "run", "spending", "turn", "values")
"""Modules at the root of the package that users import from."""
FOR_MAINTAINERS: Final = (
    *("architecture", "contract", "dependencies", "glossary", "how-proofs-are-decided", "seeds"),
)
CODE: Final = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
INTERNAL: Final = ("cli", "driver", "views")
"""Rooms that users import nothing from."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List a reference page for each room that users import from, and each decision record."""
    for section in config.nav or ():
        match section:
            case {"API reference": list() as pages}:
                pages += [{name: f"reference/{name}.md"} for name, _ in shown_rooms()]
            case {"For maintainers": list() as pages}:
                records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
                pages.append({"Decisions": [f"decisions/{record.name}" for record in records]})
            case _:
                pass
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference pages, and the pictures of the other pages."""
    for name, names in shown_rooms():
        page = f"# {name}\n\n::: {name}\n    options:\n      members: [{', '.join(names)}]\n"
        files.append(File.generated(config, f"reference/{name}.md", content=page))
    for page in list(files.documentation_pages()):
        shown = SHOWN.findall(page.content_string)
        folder = Path(page.src_uri).parent
        missing = [name for name in shown if not (ROOT / "docs" / folder / name).exists()]
        for name, picture in pictures(ROOT / "docs" / page.src_uri, missing):
            files.append(File.generated(config, str(folder / name), content=picture))
    return files


def shown_rooms() -> Iterator[tuple[str, list[str]]]:
    """Return each room with its names that a page or an example shows.

    The others are for the rooms of graphloop; their docstrings are in the code alone.
    """
    known = words_of_programs()
    for room, names in rooms():
        if first := [name for name in names if name in known]:
            yield room, first


def words_of_programs() -> frozenset[str]:
    """Return the everyday names, and each word in the code of users' pages and of the examples."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*/*.md"), *(ROOT / "docs").glob("*.md")]
    texts = [page.read_text("utf-8") for page in pages if page.stem not in FOR_MAINTAINERS]
    code = [span for text in texts for span in CODE.findall(text)]
    code += [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py")]
    everyday = public_names(ROOT / "graphloop" / "__init__.py")
    return frozenset([*everyday, *re.findall(r"\w+", " ".join(code))])


def pictures(page: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Run a page, and return the pictures that its commands draw, by name."""
    if not names:
        return
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.pages.page", str(page), folder]
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - a page of this repository
        for name in names:
            yield name, (Path(folder) / name).read_text("utf-8")


def rooms() -> Iterator[tuple[str, list[str]]]:
    """Return the public names of graphloop and of each module that users import from."""
    paths = [ROOT / "graphloop" / "__init__.py"]
    paths += sorted((ROOT / "graphloop").glob("*/__init__.py"))
    paths += [ROOT / "graphloop" / f"{name}.py" for name in MODULES]
    for path in sorted(paths, key=str):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name.rpartition(".")[2] not in INTERNAL:
            yield name, public_names(path)


def public_names(path: Path) -> list[str]:
    """Return the names in the `__all__` of a module."""
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                found: list[str] = ast.literal_eval(value)
                return found
            case _:
                pass
    return []
