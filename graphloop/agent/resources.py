"""Resources: the models, tools and agents that the runs of one agent or graph can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from os import environ
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from .. import providers, rates, screens
from ..driver import Pace, Price
from ..errors import ConfigError, not_among
from ..policy import NARROWER, Policy, Rule, allow, shadowed, unmatched
from ..providers import Provider, accessed, check_settings, check_tools, has_prices, resolve
from ..rules import rules_of
from ..stores import Store
from ..tools import Tool, Toolbox, accepts
from ..turn import SCREEN, StepResult
from ..values import ToolSpec
from .hooks import Screen, instructions_for, lent_deps, stop_input
from .inputs import Model, checked_tool_names, offered
from .options import BY_REQUEST, TO_SERVICE, Options, Tools
from .sub_agents import AgentPlan, AgentTool, NamedAgent, Plan

if TYPE_CHECKING:
    from ..providers import Access
    from ..screens import ScreenCallback

__all__ = [
    "REQUEST_OPTIONS",
    "AgentResources",
    "active_names",
    "check_gate",
    "check_rules",
    "screens_of",
    "split_tools",
]


PLAIN: Final = (
    *("instructions", "max_tokens", "temperature", "top_p", "stop_sequences", "seed"),
    *("provider_options", "approve_tool_call", "approval_ttl_s", "max_agent_depth"),
    *("step_timeout_s", "on_bad_history", "base_url", "output_type", "output_mode", "done_when"),
    *("verify", "prepare_step", "compact", "max_output_retries"),
    *("query", "retries", "timeouts", "price", "prices"),
)
"""The options that are copied to a graph unchanged; its nodes hold the others, except secrets."""

REQUEST_OPTIONS: Final = frozenset({"timeouts", "headers"})
"""The options of a call about the requests to its model."""

OwnTools: TypeAlias = Mapping[str, Callable[..., object]] | Sequence[Callable[..., object]]


class AgentResources:
    """The models (by label), tools and sub-agents that one agent or graph can use.

    Args:
        model: the default model; None for a graph whose nodes call no model.
        options: the options with the tools, the agents for `Child` nodes, and access to models.
        carried: the agents that the graph's nodes carry.
        screens: the functions that screen what the user says, by name.
        known: open models by label, which models given by name share.

    Raises:
        ConfigError: a model or a tool is invalid, or two agents have the same name.
    """

    def __init__(
        self,
        model: Model | None,
        options: Options,
        carried: Mapping[str, Plan] | None = None,
        screens: Mapping[str, ScreenCallback] | None = None,
        *,
        known: Mapping[str, Provider] | None = None,
    ) -> None:
        self._options, self._known = options, known or {}
        self._final, self.screens = "", screens or {}
        self._desks = rates.RateDesks(options.limits) if options.limits else None
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

    @property
    def run_options(self) -> Mapping[str, object]:
        """The options of the runs without secrets, for the proofs and drawings of a graph."""
        options, given = self._options, self._options.given
        tools = {spec.name: self.toolbox.get(spec.name) or spec for spec in self.toolbox.specs}
        agents = {
            name: plan.tool for name, plan in self.children.items() if isinstance(plan, AgentTool)
        }
        _, predicates = stop_input(options.stop_when)  # `StopCheck` holds the conditions.
        return {
            "model": self.label,
            "tools": {**tools, **agents},
            "budget": options.allowance,
            "signed": options.approval_secret is not None,
            "rules": rules_of(options.rules),
            **({"stop_when": predicates} if predicates else {}),
            **{name: given[name] for name in PLAIN if given.get(name) is not None},
        }

    def pace(self, store: Store, parent: Pace | None) -> Pace | None:
        """Return what lets model calls wait for the option `limits`; None without it.

        Args:
            store: the store of the run.
            parent: the pace of those who drive the run, or None.
        """
        given = self._options.store is not None
        own = None if self._desks is None else self._desks.pace(store, given=given)
        return own if parent is None else parent.for_child(own)

    def step_listener(self, deps: object) -> Callable[[StepResult], object] | None:
        """Return the function that hears each finished turn of a run with these `deps`."""
        listener = self._options.on_step_finish
        return None if listener is None else lent_deps(listener, deps)

    async def instructions(self, deps: object) -> str | None:
        """Return the system message of a run with these `deps`; None without `instructions`."""
        return await instructions_for(self._options.instructions, deps)

    def add_model(self, model: Model) -> str:
        """Add a model that runs may call, and return the model's label.

        The options `api_key`, `base_url`, `headers` and `query` apply only to models of the
        default model's provider.
        """
        options, first = self._options, next(iter(self.models), None)
        label = model if isinstance(model, str) else ""
        same = first is None or (label and _service_of(label) == _service_of(first))
        over_http = first is None or (label and _service_of(label) != "script")
        names = (*(TO_SERVICE if same else ()), *(BY_REQUEST if over_http else ()))
        given = {name: options.given[name] for name in names if name in options.given}
        access = cast("Access", given)
        provider = self._known.get(label) or resolve(model, environ=environ, **access)
        if label and provider.label not in self.models:
            self.named.add(provider.label)
        known = self.models.setdefault(provider.label, provider)
        if known is not provider and not label:
            raise ConfigError(
                f"two different models are labelled {provider.label!r}, so a journal could not "
                "tell them apart. Fix: give one of them another label."
            )
        return provider.label

    def for_call(self, options: Options, given: Mapping[str, object]) -> AgentResources:
        """Return these resources for one call, with the model and the access that it gives.

        A model given by name stays known here, so that later calls share its connections.

        Args:
            options: the options of the agent, with those of the call.
            given: the options of the call.

        Raises:
            ConfigError: the model is invalid, or `timeouts` or `headers` would have no effect.
        """
        changed = copy(self)
        changed._options, model = options, cast("Model | None", given.get("model"))
        if isinstance(model, str):
            changed.label = self.add_model(model)
        changed.models = {**self.models}
        if model is not None and not isinstance(model, str):
            changed.label = model.label
            changed.models[model.label] = model
        access = {name: given[name] for name in REQUEST_OPTIONS if given.get(name) is not None}
        if access:
            own = [
                label
                for label in changed.models
                if _service_of(label) == _service_of(changed.label)
            ]
            for label in own:
                changed.models[label] = accessed(changed.models[label], access)
        return changed

    def refuse_unfit(self) -> None:
        """Refuse the tools and the settings that no request to a model can carry.

        Of the tools, only those that the default model cannot be offered are refused here. A
        fallback model refuses a tool when it is asked, before a request is sent.

        Raises:
            ConfigError: a tool belongs to another wire format, or a model's wire format has no
                field for a setting; the message names both.
        """
        options = self._options
        check_tools(self.models[self.label], offered(self.toolbox.specs, options.active_tools))
        settings = options.settings(one_call_at_a_time=False)
        others = [one if isinstance(one, str) else one.label for one in options.fallback_models]
        for label in (self.label, *others):
            if label in self.models:  # A script has another label than its name.
                check_settings(self.models[label], settings)

    def answer_by(self, tool: Tool[..., object]) -> None:
        """Add the tool that the model calls with its final answer; no option can remove it.

        Raises:
            ConfigError: another tool has the same name.
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
        """The names of tools that the loop adds itself; these are always offered and allowed."""
        return (self._final,) if self._final else ()

    @property
    def allowed(self) -> tuple[Rule, ...]:
        """Gate rules that allow the loop's own tools, to be placed before the caller's rules."""
        return allow(self._final).rules if self._final else ()

    @property
    def given(self) -> tuple[ToolSpec, ...]:
        """The specs of the caller's tools, without the loop's own tools."""
        return tuple([spec for spec in self.toolbox.specs if spec.name != self._final])

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of all tools and agents that a run itself may call."""
        agents = [name for name, plan in self.children.items() if isinstance(plan, AgentTool)]
        return (*dict.fromkeys([*[spec.name for spec in self.given], *agents]),)

    @property
    def callable_names(self) -> tuple[str, ...]:
        """The names of all tools and agents that a run or its child runs may call."""
        names = dict.fromkeys(self.own_names)
        for plan in self.children.values():
            names |= dict.fromkeys(plan.opener.terms.tool_names)
        return tuple(names)

    def price(self) -> Price | None:
        """Return the function that prices replies; None if no model is of a known service."""
        options = self._options
        if (own := options.price) is not None:
            return lambda reply, _: own(reply)
        if options.prices:
            return providers.price_with(options.prices)
        if any(map(has_prices, self.models)):
            return providers.published_price  # Loads the price table, before a run begins.
        if not any(map(providers.service_of, self.models)):
            return None
        # A step's own model may have a price, and is not known yet.
        return lambda reply, label: (
            providers.published_price(reply, label) if has_prices(label) else None
        )

    def window(self, fallbacks: Sequence[str]) -> int:
        """Return the smallest published context window of the default and the fallback models.

        Raises:
            ConfigError: no context window is published for one of them.
        """
        known = providers.published_windows([self.label, *fallbacks])
        for label, window in known.items():
            if window is None:
                raise ConfigError(
                    "`compaction`: expected `context_window`, the most tokens of a request, found "
                    f"none, and none is published for {label!r}. Fix: Compaction(context_window=…)."
                )
        return min(window for window in known.values() if window is not None)


def check_gate(gate: Policy, known: Sequence[str]) -> None:
    """Raise an error if a gate names unknown tools, or has conditions with wrong parameters.

    Raises:
        ConfigError: a tool or a condition is wrong; the message names it and the fix.
    """
    for name, condition in gate.conditions.items():
        if not accepts(condition, 2):
            raise ConfigError(
                f"`gate`: the condition {name!r} must take (arguments, context); "
                f"found {condition!r:.80}. Fix: give `when` a function of two parameters"
            )
    check_rules(gate.rules, known, "`gate`")


def check_rules(rules: Sequence[Rule], known: Sequence[str], title: str) -> None:
    """Raise an error for gate rules that have no effect; `title` begins the message.

    Raises:
        ConfigError: a rule names unknown tools, or earlier rules already decide all its tools.
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
    """Split the `tools` option: return all tools for a `Toolbox`, and the agents among them."""
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
        return cast("OwnTools", tools), {}  # `Toolbox` raises the error.
    own_tools = [tool.tool if isinstance(tool, AgentTool) else tool for tool in tools]
    return own_tools, {tool.name: tool for tool in tools if isinstance(tool, AgentTool)}


