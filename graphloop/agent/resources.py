"""Resources: the models, tools and agents that the runs of one agent or graph can use."""

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
from .options import Options, Tools, strings
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
    "split_tools",
]


OwnTools: TypeAlias = Mapping[str, Callable[..., object]] | Sequence[Callable[..., object]]


class AgentResources:
    """The models by label, the tools, and the agents of one agent or graph.

    Args:
        model: the default model; None for a graph whose nodes ask no model.
        options: its tools, its agents for `Child` nodes, and the access to models given by name.
        carried: the agents that the graph's nodes bring along.

    Raises:
        ConfigError: a model or a tool cannot work.
    """

    def __init__(
        self, model: Model | None, options: Options, carried: Mapping[str, Plan] | None = None
    ) -> None:
        self._options = options
        self._final = ""
        self.models: dict[str, Provider] = {}
        self.named: set[str] = set()
        self.label = "" if model is None else self.add_model(model)
        own, agents = split_tools(options.tools)
        self.toolbox = Toolbox(own)
        given = options.agents
        asked: Mapping[str, object] = {**options.given, "model": model}
        named = {name: agent.as_sub_agent(name, asked) for name, agent in given.items()}
        self.made = tuple([agent for name, agent in named.items() if agent is not given[name]])
        brought = carried or {}
        twice = sorted({*agents} & {*named} | {*agents, *named} & {*brought})
        if twice:
            raise ConfigError(f"two agents are named {twice[0]!r}. Fix: rename one of them.")
        self.children: dict[str, Plan] = {**agents, **named, **brought}

    def add_model(self, model: Model) -> str:
        """Add a model that runs may ask, and return its label.

        The key and the URL of the options are for the default model's provider alone.
        """
        options, first = self._options, next(iter(self.models), None)
        label = model if isinstance(model, str) else ""
        same = first is None or (label and _prefix(label) == _prefix(first))
        over_http = first is None or (label and _prefix(label) != "script")
        provider = resolve(
            model,
            api_key=options.api_key if same else None,
            base_url=options.base_url if same else None,
            timeouts=options.timeouts if over_http else None,
            retries=options.retries if over_http else None,
            environ=environ,
        )
        if label and provider.label not in self.models:
            self.named.add(provider.label)
        known = self.models.setdefault(provider.label, provider)
        if known is not provider and not label:
            raise ConfigError(
                f"two different models are labelled {provider.label!r}, so a journal could not "
                "tell them apart. Fix: give one of them another label."
            )
        return provider.label

    def answer_by(self, tool: Tool[..., object]) -> None:
        """Offer the tool that takes the final answer; no option removes it.

        Raises:
            ConfigError: another tool has its name.
        """
        if self.toolbox.get(tool.name) is not None:
            raise ConfigError(
                f"a tool is named {tool.name!r}, like the tool that takes the answer of an agent "
                "with an output_type. Fix: rename it, or say output_mode='native'."
            )
        self.toolbox.add([tool])
        self._final = tool.name

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the loop's own tools, which are always offered and allowed."""
        return (self._final,) if self._final else ()

    @property
    def allowed(self) -> tuple[Rule, ...]:
        """The rules that allow the loop's own tools, before the rules of a gate."""
        return allow(self._final).rules if self._final else ()

    @property
    def given(self) -> tuple[ToolSpec, ...]:
        """The tools of the caller."""
        return tuple([spec for spec in self.toolbox.specs if spec.name != self._final])

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of all tools that a run itself may call."""
        agents = [name for name, plan in self.children.items() if isinstance(plan, AgentTool)]
        return (*dict.fromkeys([*[spec.name for spec in self.given], *agents]),)

    @property
    def callable_names(self) -> tuple[str, ...]:
        """The names of all tools that a run or its children may call."""
        names = dict.fromkeys(self.own_names)
        for plan in self.children.values():
            names |= dict.fromkeys(plan.opener.terms.tool_names)
        return tuple(names)

    def price(self) -> Price | None:
        """Return the price of the default model's replies; None where it is not known."""
        options, provider = self._options, self.models.get(self.label)
        if provider is None or options.price is not None:
            return options.price if provider is not None else None
        if options.prices:
            return providers.price_with(options.prices)
        return None if service_of(provider.label) is None else providers.price


