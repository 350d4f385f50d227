"""How much of the house a stranger has to walk: numbers that may fall and never rise.

Each cap is what the code measured when it was last made smaller. A change that makes a number
smaller lowers its cap in the same commit. The aim stands beside the cap.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import fields
from inspect import currentframe
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType

import pytest

import graphloop
from graphloop import Agent, tool
from graphloop.contract import Contract
from graphloop.run import Run
from graphloop.testing import ScriptedModel

PACKAGE = Path(graphloop.__file__).parent

FUNCTIONS_MAX, FILES_MAX = 104, 28  # aim 90 and 25
FRAMES_MAX = 6  # from the driver's loop to a tool
ROOM_MAX = 28  # files
DRIVER_MAX = 10  # files
ROOT_MAX = 18  # files beside the rooms
FAN_OUT_MAX = 15
LONELY_MAX = 0
RUN_FIELDS_MAX = 17
CONTRACT_FIELDS_MAX = 9
PUBLIC_MAX = 53
TWICE_MAX = 0
TWINS = "stores/postgres/", "stores/sqlite/"
BY_NAME = {
    "graphloop/cli/modules.py": "a command line names the user's own module",
    "graphloop/lazy.py": "each `__init__` that loads its names on first use calls it",
    "graphloop/mcp/connections.py": "the SDK takes seconds to import, so a thread does it",
    "graphloop/providers/services.py": "a row of SERVICES names its wire: one row a new service",
    "graphloop/tools/schema.py": "pydantic's generator and jsonschema are slow to import",
    "graphloop/tools/signature.py": "few docstrings need the parser, and its import is slow",
}
"""Files that import a module that a text names, each in one place, with the reason."""
MATCH_MAX = 6  # words of prose in a row
COMPARISON_MAX = 700  # lines of the files that `graphloop diff` adds to the proofs
LEVELS_MAX = 3  # classes from a base of ours to the last that derives from it
COMMON_NAMES_MAX = 12  # private names that four files define or more; it was 68

COMPARISON = ("comparison", "guards", "parameter_changes")
PROSE = re.compile(rf"(?<!\S)(?:[A-Za-z][A-Za-z'-]*[,;:.]?(?: |$)){{{MATCH_MAX + 1}}}")
ODD = re.compile(
    r"(?:^|(?<=[.:;#] ))(?:What|Who|Whoever|Whatever|Nobody|Somebody|None of them|One) [a-z]"
    r"|\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever)\b"
)


@tool
async def read(x: int) -> str:
    """Read something."""
    return f"read {x}"


async def test_a_tool_turn_enters_few_functions_in_few_files() -> None:
    """A stranger who follows one call has to open each of these files."""
    calls = [{"name": "read", "arguments": {"x": 1}}]
    model = ScriptedModel([{"calls": calls}, "Done."] * 2)
    agent = Agent(model, tools=[read])
    await agent.generate("warm")

    entered = await _entered(agent.generate("again"))

    assert len(entered) <= FUNCTIONS_MAX
    assert len({code.co_filename for code in entered}) <= FILES_MAX


async def test_a_tool_is_few_frames_below_the_driver_s_loop() -> None:
    """A traceback of a tool shows the loop, what performs the effect, and the tool."""
    between: list[str] = []

    @tool
    async def look(x: int) -> str:
        """Note the frames between the loop and this call."""
        here = currentframe()
        frame = None if here is None else here.f_back
        while frame is not None and frame.f_code.co_name != "_drive":
            between.append(frame.f_code.co_name)
            frame = frame.f_back
        assert frame is not None, "the loop is above"
        return f"{x}"

    calls = [{"name": "look", "arguments": {"x": 1}}]
    await Agent(ScriptedModel([{"calls": calls}, "Done."]), tools=[look]).generate("go")

    assert 0 < len(between) <= FRAMES_MAX


async def _entered(work: Awaitable[object]) -> set[CodeType]:
    """Return the named functions of the package that run in this work."""
    entered: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and code.co_name[0] != "<":
            entered.add(code)

    sys.setprofile(seen)
    try:
        await work
    finally:
        sys.setprofile(None)
    return entered


def test_a_room_has_few_files(trees: Mapping[str, ast.Module]) -> None:
    """A folder that nobody can name the contents of is a heap."""
    rooms = Counter(path.rpartition("/")[0] for path in trees)

    assert rooms.pop(PACKAGE.name) <= ROOT_MAX
    assert max(rooms.values()) <= ROOM_MAX
    assert rooms[f"{PACKAGE.name}/driver"] <= DRIVER_MAX


def test_a_file_knows_few_others(imports: Mapping[str, frozenset[str]]) -> None:
    """A hub has to be read, and changed, with everything that it knows.

    Another room is known as one; a door only lists what its room offers.
    """
    assert max(len(known) for path, known in imports.items() if not _is_door(path)) <= FAN_OUT_MAX


def test_few_small_files_serve_one_other(
    root: Path, trees: Mapping[str, ast.Module], imports: Mapping[str, frozenset[str]]
) -> None:
    """A small file with one importer is a part of that file, and costs a hop.

    A door is not a place to walk through: a name imported from it counts for the file behind.
    """
    doors = {path: _homes(path, tree) for path, tree in trees.items() if _is_door(path)}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for other in _imported(path, tree, frozenset(trees), doors):
            if not _is_door(path) or Path(other).parent != Path(path).parent:
                importers[other].add(path)
    lonely = [
        path
        for path, known in importers.items()
        if not _is_door(path)
        and len(known) == 1
        and len((root / path).read_text("utf-8").splitlines()) < 80
    ]

    assert len(lonely) <= LONELY_MAX, lonely


def test_values_stay_small() -> None:
    """A value of thirty fields is several values that have not been named."""
    assert len(Run.__struct_fields__) <= RUN_FIELDS_MAX
    assert len(fields(Contract)) <= CONTRACT_FIELDS_MAX
    assert len(graphloop.__all__) <= PUBLIC_MAX


def test_a_public_name_has_one_meaning(trees: Mapping[str, ast.Module]) -> None:
    """A name that two modules define has to be told apart by every reader.

    The two database stores are twins: files of one name give one name to what does the same.
    """
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for each in tree.body:
            if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name[0] != "_":
                homes[each.name].add(path.replace(*TWINS))

    assert len([name for name, paths in homes.items() if len(paths) > 1]) <= TWICE_MAX


def test_few_modules_are_imported_by_a_text(trees: Mapping[str, ast.Module]) -> None:
    """A name in a text is found by no reader, and renamed by no tool; a door may have one."""
    calls = [
        path
        for path, tree in trees.items()
        if not _is_door(path)
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and each.id == "import_module"
    ]

    assert Counter(calls) == dict.fromkeys(BY_NAME, 1)


def test_no_test_pins_a_sentence(root: Path) -> None:
    """A test names the fact that an error tells: an argument, a value, a fix; its words may change.

    Names in quotes, numbers and patterns are facts, so they part the words of a `match=`.
    """
    pinned = [
        f"{path.relative_to(root)}:{each.value.lineno}"
        for path in (root / "tests").rglob("*.py")
        if "match=" in (text := path.read_text("utf-8"))
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.keyword) and each.arg == "match"
        for part in ast.walk(each.value)
        if isinstance(part, ast.Constant) and PROSE.search(str(part.value))
    ]

    assert not pinned


def test_a_private_name_leads_to_its_function(trees: Mapping[str, ast.Module]) -> None:
    """A search for `_told` led to nine files, each with other work."""
    files: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for part in ast.walk(tree):
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                files[part.name].add(path)
    common = [
        name
        for name, paths in files.items()
        if name.startswith("_") and not name.startswith("__") and len(paths) >= 4
    ]

    assert len(common) <= COMMON_NAMES_MAX


def test_the_comparison_of_two_graphs_stays_small() -> None:
    """It compares tables and written forms; a comparison of Python objects took 3,200 lines."""
    files = [PACKAGE / "proofs" / f"{name}.py" for name in COMPARISON]

    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= COMPARISON_MAX


def test_classes_derive_from_few_others(trees: Mapping[str, ast.Module]) -> None:
    """What a class of four levels does stands in four files.

    Errors are a tree on purpose, and typed dictionaries have no behaviour.
    """
    bases = {
        each.name: [ast.unparse(base).partition("[")[0] for base in each.bases]
        for path, tree in trees.items()
        if path != "graphloop/errors.py"
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
    }

    def levels(name: str) -> int:
        return 1 + max(map(levels, set(bases[name]) & (bases.keys() - {name})), default=0)

    def is_dictionary(name: str) -> bool:
        known = set(bases.get(name, ()))
        return "TypedDict" in known or any(map(is_dictionary, known - {name}))

    deep = {name for name in bases if levels(name) > LEVELS_MAX and not is_dictionary(name)}
    assert not deep


def test_prose_names_its_actor(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """A docstring, comment or error about nobody in particular has to be read twice."""
    odd = [
        f"{path}: {text}"
        for path, tree in trees.items()
        for text in (*_said_in(tree), *_comments_in(root / path))
        if ODD.search(text)
    ]

    assert [] == odd


def _said_in(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, and the texts that its errors are made of."""
    for each in ast.walk(tree):
        match each:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield ast.get_docstring(each) or ""
            case ast.Raise(exc=ast.AST() as error):
                parts = [one for one in ast.walk(error) if isinstance(one, ast.Constant)]
                yield from (one.value for one in parts if isinstance(one.value, str))
            case _:
                pass


