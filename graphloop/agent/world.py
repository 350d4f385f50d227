"""World: the models, tools, agents and rules that the runs of one graph are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import environ
from typing import Final, TypeAlias, cast

from .. import providers
from ..driver import Price
from ..errors import ConfigError, nearest, not_among
from ..policy import NARROWER, Policy, Rule, allow, shadowed, unmatched
from ..providers import Provider, resolve, service_of
from ..tools import Tool, Toolbox, accepts
from ..values import Reply, ToolChoice, ToolSpec
from .inputs import ChoiceInput, Model
from .options import Access, RunOptions, Tools, group, strings
from .sub_agents import AgentTool, Plan

__all__ = [
    "AgentResources",
    "active_names",
    "check_gate",
    "check_rules",
    "checked_tool_names",
    "choice_from_now",
    "choice_of",
    "offered",
    "price_below",
    "price_of",
    "split_tools",
]


OwnTools: TypeAlias = Mapping[str, Callable[..., object]] | Sequence[Callable[..., object]]


class AgentResources:
    """The models by label, the tools, and the agents that can be called, of one runner.

    Args:
        model: the default model; None for a graph that asks none.
        options: keys, URLs, limits for models given by name; agents for `Child` nodes.
        tools: tools and agents on offer.
        carried: the agents that the graph's nodes bring along.

    Raises:
        ConfigError: a model or a tool cannot work.
    """

    def __init__(
        self,
        model: Model | None,
        options: RunOptions,
        tools: Tools,
        carried: Mapping[str, Plan] | None = None,
    ) -> None:
        self._access = group(options, Access)
        self._final = ""
        self.models: dict[str, Provider] = {}
        self.named: set[str] = set()
        self.label = "" if model is None else self.add_model(model)
        own, agents = split_tools(tools)
        self.toolbox = Toolbox(own)
        given = options.get("agents", {})
        asked: Mapping[str, object] = {**options, "model": model}
        named = {name: one.as_sub_agent(name, asked) for name, one in given.items()}
        self.made = tuple([one for name, one in named.items() if one is not given[name]])
        brought = carried or {}
        twice = sorted({*agents} & {*named} | {*agents, *named} & {*brought})
        if twice:
            raise ConfigError(f"two agents are named {twice[0]!r}: rename one of them")
        self.children: dict[str, Plan] = {**agents, **named, **brought}

    def add_model(self, model: Model) -> str:
        """Make a model known to runs and return its label.

        The options' key and URL are the default model's: another provider never sees them.
        """
        first = next(iter(self.models), None)
        same = isinstance(model, str) and _prefix(model) == _prefix(first or model)
        asked = first is None or (isinstance(model, str) and _prefix(model) != "script")
        own = self._access if first is None or same else Access()
        provider = resolve(
            model,
            api_key=own.api_key,
            base_url=own.base_url,
            timeouts=self._access.timeouts if asked else None,
            retries=self._access.retries if asked else None,
            environ=environ,
        )
        if isinstance(model, str) and provider.label not in self.models:
            self.named.add(provider.label)
        known = self.models.setdefault(provider.label, provider)
        if known is not provider and not isinstance(model, str):
            raise ConfigError(
                f"two different models are labelled {provider.label!r}, so a journal could not "
                "tell them apart: give one of them another label"
            )
        return provider.label

    def answer_by(self, tool: Tool[..., object]) -> None:
        """Offer the tool that takes the final answer, which no option can take away.

        Raises:
            ConfigError: another tool has its name.
        """
        if self.toolbox.get(tool.name) is not None:
            raise ConfigError(
                f"a tool is named {tool.name!r}, as the one that takes the answer of an agent with "
                "an output_type: rename it, or say output_mode='native'"
            )
        self.toolbox.add([tool])
        self._final = tool.name

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the loop's own tools; always offered, always allowed."""
        return (self._final,) if self._final else ()

    @property
    def allowed(self) -> tuple[Rule, ...]:
        """The rules before those of every gate: the loop's own tools do nothing but answer."""
        return allow(self._final).rules if self._final else ()

    @property
    def given(self) -> tuple[ToolSpec, ...]:
        """The tools that the caller has brought."""
        return tuple([one for one in self.toolbox.specs if one.name != self._final])

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of all tools that may be called in a run itself."""
        agents = [name for name, one in self.children.items() if isinstance(one, AgentTool)]
        return (*dict.fromkeys([*[one.name for one in self.given], *agents]),)

    @property
    def callable_names(self) -> tuple[str, ...]:
        """The names of all tools that may be called in a run or in its children."""
        names = dict.fromkeys(self.own_names)
        for agent in self.children.values():
            names |= dict.fromkeys(agent.opener.terms.tool_names)
        return tuple(names)


def check_gate(gate: Policy, known: Sequence[str]) -> None:
    """Refuse rules about tools that do not exist: a name that is misspelt protects nothing.

    Raises:
        ConfigError: naming each such tool, with the nearest that exists; or a condition that
            cannot be called, and so would count against every call.
    """
    for name, condition in gate.conditions.items():
        if not accepts(condition, 2):
            raise ConfigError(
                f"`gate`: the condition {name!r} must take (arguments, context); "
                f"found {condition!r:.80}. Fix: give `when` a function of two parameters"
            )
    check_rules(gate.rules, known, "`gate`")


def check_rules(rules: Sequence[Rule], known: Sequence[str], title: str) -> None:
    """Refuse rules that protect nothing here; `title` begins the message.

    Raises:
        ConfigError: naming each tool that does not exist, with the nearest that does; or the rule
            whose tools are all decided before it.
    """
    unknown = unmatched(rules, known)
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(
            f"{title} names what is not among the tools ({', '.join(known) or 'none'}): {found} "
            "For tools that come later, give a pattern"
        )
    for _, problem in shadowed(rules, known):
        raise ConfigError(f"{title}: {problem} Fix: {NARROWER}")


def split_tools(tools: Tools) -> tuple[OwnTools, dict[str, AgentTool]]:
    """Return all tools as a toolbox takes them, and the agents among them by name.

    Raises:
        ConfigError: two agents have one name.
    """
    if isinstance(tools, Mapping):
        agents = {
            name: one.renamed(name) for name, one in tools.items() if isinstance(one, AgentTool)
        }
        own = {name: one.tool if isinstance(one, AgentTool) else one for name, one in tools.items()}
        own |= {name: agent.tool for name, agent in agents.items()}
        return own, agents
    if not isinstance(tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        # A toolbox says what is wrong with it.
        return cast("OwnTools", tools), {}
    listed = [one for one in tools if isinstance(one, AgentTool)]
    return [one.tool if isinstance(one, AgentTool) else one for one in tools], {
        one.name: one for one in listed
    }


def price_of(options: RunOptions, provider: Provider) -> Price | None:
    """Return the price of replies; the table is imported only where a real model is asked."""
    access = group(options, Access)
    table = access.prices
    if access.price is not None:
        return access.price
    if not table and service_of(provider.label) is None:
        return None
    return providers.price_with(table) if table else providers.price


def price_below(options: RunOptions, own: Price | None, above: Price | None) -> Price | None:
    """Return the price of a child's replies, by its options, its parent, or its model's table."""
    if above is None or options.get("price") is not None or options.get("prices"):
        return own
    if own is None:
        return above

    def price(reply: Reply) -> float | None:
        cost_usd = above(reply)
        return own(reply) if cost_usd is None else cost_usd

    return price


def _prefix(label: str) -> str:
    return label.partition(":")[0]


MODES: Final = ("auto", "required", "none")


def offered(tools: Sequence[ToolSpec], active: Sequence[str] | None) -> tuple[ToolSpec, ...]:
    """Return the tools that are active; None is all of them."""
    return tuple(one for one in tools if active is None or one.name in active)


def checked_tool_names(
    option: str, given: Sequence[str], tools: Sequence[ToolSpec]
) -> tuple[str, ...]:
    """Return tool names that exist.

    Raises:
        ConfigError: one does not; a list that silently offers less would starve the model.
    """
    known = [tool.name for tool in tools]
    names = strings(option, given)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"`{option}` names {name!r}, which is not among the tools "
                f"({', '.join(known) or 'none'}).{nearest(name, known)}"
            )
    return names


def active_names(
    given: Sequence[str], tools: Sequence[ToolSpec], world: AgentResources
) -> tuple[str, ...]:
    """Return the names of the active tools, and of those without which no answer can be given.

    Raises:
        ConfigError: one does not exist.
    """
    known = checked_tool_names("active_tools", given, tools)
    return (*known, *(name for name in world.own if name not in known))


def choice_from_now(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice that is made in the middle of a run.

    Raises:
        ConfigError: as of `choice_of`; or it is for the first step only.
    """
    if isinstance(choice, ToolChoice) and choice.scope == "first_step":
        raise ConfigError(
            "`tool_choice` with scope='first_step' has no effect in the middle of a run: leave the "
            "scope out; prepare_step chooses for its own step, set_params for all later ones"
        )
    return choice_of(choice, tools)


def choice_of(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice as a value.

    Raises:
        ConfigError: it is none, or names or requires a tool that is not there.
    """
    if isinstance(choice, str):
        choice = ToolChoice(choice)
    if choice.mode not in (*MODES, "tool"):
        raise ConfigError(
            f"`tool_choice`: expected {', '.join(MODES)}, or ToolChoice('tool', name), "
            f"found {choice.mode!r}.{nearest(str(choice.mode), MODES)}"
        )
    if choice.mode == "tool":
        checked_tool_names("tool_choice", [choice.name], tools)
    elif choice.name:
        raise ConfigError(
            f"`tool_choice` names {choice.name!r}, which has no effect in mode {choice.mode!r}: "
            "say ToolChoice('tool', name)"
        )
    if choice.mode == "required" and not tools:
        raise ConfigError("`tool_choice` is 'required', but there are no tools")
    return choice
