"""Target: load the agent or graph that a command line names.

A target is a directory, a .py file, a topology file, `FILE.py:NAME` or `module:name`. A .py file
defines these names:

    def build(model: Model) -> Agent: ...   # or -> Graph; gets the model of the command line
    PROMPT = "…"                            # the question, if the command line has none
    STATE = Ticket(…)                       # the first state of a Graph that carries one
    TOOLS = [...]                           # the tools of a Graph's model; an Agent has its own
    DEPS = Deps(…)                          # the run's `deps`, or a function that makes them,
                                            # also `async def`, or of a context manager

Instead of `build`, a file may define a ready `agent` or `graph`, which runs with its own model; a
model of the command line replaces that of an agent. A topology file can use names that a .py file
of `--with` registers; that file may define DEPS and STATE, too. In a directory, the file is
`agent.py`, `topology.py` or `topology.yaml`. Without an API key, a file `script.yaml` in the same
directory supplies the model's replies. Loading a Python target executes its code.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from inspect import isawaitable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, TypeAlias, cast, final

from ..agent import Agent, Graph, Model, Tools, asks_model
from ..errors import ConfigError, nearest
from ..providers import Provider, ScriptedModel, lacking_keys
from ..topology import SUFFIXES as TOPOLOGIES
from ..topology import Topology, load
from .modules import execute, exists, imported, users_code

__all__ = [
    "STANDARD",
    "Loop",
    "Target",
    "absolute_target",
    "limited",
    "load_graph",
    "load_target",
    "names_target",
    "refuse_options",
]

Loop: TypeAlias = Agent[Any, Any] | Graph[None]

SUFFIXES: Final = (".py", *TOPOLOGIES)
FILES: Final = ("agent.py", "topology.py", *(f"topology{suffix}" for suffix in TOPOLOGIES))
SCRIPT: Final = "script.yaml"
STANDARD: Final = "agent"
"""The target name that means the standard loop."""
NAMES: Final = ("build", "agent", "graph")
IN_FILE: Final = re.compile(r"(.+\.py):([A-Za-z_]\w*)")
IN_MODULE: Final = re.compile(r"([A-Za-z_][\w.]*)(?<!\.py):([A-Za-z_]\w*)")


@final
@dataclass(frozen=True)
class Target:
    """A loaded target: a `ready` agent or graph, or a function that builds it with a model."""

    place: str
    ready: Loop | None = None
    build: Callable[[Model], object] | None = None
    prompt: str | None = None
    tools: Tools = ()
    script: Path | None = None
    state: object = None
    deps: tuple[object, ...] = field(default=(), repr=False)

    @property
    def own_model(self) -> Model | None:
        """The model of a ready agent; None for other targets."""
        return self.ready.model if isinstance(self.ready, Agent) else None

    @property
    def lacks_own_key(self) -> bool:
        """Whether this is a ready agent whose model has no key."""
        return isinstance(self.own_model, str) and self.own_model in lacking_keys()

    @property
    def takes_model(self) -> bool:
        """Whether runs of this target use the model of the command line."""
        match self.ready:
            case None:
                return True
            case Agent():
                return False
            case Topology():
                return self.ready.needs_model
            case _:
                return asks_model(self.ready)

    def access(self, headers: Mapping[str, str] | None) -> dict[str, Any]:
        """Return `{"headers": …}` for a run of an agent with its own model; else an empty dict.

        The model of the command line has the headers already.

        Raises:
            ConfigError: the target asks no model that these headers could reach.
        """
        if headers is None or self.takes_model:
            return {}
        if not isinstance(self.ready, Agent):
            why = f"{self.place} asks no model, or its nodes have their own"
            refuse_options({"--header": headers}, why)
        return {"headers": headers}

    @asynccontextmanager
    async def given_deps(self, loop: Loop) -> AsyncGenerator[dict[str, Any]]:
        """Give `{"deps": …}` for a run of `loop` if the file defines DEPS; else an empty dict.

        A function in DEPS is called now, and awaited if it is async. A context manager that it
        returns is entered, and left at the end of the `async with` block. An agent without a
        `deps_type` is given no `deps`.
        """
        if not self.deps or (isinstance(loop, Agent) and "deps_type" not in loop.options):
            yield {}
            return
        (deps,) = self.deps
        closes = AsyncExitStack()
        if isinstance(deps, FunctionType | type):
            with users_code(self.place):
                deps = await _call_factory(cast("Callable[[], object]", deps), closes)
        try:
            yield {"deps": deps}
        finally:
            with users_code(self.place):
                await closes.aclose()

    def loop(self, model: Model | None = None) -> Loop:
        """Return the ready agent or graph, with `model` in place of an agent's, or build it."""
        if isinstance(self.ready, Agent) and model is not None:
            return self.ready.with_options(model=model)
        if self.ready is not None:
            return self.ready
        assert self.build is not None, "a target that is not ready is built"
        with users_code(self.place):
            built = self.build(ScriptedModel(()) if model is None else model)
        if isinstance(built, Agent | Graph):
            return cast("Loop", built)  # isinstance leaves the state's type open.
        raise ConfigError(
            f"{self.place}: expected build(model) to return an Agent or a Graph, "
            f"found {type(built).__name__}"
        )

    def loop_to_run(self, model: Provider | None) -> Loop:
        """Return `loop(model)` for a run, which needs the keys of the models that it may ask.

        Raises:
            ConfigError: the key of a model is missing. A script asks no server, and a model of the
                command line stands for the own one of an agent.
        """
        loop, own = self.loop(model), self.own_model
        is_replaced = model is not None and model.label != own
        for label, error in lacking_keys().items():
            if not (isinstance(model, ScriptedModel) or (is_replaced and label == own)):
                raise error
        return loop