def _comments_in(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        tokens = tokenize.generate_tokens(lines.readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.fixture(scope="module")
def imports(trees: Mapping[str, ast.Module]) -> Mapping[str, frozenset[str]]:
    """Return which files of the package each file imports."""
    return {path: _imported(path, tree, frozenset(trees)) for path, tree in trees.items()}


def _is_door(path: str) -> bool:
    return path.endswith("__init__.py")


def _homes(path: str, tree: ast.Module) -> Mapping[str, str]:
    """Return the file behind each name that a door offers."""
    return {
        alias.name: (Path(path).parent / f"{(node.module or '').replace('.', '/')}.py").as_posix()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


def _imported(
    path: str,
    tree: ast.Module,
    known: frozenset[str],
    doors: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> frozenset[str]:
    """Return the files that a file imports; with doors, the files behind them."""
    found: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.level:
            folder = Path(path).parents[each.level - 1]
            base = (folder / (each.module or "").replace(".", "/")).as_posix()
            for alias in each.names:
                door = f"{base}/__init__.py"
                targets = [f"{base}/{alias.name}.py", f"{base}/{alias.name}/__init__.py"]
                targets += [doors.get(door, {}).get(alias.name, door), f"{base}.py"]
                found.update([target for target in targets if target in known][:1])
    return frozenset(found - {path})
