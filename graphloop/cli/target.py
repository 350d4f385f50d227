"""The target of a command: a directory, a .py file, a topology's .yaml, or a `module:name`.

A file says what it is in plain Python:

    def build(model: Model) -> Agent: ...   # or -> Graph; called with the model to use
    PROMPT = "…"                            # the question, where the command line has none
    STATE = Ticket(…)                       # the first state of a Graph that carries one
    TOOLS = [...]                           # the tools of a Graph's model; an Agent has its own

A ready `agent` or `graph` in place of `build` runs with the model it has. A topology in YAML or
JSON names functions that a .py file of `--with` has registered. In a directory this file is
`agent.py`, `topology.py` or `topology.yaml`, and a `script.yaml` beside it answers where there is
no API key. A target's code is executed to be read.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias, cast, final

from ..agent import Agent, Graph, Model, Tools, asks_model
from ..errors import ConfigError, GraphloopError, nearest
from ..providers import ScriptedModel
from ..topology import SUFFIXES as TOPOLOGIES
from ..topology import Topology, load

__all__ = [
    "EXECUTED",
    "MODULE_FORM",
    "STANDARD",
    "Loop",
    "Target",
    "limited",
    "load_graph",
    "load_target",
    "names_target",
    "refuse_options",
    "register",
]

Loop: TypeAlias = Agent | Graph[None]

SUFFIXES: Final = (".py", *TOPOLOGIES)
FILES: Final = ("agent.py", "topology.py", *(f"topology{suffix}" for suffix in TOPOLOGIES))
SCRIPT: Final = "script.yaml"
EXECUTED: Final = "graphloop_target_"
"""The beginning of the name of a file's module."""
STANDARD: Final = "agent"
"""Names the standard loop."""
NAMES: Final = ("build", "agent", "graph")
MODULE: Final = re.compile(r"[A-Za-z_][\w.]*")
MODULE_FORM: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
SHOWN_MAX: Final = 10


@final
@dataclass(frozen=True)
class Target:
    """A `ready` loop, or else the function that builds one around a model."""

    place: str
    ready: Loop | None = None
    build: Callable[[Model], object] | None = None
    prompt: str | None = None
    tools: Tools = ()
    script: Path | None = None
    state: object = None

    @property
    def takes_model(self) -> bool:
        """Whether a run of it needs a model from outside."""
        match self.ready:
            case None:
                return True
            case Agent():
                return False
            case Topology():
                return self.ready.needs_model
            case _:
                return asks_model(self.ready)

    def loop(self, model: Model | None = None) -> Loop:
        """Return the agent or graph, built around `model` if necessary."""
        if self.ready is not None:
            return self.ready
        assert self.build is not None, "a target that is not ready is built"
        with _told(self.place):
            built = self.build(ScriptedModel(()) if model is None else model)
        if isinstance(built, Agent | Graph):
            return cast("Loop", built)  # isinstance cannot tell the type of the state.
        raise ConfigError(
            f"{self.place}: expected build(model) to return an Agent or a Graph, "
            f"found {type(built).__name__}"
        )


def names_target(text: str) -> bool:
    """Whether `text` means a path or a `module:name`, not a question."""
    if MODULE_FORM.fullmatch(text) or _exists(text):
        return True
    if any(sign.isspace() for sign in text):
        return False
    is_path = "/" in text or "\\" in text or text.startswith(".") or text.endswith(SUFFIXES)
    return is_path or bool(get_close_matches(text, _targets_in(Path())))


def load_target(text: str) -> Target:
    """Load the target that `text` names; `agent` is the standard loop.

    Raises:
        ConfigError: there is no such thing (the message says what there is), or it cannot be
            loaded.
        GraphError: the graph in it has no correct table.
    """
    if text == STANDARD:
        return Target("the prompt", build=Agent)
    if _exists(text):
        return _from_path(Path(text))
    if MODULE_FORM.fullmatch(text):
        module_name, _, name = text.partition(":")
        return _from_name(text, _imported(module_name, text), name)
    raise _not_found(text)


def load_graph(text: str) -> Graph[None]:
    """Load the graph that `text` names; errors as for `load_target`."""
    loop = load_target(text).loop()
    return loop.graph if isinstance(loop, Agent) else loop


def limited(loop: Loop, max_steps: int | None, unbounded: str | None) -> Loop:
    """Return an agent of so many turns, or an unbounded graph."""
    if isinstance(loop, Agent):
        refuse_options({"--unbounded": unbounded}, "an agent's loop is bounded")
        return loop if max_steps is None else loop.with_options(max_steps=max_steps)
    refuse_options({"--max-steps": max_steps}, f"the stop node of graph {loop.name!r} bounds it")
    if unbounded is None:
        return loop
    try:
        return loop.unbounded(unbounded)
    except ConfigError as error:
        raise ConfigError(f"--unbounded would have no effect: {error}. Leave it out.") from error


