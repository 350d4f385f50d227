"""What a command works on: a directory, a .py file, a topology's .yaml, or a `module:name`.

A file says what it is in plain Python:

    def build(model: Model) -> Agent: ...   # or -> Graph; called with the model to use
    PROMPT = "…"                            # what is asked when the command line asks nothing
    STATE = Ticket(…)                       # what a Graph that carries a state begins with
    TOOLS = [...]                           # what a Graph's model may call; an Agent has its own

A topology written down in YAML or JSON (`graphloop.topology`) needs no Python, if it names only
what the library and installed packages have; what is one's own is registered by a .py file that
`--with` names (`register`), or which loads it:

    graph = load(Path(__file__).with_name("support.yaml"))

In a directory this file is `agent.py`, `topology.py` or `topology.yaml`, and a `script.yaml` beside
it answers where there is no API key. A ready `agent` or `graph` in place of `build` can be drawn
and checked, and run with the model it has. A target's code is the user's: it is executed to be
looked at.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, cast, final

from ..errors import ConfigError, GraphloopError, nearest
from ..front.agent import Agent
from ..front.graph import Graph
from ..front.hooks import Model
from ..front.options import Tools
from ..front.topology import Topology, load
from ..providers.script import ScriptedModel
from ..topology.source import SUFFIXES
from .nearby import not_found, suspect

__all__ = [
    "MODULE_FORM",
    "STANDARD",
    "Loop",
    "Target",
    "execute",
    "load_graph",
    "load_loop",
    "load_target",
    "names_target",
    "register",
    "register_once",
    "standard_target",
]

Loop: TypeAlias = Agent | Graph[None]

FILES = ("agent.py", "topology.py", *(f"topology{suffix}" for suffix in SUFFIXES))
SCRIPT = "script.yaml"
EXECUTED = "graphloop_target_"
"""What the name of a file's module begins with."""
STANDARD = "agent"
NAMES = ("build", "agent", "graph")
EMPTY = (
    "expected a directory, a .py file or a module:name, found an empty argument (a shell variable "
    "that is not set?); the current directory is a dot."
)
MODULE = re.compile(r"[A-Za-z_][\w.]*")
MODULE_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@final
@dataclass(frozen=True)
class Target:
    """What was found: a `ready` loop, or else the function that builds one around a model."""

    place: str
    ready: Loop | None = None
    build: Callable[[Model], object] | None = None
    prompt: str | None = None
    tools: Tools = ()
    script: Path | None = None
    state: object = None

    def refuse_model(self, given: Mapping[str, str | None]) -> None:
        """Refuse options that choose a model for an agent that has its own.

        Raises:
            ConfigError: one was given.
        """
        names = [name for name, value in given.items() if value is not None]
        if names:
            raise ConfigError(
                f"{' and '.join(names)} would have no effect: the agent in {self.place} has its "
                "model already. Write a function build(model) that returns the agent."
            )

    def loop(self, model: Model) -> Loop:
        """Return the agent or graph, around `model` if it is still to be built.

        Raises:
            ConfigError: `build` failed, or returned something else.
        """
        if self.ready is not None:
            return self.ready
        assert self.build is not None, "a target that is not ready is built"
        if not _takes_one(self.build):
            name = getattr(self.build, "__name__", "build")
            raise ConfigError(
                f"{self.place}: expected a function that is called with the model, "
                f"`def {name}(model)`; found {name}{signature(self.build)}."
            )
        try:
            built = self.build(model)
        except GraphloopError:
            raise
        except Exception as error:
            raise _broken(self.place, error) from error
        if isinstance(built, Agent):
            return built
        if isinstance(built, Graph):
            return cast("Graph[None]", built)  # isinstance cannot tell the type of the state.
        raise ConfigError(
            f"{self.place}: expected build(model) to return an Agent or a Graph, "
            f"found {type(built).__name__}"
        )


def _takes_one(build: Callable[[Model], object]) -> bool:
    """Whether a function can be called with one argument, as far as anybody can tell."""
    try:
        signature(build).bind(None)
    except TypeError:
        return False
    except ValueError:  # It says nothing of its arguments.
        return True
    return True


def standard_target() -> Target:
    """Return the standard loop as a target: what a bare question is put to."""
    return Target("the prompt", build=Agent)


def names_target(text: str) -> bool:
    """Whether `text` means a file, a directory or a `module:name`, rather than a question."""
    return bool(text.strip()) and (
        bool(MODULE_FORM.fullmatch(text)) or _exists(text) or suspect(text)
    )


def load_target(text: str, words: Iterable[str] = ()) -> Target:
    """Load what `text` names.

    Args:
        text: a directory, a .py file, a topology's file, or a `module:name`.
        words: what the caller understands besides; one of them may have been meant.

    Raises:
        ConfigError: there is no such thing (the message says what there is), or it cannot be
            loaded.
        GraphError: the graph in it has no correct table.
    """
    if not text.strip():
        raise ConfigError(EMPTY)
    if _exists(text):
        return _from_path(Path(text))
    if MODULE_FORM.fullmatch(text):
        return _from_module(text)
    raise not_found(text, words)


def load_graph(text: str) -> Graph[None]:
    """Load the graph that `text` names; `agent` is the standard loop.

    Raises:
        ConfigError: see `load_target`.
    """
    loop = load_loop(text)
    return loop.graph if isinstance(loop, Agent) else loop


def load_loop(text: str) -> Loop:
    """Load the agent or graph that `text` names, around no model; `agent` is the standard loop.

    Raises:
        ConfigError: see `load_target`.
    """
    target = standard_target() if text == STANDARD else load_target(text, (STANDARD,))
    return target.loop(ScriptedModel(()))


