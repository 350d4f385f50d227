"""Agents of Open Agent Spec as topologies of their own: instructions, model, tools, a gate.

What a document demands is never lost: a tool that needs a confirmation becomes a rule `ask` of the
agent's gate, and a tool that cannot be had is one that its model is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar, final

from ...errors import ConfigError
from ...naming import control_in, node_flaw_of
from ...tools import Tool
from ..compose import Value
from ..forms import Data, Reading, put_off
from ..problems import Mark, Misread
from ..registration import Category, Names
from ..source import SIZE_MAX
from .components import Component, Components, defaults_of, word
from .findings import Findings
from .loop_data import STEPS_MAX, answer_data, loop_data
from .tool_inputs import input_properties, registered_tool

__all__ = ["AgentReader", "Context", "plain_name"]

T = TypeVar("T")

PARTS_MAX: Final = 300
"""How many agents and flows are read at most, each as often as it is used."""

DEEP_MAX: Final = 8
"""How deep they stand within each other."""

PLACEHOLDER: Final = re.compile(r"\{\{([^{}]{1,200})\}\}")
LABELS: Final = ("openai", "anthropic")
WILDCARDS: Final = frozenset("*?[")
TOOL_KINDS: Final = ("ServerTool", "ClientTool")


@final
@dataclass
class Context:
    """What is known while one document is read.

    Args:
        components: its components.
        to: takes what is wrong with it.
        findings: takes what became of its parts.
        names: what is registered; None if that is not looked at.
        registered: the names that it uses of each category.
        stack: the ids of the components that are being read.
        parts: how many agents and flows were read.
        written: how many characters their texts have.
    """

    components: Components
    to: Reading
    findings: Findings
    names: Names | None
    registered: dict[Category, dict[str, None]] = field(
        default_factory=dict[Category, "dict[str, None]"]
    )
    stack: list[str] = field(default_factory=list[str])
    parts: int = 0
    written: int = 0

    def note(self, mark: Mark, found: str, fix: str) -> None:
        """Note a mistake of the document."""
        self.to.complaints.note(mark, found, fix)

    def opened(self, one: Component) -> None:
        """Begin to read an agent or a flow.

        Raises:
            Misread: it is a part of itself, or there are too many.
        """
        self.parts += 1
        if self.parts > PARTS_MAX + 1:
            # It was told of the first that is too many.
            raise Misread("too many agents and flows")
        misread = self.to.complaints.misread
        if one.id in self.stack:
            found = f"{one.kind} {one.id!r:.80} is a part of itself."
            raise misread(one.mark, found, "let one of the two be something else.")
        if len(self.stack) >= DEEP_MAX or self.parts > PARTS_MAX:
            found = (
                f"at most {PARTS_MAX} agents and flows are read, {DEEP_MAX} deep, each as often as "
                "it is used; found more."
            )
            # Many ways may lead there.
            self.to.complaints.spoil(one.mark, found, "take some out.")
            raise Misread(found)
        self.stack.append(one.id)

    def closed(self) -> None:
        """End to read an agent or a flow."""
        self.stack.pop()

    def told(self, one: Component, key: str) -> tuple[str, list[str]]:
        """Return the text at a key, and the names of its placeholders, which point elsewhere.

        Raises:
            Misread: all texts together are too long.
        """
        text = self.components.text(one, key)
        self.written += len(text)
        if self.written > SIZE_MAX:
            found = f"texts have at most {SIZE_MAX:,} characters, each as often as it is used."
            raise self.to.complaints.misread(one.mark, found, "shorten them.")
        return _unfilled(text)

    def named(self, one: Component) -> str:
        """Return a component's name as a graph's; note if no graph can have it."""
        control = control_in(one.name)
        if control is not None:
            found = f"{one.name!r:.60} is no name: it holds the control character {control!r}."
            self.note(one.entries["name"].value.mark, found, "leave it out.")
        return one.name

    def uses(self, category: Category, name: str, mark: Mark) -> object:
        """Return what is registered under a name that the document uses; note if nothing is."""
        self.registered.setdefault(category, {})[name] = None
        if self.names is None:
            return None
        try:
            found = self.names.find(category, name)
        except ConfigError as error:
            self.note(mark, f"{error}.", "mend the package, or remove it.")
            return None
        if found is None:
            hint = self.to.complaints.nearest(name, self.names.known(category))
            fix = f"register it in Python with @registry.{category}, before the document is read."
            self.note(mark, f"no {category} is registered as {name!r:.80}.{hint}", fix)
        return found

    def metadata(self, one: Component) -> None:
        """Say that what other tools noted of a component is not kept."""
        if one.says("metadata"):
            said = "its `metadata` is not kept"
            self.findings.add("approximated", one.kind, one.id, said, one.mark)


@final
@dataclass
class _Tools:
    asked: list[str] = field(default_factory=list[str])
    free: list[str] = field(default_factory=list[str])

    @property
    def names(self) -> list[Data]:
        return [*self.asked, *self.free]


@final
class AgentReader:
    """Reads agents, and the groups of a manager and its workers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._components = context.components

    def agent(self, one: Component) -> dict[str, Data] | None:
        """Return the topology that an agent is; None if it is refused.

        Raises:
            Misread: the document is wrong about it; why, is among the complaints.
        """
        self._context.opened(one)
        try:
            match one.kind:
                case "Agent":
                    return self._single(one, _Tools(), {})
                case "ManagerWorkers":
                    return self._group(one)
                case _:
                    expected = "an Agent, ManagerWorkers or a Flow is expected"
                    said = f"no agent is made of a {one.kind:.60} here: {expected}"
                    self._context.findings.add("refused", one.kind, one.id, said, one.mark)
                    return None
        finally:
            self._context.closed()

    def model(self, node: Component) -> str:
        """Return the label of the model that a component asks; empty for the run's own."""
        one = self._components.at(node, "llm_config")
        add, label = self._context.findings.add, ""
        if not one.kind.endswith("Config"):
            expected = "`llm_config` is the configuration of a model"
            raise self._context.to.complaints.misread(
                one.mark, f"{expected}; found {one.kind!r:.60}.", "name one."
            )
        self._context.metadata(one)
        own = {"OpenAiConfig": "openai"}.get(one.kind, "")
        if one.kind == "LlmConfig":
            own = self._components.text(one, "api_provider", "")
            provider = self._components.text(one, "provider", own)
            own = own if provider == own else ""
        lost = [key for key in ("default_generation_parameters", "retry_policy") if one.says(key)]
        if one.says("api_key"):
            lost.append("api_key (keys come from the environment)")
        if own in LABELS and not one.says("url"):
            label = f"{own}:{self._components.text(one, 'model_id')}"
            chats = own != "openai" or self._components.text(one, "api_type", "") in {
                "",
                "chat_completions",
            }
            lost += [] if chats else ["api_type (chat completions are asked)"]
            said = f"asked as {label}"
        else:
            said = "the model that the run is given is asked: a document names no servers here"
            add("approximated", one.kind, one.id, said, one.mark)
            return ""
        said += f"; left out: {', '.join(lost)}" if lost else ""
        add("approximated" if lost else "exact", one.kind, one.id, said, one.mark)
        return label

    def _single(self, one: Component, tools: _Tools, workers: dict[str, Data]) -> dict[str, Data]:
        add = self._context.findings.add
        self._context.metadata(one)
        noted = len(self._context.to.complaints.problems)
        name = self._context.named(one)
        model = self._unless_misread(lambda: self.model(one), "")
        self._unless_misread(lambda: self._all_tools(one, tools), None)
        instructions, filled = self._unless_misread(
            lambda: self._context.told(one, "system_prompt"), ("", list[str]())
        )
        put_off(failed=len(self._context.to.complaints.problems) > noted)
        lost = list(self._lost(one, filled))
        if tools.names:
            lost.append(f"it has {STEPS_MAX} turns at most")
        said = f"a loop of its own: {'; '.join(lost)}" if lost else "a loop of its own"
        add("approximated" if lost else "exact", one.kind, one.id, said, one.mark)
        data: dict[str, Data] = {"name": name}
        if instructions.strip():
            data["instructions"] = instructions
        if tools.names:
            data["tools"] = tools.names
        if workers:
            data["agents"] = workers
        made = loop_data(tools.asked, tools.free, model) if tools.names else answer_data(model)
        return {**data, **made}

    def _all_tools(self, one: Component, tools: _Tools) -> None:
        for value in self._components.items(one, "tools"):
            self._unless_misread(partial(self._tool, value, tools), None)
        for key, what in (("toolboxes", "toolboxes"), ("transforms", "transforms of messages")):
            for value in self._components.items(one, key):
                other = self._components.of(value)
                said = f"{what} have no counterpart; it is left out"
                self._context.findings.add("refused", other.kind, other.id, said, other.mark)

    def _unless_misread(self, read: Callable[[], T], instead: T) -> T:
        """Return what is read; if nothing can be, what is wrong is told, and the rest is read."""
        try:
            return read()
        except Misread:
            return instead

    def _lost(self, one: Component, filled: list[str]) -> Iterator[str]:
        if filled:
            yield f"the placeholders {', '.join(filled)} point to the conversation"
        given = defaults_of(self._components.titles(one, "inputs"))
        if given:
            yield f"the defaults of {', '.join(given)} are left out"
        if any(True for _ in self._components.titles(one, "outputs")):
            yield "its answer is text, whatever `outputs` say"
        if self._components.flag(one, "human_in_the_loop", missing=True):
            yield "it asks a person by ending its turn (`human_in_the_loop`)"

    def _tool(self, value: Value, tools: _Tools) -> None:
        one = self._components.of(value)
        add = self._context.findings.add
        if one.kind not in TOOL_KINDS:
            said = "only tools that are registered by name are called; it is left out"
            add("refused", one.kind, one.id, said, one.mark)
            return
        self._context.metadata(one)
        confirmed = self._components.flag(one, "requires_confirmation", missing=False)
        if not WILDCARDS.isdisjoint(one.name):
            said = "rules of a gate take its name for a pattern; it is left out"
            add("refused", one.kind, one.id, said, one.mark)
            return
        if one.name in tools.names:
            fix = "give one of them another name, or remove it."
            self._context.note(one.mark, f"two tools are named {one.name!r:.80}.", fix)
            return
        made = registered_tool(self._context.uses("tool", one.name, one.mark))
        asks = confirmed or (made is not None and made.needs_approval is not False)
        (tools.asked if asks else tools.free).append(one.name)
        said = "the registered tool of this name"
        said += ", and the gate asks a person about each call" if confirmed else ""
        other = self._taken(one, made)
        said += f"; that takes {other}" if other else ""
        add("approximated" if other else "exact", one.kind, one.id, said, one.mark)

    def _taken(self, one: Component, made: Tool[Any, Any] | None) -> str:
        """Return what a registered tool takes, if the document says otherwise."""
        if made is None or not one.says("inputs"):
            return ""
        said = {
            title: next((word(own.value) for own in given.entries if own.key == "type"), "")
            for title, given in self._components.titles(one, "inputs").items()
        }
        takes = {str(own["title"]): own.get("type", "") for own in input_properties(made)}
        same = said.keys() == takes.keys() and all(
            not (said[title] and takes[title]) or said[title] == takes[title] for title in said
        )
        return "" if same else ", ".join(takes) or "nothing"

    def _group(self, one: Component) -> dict[str, Data] | None:
        manager = self._components.at(one, "group_manager")
        add = self._context.findings.add
        self._context.metadata(one)
        if manager.kind != "Agent":
            said = f"its manager is a {manager.kind}; only an Agent can be one here"
            add("refused", one.kind, one.id, said, one.mark)
            return None
        tools, workers = _Tools(), dict[str, Data]()
        for worker in self._components.every(one, "workers"):
            read = self.agent(worker)
            if read is None:
                continue
            name = plain_name(worker.name, workers)
            given = self._components.text(worker, "description", "")
            workers[name] = {"description": given if given.strip() else worker.name, "graph": read}
            tools.free.append(name)
        said = "the manager calls the workers as tools, and reads their answers"
        add("approximated", one.kind, one.id, said, one.mark)
        self._context.opened(manager)
        try:
            return self._single(manager, tools, workers)
        finally:
            self._context.closed()


def plain_name(name: str, taken: Container[str]) -> str:
    """Return a name of letters, digits, `_` and `-` that is not taken."""
    own = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:50] or "agent"
    own = f"{own}_" if own == "END" or node_flaw_of(own) else own
    number, found = 1, own
    while found in taken:
        number += 1
        found = f"{own}_{number}"
    return found


def _unfilled(text: str) -> tuple[str, list[str]]:
    """Return a template whose placeholders point to the conversation, and their names."""
    names = list(dict.fromkeys(one.strip() for one in PLACEHOLDER.findall(text)))
    return PLACEHOLDER.sub(lambda one: f"[{one[1].strip()}: see the conversation]", text), names