def screens_of(
    given: Screen | Sequence[Screen], asked: Mapping[str, object]
) -> tuple[dict[str, ScreenCallback], dict[str, AgentPlan]]:
    """Return the callbacks of the screen functions, and the plans of the screen agents, by name.

    Args:
        given: the functions and agents that judge what the user says.
        asked: the options of the runs, for agents that use the model of the run.

    Raises:
        ConfigError: a screen is neither a function nor an agent with an `output_type`, or two
            screens have one name.
    """
    functions: dict[str, ScreenCallback] = {}
    agents: dict[str, AgentPlan] = {}
    listed = (given,) if callable(given) or isinstance(given, NamedAgent) else given
    for screen in listed:
        if isinstance(screen, NamedAgent):
            name = screen.name
        else:
            name = getattr(screen, "__name__", type(screen).__name__)
        if name in agents or f"{SCREEN}:{name}" in functions:
            raise ConfigError(
                f"`screen`: expected screens of different names, found {name!r} twice. Fix: rename "
                "one of the functions or agents"
            )
        if isinstance(screen, NamedAgent):
            agents[name] = _screen_plan(screen, asked)
        else:
            functions[f"{SCREEN}:{name}"] = screens.screen_callback(screen)
    return functions, agents


def _screen_plan(agent: NamedAgent, asked: Mapping[str, object]) -> AgentPlan:
    """Return the plan of an agent that screens.

    Raises:
        ConfigError: the agent has no `output_type`, so its answer is no verdict.
    """
    plan = AgentPlan.of(agent, asked)
    if plan.opener.terms.final is None:
        raise ConfigError(
            f"`screen`: expected an agent whose answer is a verdict, found {agent.name!r}, which "
            "answers by text. Fix: give it output_type=bool, or a type with `passed` and `answer`"
        )
    return plan


def _service_of(label: str) -> str:
    return label.partition(":")[0]


def active_names(
    given: Sequence[str], tools: Sequence[ToolSpec], resources: AgentResources
) -> tuple[str, ...]:
    """Check the names in `active_tools`, and return them with the names of the loop's own tools.

    Raises:
        ConfigError: no tool has one of the names.
    """
    known = checked_tool_names("active_tools", given, tools)
    return (*known, *(name for name in resources.own if name not in known))
