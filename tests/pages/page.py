"""A page of the documentation as a program: its files, its commands, and their output.

A page is run from top to bottom in an empty folder.

- A block with a title is a file of that name. Another block of the page has to name it.
- A block of Python without a title is a program, run at once.
- Each line of an `sh` block is a command. `# exit status 1` at its end says how it ends.
- A `text` block is what the block before it prints. `…` stands for anything, in a line or as one.
- A `console` block is for the reader alone: it installs, sets keys or starts servers.
- A file whose title begins with the name of another framework is compiled. Where that framework is
  installed (`pip install 'graphloop[bench]'`), its commands are run, too, and the names that the
  file imports from it have to exist.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import yaml

from tests.pages.processes import PROGRAMS, done

__all__ = ["FENCED", "FRAMEWORKS", "Block", "blocks_of", "check_imports", "run_page"]

FENCED: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
TITLE: Final = re.compile(r'title="([^"]+)"')
ENDS: Final = re.compile(r"\s+# exit status (\d+)$")
FRAMEWORKS: Final = {
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic_ai",
    "openai_agents": "agents",
}
"""The beginning of a file's title, and the package that the file needs."""
TYPED: Final = ("console", "mermaid", "html", "toml", "dockerfile", "ini")
"""Languages that are shown and not run."""
PROGRAM: Final = "program.py"
ABSENT: Final = "a framework that is not installed"
"""In place of the output of a command that runs another framework's program."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: the word behind the fence.
        title: the name of the file that the block holds, or empty.
        text: the lines, without the indent of their fence.
        line: the number of the fence's line.
    """

    language: str
    title: str
    text: str
    line: int


def blocks_of(page: str) -> Sequence[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            title[1] if (title := TITLE.search(found["info"])) else "",
            re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            page.count("\n", 0, found.start()) + 1,
        )
        for found in FENCED.finditer(page)
    ]


def run_page(path: Path, folder: Path) -> None:
    """Run a page in an empty folder.

    Raises:
        AssertionError: a command ends otherwise than the page says, prints something else, or a
            block is of no use to the page.
    """
    blocks = blocks_of(path.read_text("utf-8"))
    printed: str | None = None
    for block in blocks:
        place = f"{path}:{block.line}"
        if block.language == "text":
            assert printed is not None, f"{place}: expected a command before this output"
            if printed is not ABSENT:
                _compare(block.text, printed, place)
            printed = None
        elif block.title:
            _write(block, folder)
            _check_file(block, blocks, place)
        elif block.language in {"python", "sh"}:
            printed = ABSENT if _is_absent(block) else "".join(_run(block, folder, place))
        else:
            _read(block, place)


def _run(block: Block, folder: Path, place: str) -> Iterator[str]:
    """Run the program or the commands of a block, and return what each prints."""
    commands = block.text.replace("\\\n", " ").splitlines()
    if block.language == "python":
        (folder / PROGRAM).write_text(block.text, encoding="utf-8")
        commands = [f"python {PROGRAM}"]
    for command in commands:
        if command.startswith("#") or not command.strip():
            continue
        assert command.startswith(PROGRAMS), f"{place}: expected one of {PROGRAMS}: {command}"
        ends = ENDS.search(command)
        status, output = done(command.partition("  #")[0], folder)
        assert (int(ends[1]) if ends else 0) == status, f"{place}: {command}\n{output}"
        yield output


def _check_file(block: Block, blocks: Sequence[Block], place: str) -> None:
    """Require that the page uses a file, or that a file for another framework makes sense."""
    package = next((FRAMEWORKS[name] for name in FRAMEWORKS if block.title.startswith(name)), "")
    if not package:
        assert _used(block, blocks), f"{place}: expected a use of {block.title}"
    elif find_spec(package) is None:
        ast.parse(block.text, place)
    else:
        check_imports(block, place, package)


def _is_absent(block: Block) -> bool:
    """Whether the commands of a block run a program of a framework that is not installed."""
    named = [package for name, package in FRAMEWORKS.items() if f"python {name}_" in block.text]
    return any(find_spec(package) is None for package in named)


def _write(block: Block, folder: Path) -> None:
    file = folder / block.title
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text, encoding="utf-8")


def _used(block: Block, blocks: Sequence[Block]) -> bool:
    """Whether another block names a file, or the module that it is."""
    file = Path(block.title)
    names = {file.name, file.stem, file.parent.name} - {""}
    return any(name in each.text for each in blocks if each is not block for name in names)


def _read(block: Block, place: str) -> None:
    """Read a block that is not run."""
    if block.language == "yaml":
        yaml.safe_load(block.text)
        return
    assert block.language in TYPED, f"{place}: expected a language that is run or shown"


def check_imports(block: Block, place: str, package: str) -> None:
    """Read a program, and look up the names that it imports from a package."""
    for node in ast.walk(ast.parse(block.text, place)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            module = importlib.import_module(node.module or "")
            missing = [name.name for name in node.names if not hasattr(module, name.name)]
            assert [] == missing, f"{place}: {node.module} has no such names"


def _compare(shown: str, printed: str, place: str) -> None:
    """Hold the output that a page shows against what was printed."""
    lines = [re.escape(line.rstrip()) for line in shown.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*" if line.strip("\\ ") == "…" else line.replace("…", ".*") + r"\n"
        for line in lines
    )
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, text), f"{place}: the page shows\n{shown}\nprinted is\n{text}"


if __name__ == "__main__":
    run_page(Path(sys.argv[1]), Path(sys.argv[2]))