def check_gate(gate: Policy, known: Sequence[str]) -> None:
    """Refuse a gate's rules about tools that do not exist, and conditions that cannot be called.

    Raises:
        ConfigError: naming each tool, with the nearest that exists; or the condition.
    """
    for name, condition in gate.conditions.items():
        if not accepts(condition, 2):
            raise ConfigError(
                f"`gate`: the condition {name!r} must take (arguments, context); "
                f"found {condition!r:.80}. Fix: give `when` a function of two parameters"
            )
    check_rules(gate.rules, known, "`gate`")


def check_rules(rules: Sequence[Rule], known: Sequence[str], title: str) -> None:
    """Refuse gate rules that have no effect; `title` begins the message.

    Raises:
        ConfigError: naming each tool that does not exist, with the nearest that does; or a rule
            whose tools are all decided by earlier rules.
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
    """Return the tools in the form of a toolbox, and the agents among them by name."""
    if isinstance(tools, Mapping):
        agents = {
            name: tool.renamed(name) for name, tool in tools.items() if isinstance(tool, AgentTool)
        }
        own = {
            name: agents[name].tool if isinstance(tool, AgentTool) else tool
            for name, tool in tools.items()
        }
        return own, agents
    if not isinstance(tools, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        return cast("OwnTools", tools), {}  # The toolbox refuses it.
    own_tools = [tool.tool if isinstance(tool, AgentTool) else tool for tool in tools]
    return own_tools, {tool.name: tool for tool in tools if isinstance(tool, AgentTool)}


def price_below(options: Options, own: Price | None, above: Price | None) -> Price | None:
    """Return the price of a child's replies: by its options, its parent, or its model's table."""
    if above is None or options.price is not None or options.prices:
        return own
    if own is None:
        return above

    def price(reply: Reply) -> float | None:
        cost_usd = above(reply)
        return own(reply) if cost_usd is None else cost_usd

    return price


def _prefix(label: str) -> str:
    return label.partition(":")[0]


def offered(tools: Sequence[ToolSpec], active: Sequence[str] | None) -> tuple[ToolSpec, ...]:
    """Return the active tools; None activates all."""
    return tuple(tool for tool in tools if active is None or tool.name in active)


def checked_tool_names(
    option: str, given: Sequence[str], tools: Sequence[ToolSpec]
) -> tuple[str, ...]:
    """Return tool names that all exist.

    Raises:
        ConfigError: a name does not exist.
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
    """Return the names of the active tools, with the tools that no option removes.

    Raises:
        ConfigError: a name does not exist.
    """
    known = checked_tool_names("active_tools", given, tools)
    return (*known, *(name for name in world.own if name not in known))


MODES: Final = ("auto", "required", "none", "tool")


def choice_from_now(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice that is made in the middle of a run.

    Raises:
        ConfigError: `choice_of` refuses it, or it is for the first step only.
    """
    if isinstance(choice, ToolChoice) and choice.scope == "first_step":
        raise ConfigError(
            "`tool_choice` with scope='first_step' has no effect in the middle of a run. Fix: "
            "leave the scope out. prepare_step chooses for its own step, set_params for all later "
            "steps."
        )
    return choice_of(choice, tools)


def choice_of(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice that is possible among these tools.

    Raises:
        ConfigError: its mode is unknown, or it names or requires a tool that is not there.
    """
    if isinstance(choice, str):
        choice = ToolChoice(choice)
    if choice.mode not in MODES:
        # A mode that is no mode would offer all tools, also where "none" was meant.
        names = [tool.name for tool in tools]
        fix = f"ToolChoice('tool', {choice.mode!r})" if choice.mode in names else "use one of them"
        raise ConfigError(
            f"`tool_choice`: expected {', '.join(MODES)}, found {choice.mode!r}."
            f"{nearest(choice.mode, MODES)} Fix: {fix}."
        )
    if choice.mode == "tool":
        checked_tool_names("tool_choice", [choice.name], tools)
    elif choice.name:
        raise ConfigError(
            f"`tool_choice` names {choice.name!r}, which has no effect in mode {choice.mode!r}. "
            "Fix: ToolChoice('tool', name)."
        )
    if choice.mode == "required" and not tools:
        raise ConfigError("`tool_choice` is 'required', but there are no tools")
    return choice