async def _call_factory(make: Callable[[], object], closes: AsyncExitStack) -> object:
    """Call a function of the user's file, and return what it makes; `closes` closes it."""
    made = make()
    if isawaitable(made):
        made = cast("object", await made)
    if isinstance(made, AbstractAsyncContextManager):
        return await closes.enter_async_context(cast("AbstractAsyncContextManager[object]", made))
    if isinstance(made, AbstractContextManager):
        return closes.enter_context(cast("AbstractContextManager[object]", made))
    return made


def names_target(text: str) -> bool:
    """Whether `text` is a target or a misspelt target, and not a question for a model."""
    if IN_MODULE.fullmatch(text) or IN_FILE.fullmatch(text) or exists(text):
        return True
    if any(sign.isspace() for sign in text):
        return False
    is_path = "/" in text or "\\" in text or text.startswith(".") or text.endswith(SUFFIXES)
    return is_path or bool(get_close_matches(text, _targets_in(Path())))


def load_target(text: str, modules: Sequence[ModuleType] = ()) -> Target:
    """Load the target that `text` names.

    Args:
        text: the target.
        modules: the modules of `--with`: one of them may define the DEPS and the STATE of a target
            whose own file does not, such as a topology file.

    Raises:
        ConfigError: there is no such target, or it cannot be loaded.
        GraphError: the table of its graph is invalid.
    """
    target = _load_target(text, modules)
    if not target.deps:
        target = replace(target, deps=_defined_value("DEPS", modules))
    is_stateful = isinstance(target.ready, Graph) and target.ready.state_type is not None
    if is_stateful and target.state is None:
        target = replace(target, state=next(iter(_defined_value("STATE", modules)), None))
    return target


def _defined_value(name: str, modules: Iterable[ModuleType]) -> tuple[object, ...]:
    """Return the value of a name that one of the modules may define; empty if none does."""
    found = [module for module in modules if hasattr(module, name)]
    if len(found) > 1:
        files = " and ".join(Path(str(module.__file__)).name for module in found)
        raise ConfigError(
            f"{name}: expected one file of --with to define it, found {files}. Fix: keep one of "
            "the definitions."
        )
    return tuple(getattr(module, name) for module in found)


def _load_target(text: str, modules: Sequence[ModuleType]) -> Target:
    if text == STANDARD:
        return Target("the prompt", build=Agent)
    if exists(text):
        return _from_path(Path(text), modules)
    if match := IN_FILE.fullmatch(text):
        file = Path(match[1])
        if not exists(match[1]):
            raise _not_found(match[1])
        return _with_script(_from_name(text, execute(file), match[2]), file)
    if match := IN_MODULE.fullmatch(text):
        return _from_name(text, imported(match[1], text), match[2])
    raise _not_found(text)


