"""Write the Python of all pages into a folder, with a configuration for pyright.

    python -m tests.pages.sources FOLDER && pyright -p FOLDER

Each page becomes a folder of its own, where its files import each other. Programs of other
frameworks are left out: their types are not ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from tests.pages.page import FRAMEWORKS, blocks_of

DOCS: Final = Path(__file__).parents[2] / "docs"


def main(folder: Path) -> None:
    """Write the files, and the configuration that checks them strictly."""
    roots: list[str] = []
    for page in sorted(DOCS.glob("*/*.md")):
        root = folder / f"{page.parent.name}-{page.stem}"
        blocks = [block for block in blocks_of(page.read_text("utf-8")) if _is_ours(block.title)]
        for block in blocks:
            if block.language == "python":
                root.mkdir(parents=True, exist_ok=True)
                name = block.title or f"line_{block.line}.py"
                (root / name).write_text(block.text, encoding="utf-8")
        roots.append(str(root))
    configuration = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "executionEnvironments": [{"root": root} for root in roots],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(configuration), encoding="utf-8")


def _is_ours(title: str) -> bool:
    return not title.startswith(tuple(FRAMEWORKS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