def register(given: Iterable[str]) -> None:
    """Execute Python that registers what topologies name: .py files, or modules by their names.

    Raises:
        ConfigError: there is no such thing, or it cannot be loaded.
    """
    for text in given:
        if text.endswith(".py"):
            if not _exists(text):
                raise not_found(text, expected="a .py file")
            execute(Path(text))
        elif MODULE.fullmatch(text):
            if _imported(text, f"--with {text}").__file__ is None:
                raise ConfigError(
                    f"--with {text}: expected a .py file, or a module, found a folder without an "
                    f"__init__.py, which registers nothing. Fix: name a file in it."
                )
        else:
            raise ConfigError(
                f"--with names a .py file, or a module such as my_package.desk; found {text!r}."
            )


def register_once(given: Iterable[str]) -> None:
    """Execute what registers, as `register` does, but for files that were executed before.

    Raises:
        ConfigError: see `register`.
    """
    register([one for one in given if not (one.endswith(".py") and _is_executed(Path(one)))])


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
    if file.suffix in SUFFIXES:
        return _from_data(file)
    module = execute(file)
    for name in NAMES:
        if hasattr(module, name):
            script = file.parent / SCRIPT
            return _target(str(file), module, name, script if script.is_file() else None)
    raise ConfigError(
        f"{file}: expected a function `build(model)` that returns an Agent or a Graph, found "
        f"{_listed(_offers(module)) or 'nothing of the kind'}. Add one, or name what is there as "
        "module:name."
    )


def _from_data(file: Path) -> Target:
    graph, script = load(file), file.parent / SCRIPT
    found = script if script.is_file() else None
    return Target(str(file), ready=graph, prompt=graph.prompt or None, script=found)


def _file_of(path: Path) -> Path:
    if path.is_dir():
        for name in FILES:
            if (path / name).is_file():
                return path / name
        here = sorted(one.name for one in path.glob("*.py"))
        raise ConfigError(
            f"{path}: expected {', '.join(FILES[:2])} or {FILES[2]} in this directory, "
            f"found {_listed(here) or 'no .py file'}. Name the file itself."
        )
    if path.suffix not in {".py", *SUFFIXES} or path.name == SCRIPT:
        raise ConfigError(
            f"{path}: expected a directory, a .py file, or a topology ({', '.join(SUFFIXES)}), "
            "found another kind (recorded replies go to --script)."
        )
    return path


def _from_module(text: str) -> Target:
    module_name, _, name = text.partition(":")
    if module_name.endswith(".py") and Path(module_name).is_file():
        raise ConfigError(
            f"{text}: expected a file or a module:name, found both. Write "
            f"{module_name.removesuffix('.py')}:{name}, or {module_name} for what it calls "
            f"{', '.join(NAMES[:-1])} or {NAMES[-1]}."
        )
    module = _imported(module_name, text)
    if not hasattr(module, name):
        offers = _offers(module)
        raise ConfigError(
            f"{text}: expected {name!r} in module {module_name!r}, which has "
            f"{_listed(offers) or 'no agent, graph or build function'}.{nearest(name, offers)}"
        )
    return _target(text, module, name, None)


def _imported(name: str, text: str) -> ModuleType:
    """Import a module as `python -m` finds it; `text` is what was typed."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return import_module(name)
    except GraphloopError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise ConfigError(
            f"{text}: expected a module {name!r}, found none on the path or in "
            f"{Path.cwd()}. Check the name, or put a question in quotes with a space in it."
        ) from error
    except Exception as error:
        raise _broken(name, error) from error


def _target(place: str, module: ModuleType, name: str, script: Path | None) -> Target:
    found: object = getattr(module, name)
    prompt: object = getattr(module, "PROMPT", None)
    if prompt is not None and not isinstance(prompt, str):
        raise ConfigError(f"{place}: expected PROMPT to be a string, found {prompt!r:.80}")
    tools = cast("Tools", getattr(module, "TOOLS", ()))  # Toolbox looks at each of them.
    state: object = getattr(module, "STATE", None)
    target = Target(place, prompt=prompt, tools=tools, script=script, state=state)
    if isinstance(found, Topology) and prompt is None:
        target = replace(target, prompt=found.prompt or None)
    if isinstance(found, Agent | Graph):
        ready = cast("Loop", found)  # isinstance cannot tell the type of the state.
        return replace(target, ready=ready)
    if callable(found) and not isinstance(found, type):
        build = cast("Callable[[Model], object]", found)  # What it returns is looked at.
        return replace(target, build=build)
    raise ConfigError(
        f"{place}: expected {name!r} to be an Agent, a Graph, or a function build(model), "
        f"found {type(found).__name__}"
    )


def _offers(module: ModuleType) -> list[str]:
    """Return the names in a module that a target can be."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, Agent | Graph) or (name == "build" and callable(value))
    ]


def execute(file: Path) -> ModuleType:
    """Run a .py file, which is the user's own, and return it as a module.

    Raises:
        ConfigError: it cannot be loaded.
    """
    name = f"{EXECUTED}{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file}: expected a .py file that Python can load, found another.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # Annotations are looked up here.
    sys.path.insert(0, str(file.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except GraphloopError:
        raise
    except Exception as error:
        raise _broken(str(file), error) from error
    return module


def _broken(place: str, error: Exception) -> ConfigError:
    """Return the error of a target that cannot be loaded: what went wrong, and on which line."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        ours = str(Path(__file__).parent)
        theirs = [one for one in frames if not one.filename.startswith((ours, "<frozen"))]
        where = f"{theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else place
    return ConfigError(
        f"{place}: expected Python that loads, found {type(error).__name__}: {error} ({where})"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