def absolute_target(text: str) -> str:
    """Return the target with an absolute path, so that it is valid in every directory."""
    is_name = text == STANDARD or IN_MODULE.fullmatch(text)
    return text if is_name else str(Path(text).absolute())


def load_graph(text: str) -> Graph[None]:
    """Load a target, and return its graph or its agent's graph; raise like `load_target`."""
    loop = load_target(text).loop()
    return loop.graph if isinstance(loop, Agent) else loop


def limited(loop: Loop, max_steps: int | None, unbounded: str | None) -> Loop:
    """Return an agent with `--max-steps` applied, or a graph with `--unbounded` applied."""
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


def refuse_options(options: Mapping[str, object], why: str) -> None:
    """Refuse options that would have no effect; None and False mean not given.

    Raises:
        ConfigError: an option is given; the message names it and says `why`.
    """
    names = [name for name, value in options.items() if value is not None and value is not False]
    if names:
        raise ConfigError(f"{' and '.join(names)} would have no effect: {why}. Fix: leave it out.")


def _from_path(path: Path, modules: Sequence[ModuleType]) -> Target:
    file = _file_of(path)
    if file.suffix in TOPOLOGIES:
        states = _defined_value("STATE", modules)
        graph: Topology[Any] = load(file, state_type=type(states[0])) if states else load(file)
        target = Target(str(file), ready=graph, prompt=graph.prompt or None)
        return _with_script(replace(target, state=next(iter(states), None)), file)
    module = execute(file)
    name = next((name for name in NAMES if hasattr(module, name)), None)
    if name is None:
        raise ConfigError(
            f"{file}: expected a function `build(model)` that returns an Agent or a Graph, "
            f"found {_offered_names(module)}. Fix: add one, or name what is there: {file}:NAME."
        )
    return _with_script(_from_name(str(file), module, name), file)


def _with_script(target: Target, file: Path) -> Target:
    script = file.parent / SCRIPT
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


def _from_name(place: str, module: ModuleType, name: str) -> Target:
    if not hasattr(module, name):
        raise ConfigError(
            f"{place}: expected {name!r} in {place.rpartition(':')[0]}, found "
            f"{_offered_names(module)}.{nearest(name, vars(module))}"
        )
    value: object = getattr(module, name)
    prompt: object = getattr(module, "PROMPT", None)
    if prompt is not None and not isinstance(prompt, str):
        raise ConfigError(f"{place}: expected PROMPT to be a string, found {prompt!r:.80}")
    if isinstance(value, Topology) and prompt is None:
        prompt = value.prompt or None
    tools = cast("Tools", getattr(module, "TOOLS", ()))  # Toolbox checks each tool.
    target = Target(place, prompt=prompt, tools=tools, state=getattr(module, "STATE", None))
    if hasattr(module, "DEPS"):
        target = replace(target, deps=(module.DEPS,))
    if isinstance(value, Agent | Graph):
        return replace(target, ready=cast("Loop", value))  # The state's type is not known.
    if callable(value) and not isinstance(value, type):
        build = cast("Callable[[Model], object]", value)  # `loop` checks the result.
        return replace(target, build=build)
    raise ConfigError(
        f"{place}: expected {name!r} to be an Agent, a Graph, or a function build(model), "
        f"found {type(value).__name__}"
    )


def _offered_names(module: ModuleType) -> str:
    """Return the names of a module's agents, graphs and build function."""
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
    """Return the error for a missing path, with a suggestion if a similar target exists."""
    missing, folder = Path(text).name, Path(text).parent
    while not folder.is_dir():
        missing, folder = folder.name, folder.parent
    near = get_close_matches(missing, [STANDARD, *_targets_in(folder)], n=1)
    # Suggest a path with its folder, because a bare name would be read as a question.
    names = [name if name == STANDARD else str(folder / name) for name in near]
    hint = f" Did you mean {names[0]!r}?" if names else ""
    return ConfigError(
        f"{text}: expected a directory, a .py file, or a topology ({', '.join(TOPOLOGIES)}), found "
        f"nothing of that name.{hint}"
    )
