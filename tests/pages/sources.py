"""Write the Python of all pages into a folder, with a configuration for pyright.

    python -m tests.pages.sources FOLDER && pyright -p FOLDER

Each page becomes a folder of its own, where its files import each other. Programs of other
frameworks are left out: their types are not ours. The configuration also has what pyproject.toml
says of the repository, so that one run of pyright checks both.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Final

from tests.pages.page import FRAMEWORKS, blocks_of

REPOSITORY: Final = Path(__file__).parents[2]
DOCS: Final = REPOSITORY / "docs"


def main(folder: Path) -> None:
    """Write the files, and the configuration that checks them and the repository."""
    roots: list[str] = []
    for page in sorted(DOCS.glob("*/*.md")):
        root = folder / f"{page.parent.name}-{page.stem}"
        blocks = [block for block in blocks_of(page.read_text("utf-8")) if _is_ours(block.title)]
        for block in blocks:
            if block.language == "python":
                root.mkdir(parents=True, exist_ok=True)
                name = block.title or f"line_{block.line}.py"
                (root / name).write_text(block.text, encoding="utf-8")
        if root.exists():
            roots.append(root.name)
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["pyright"]
    repository = os.path.relpath(REPOSITORY, folder.resolve())
    configuration = {
        **settings,
        "include": [*roots, *[f"{repository}/{name}" for name in settings["include"]]],
        "executionEnvironments": [{"root": root} for root in [*roots, repository]],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(configuration), encoding="utf-8")


def _is_ours(title: str) -> bool:
    return not title.startswith(tuple(FRAMEWORKS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