def refuse_options(given: Mapping[str, object], why: str) -> None:
    """Refuse options that have no effect; None and False mean that one is not given."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if names:
        raise ConfigError(f"{' and '.join(names)} would have no effect: {why}. Fix: leave it out.")


def register(given: Iterable[str] | None) -> None:
    """Execute files and modules that register the names of topologies.

    A file is executed once.
    """
    for text in given or ():
        if text.endswith(".py"):
            if not _exists(text):
                raise _not_found(text)
            if not _is_executed(Path(text)):
                _execute(Path(text))
        elif MODULE.fullmatch(text):
            _imported(text, f"--with {text}")
        else:
            raise ConfigError(
                f"--with: expected a .py file, or a module such as my_package.desk, found {text!r}."
            )


@contextmanager
def _told(place: str) -> Generator[None]:
    """Tell an error of the user's code in words, with its line."""
    try:
        yield
    except GraphloopError:
        raise
    except Exception as error:
        if isinstance(error, SyntaxError):
            where = f"{error.filename}, line {error.lineno}"
        else:
            ours = (str(Path(__file__).parent), "<frozen")
            frames = traceback.extract_tb(error.__traceback__)
            theirs = [frame for frame in frames if not frame.filename.startswith(ours)]
            where = f"{theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else place
        raise ConfigError(
            f"{place}: expected Python that loads, found {type(error).__name__}: {error} ({where})"
        ) from error


def _execute(file: Path) -> ModuleType:
    """Run a .py file of the user's, and return its module."""
    name = f"{EXECUTED}{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file}: expected a .py file that Python can load, found another.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # Annotations are looked up here.
    sys.path.insert(0, str(file.parent.absolute()))
    with _told(str(file)):
        spec.loader.exec_module(module)
    return module


def _is_executed(file: Path) -> bool:
    module = sys.modules.get(f"{EXECUTED}{file.stem}")
    known = None if module is None else module.__file__
    return known is not None and Path(known).absolute() == file.absolute()


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # Too long for a name: a question.
        return False


def _from_path(path: Path) -> Target:
    file = _file_of(path)
    script = file.parent / SCRIPT
    if file.suffix in TOPOLOGIES:
        graph = load(file)
        target = Target(str(file), ready=graph, prompt=graph.prompt or None)
    else:
        module = _execute(file)
        name = next((name for name in NAMES if hasattr(module, name)), None)
        if name is None:
            raise ConfigError(
                f"{file}: expected a function `build(model)` that returns an Agent or a Graph, "
                f"found {_offers(module)}. Fix: add one, or name what is there as module:name."
            )
        target = _from_name(str(file), module, name)
    return replace(target, script=script if script.is_file() else None)


def _file_of(path: Path) -> Path:
    if path.is_dir():
        for name in FILES:
            if (path / name).is_file():
                return path / name
        here = ", ".join(sorted(file.name for file in path.glob("*.py")))
        raise ConfigError(
            f"{path}: expected agent.py, topology.py or topology.yaml in this directory, "
            f"found {here or 'no .py file'}. Fix: name the file itself."
        )
    if path.suffix not in SUFFIXES or path.name == SCRIPT:
        raise ConfigError(
            f"{path}: expected a directory, a .py file, or a topology ({', '.join(TOPOLOGIES)}), "
            "found another kind. Fix: give recorded replies to --script."
        )
    return path


def _imported(name: str, text: str) -> ModuleType:
    """Import a module, which `text` names, as `python -m` finds it."""
    sys.path.insert(0, str(Path.cwd()))
    with _told(name):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(
                f"{text}: expected a module {name!r}, found none on the path or in {Path.cwd()}. "
                "Fix: check the name, or put a question in quotes with a space in it."
            ) from error


def _from_name(place: str, module: ModuleType, name: str) -> Target:
    if not hasattr(module, name):
        raise ConfigError(
            f"{place}: expected {name!r} in module {module.__name__!r}, found {_offers(module)}."
            f"{nearest(name, vars(module))}"
        )
    found: object = getattr(module, name)
    prompt: object = getattr(module, "PROMPT", None)
    if prompt is not None and not isinstance(prompt, str):
        raise ConfigError(f"{place}: expected PROMPT to be a string, found {prompt!r:.80}")
    if isinstance(found, Topology) and prompt is None:
        prompt = found.prompt or None
    tools = cast("Tools", getattr(module, "TOOLS", ()))  # Toolbox looks at each of them.
    target = Target(place, prompt=prompt, tools=tools, state=getattr(module, "STATE", None))
    if isinstance(found, Agent | Graph):
        return replace(target, ready=cast("Loop", found))  # The state's type is not known.
    if callable(found) and not isinstance(found, type):
        build = cast("Callable[[Model], object]", found)  # `loop` looks at its answer.
        return replace(target, build=build)
    raise ConfigError(
        f"{place}: expected {name!r} to be an Agent, a Graph, or a function build(model), "
        f"found {type(found).__name__}"
    )


def _offers(module: ModuleType) -> str:
    """Return the names in a module that a target can be."""
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, Agent | Graph) or (name == "build" and callable(value))
    ]
    return ", ".join(names) or "no agent, graph or build function"


def _targets_in(folder: Path) -> list[str]:
    """Return the directories, .py files and topologies in `folder` that are not hidden."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if not path.name.startswith((".", "_")) and (path.is_dir() or path.suffix in SUFFIXES)
    )


def _not_found(text: str) -> ConfigError:
    """Return the error for a missing path, with targets near it."""
    missing, folder = Path(text).name, Path(text).parent
    while not folder.is_dir():
        missing, folder = folder.name, folder.parent
    names = _targets_in(folder)
    # The whole path, to be typed as it is: a mere name would be taken for a question.
    close = [
        name if name == STANDARD else str(folder / name)
        for name in get_close_matches(missing, [STANDARD, *names], n=1)
    ]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    shown = ", ".join(str(folder / name) for name in names[:SHOWN_MAX]) or "no target"
    return ConfigError(
        f"{text}: expected a directory, a .py file, or a topology ({', '.join(TOPOLOGIES)}), found "
        f"nothing of that name.{hint} In {str(folder)!r} is {shown}{more}."
    )
