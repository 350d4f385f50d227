"""Adversary: answers a simulated run's effects in hostile ways, as a list of choices decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast, final

from ..effects import AskHuman, CallModel, CheckCalls, Effect, Invoke, StartRun
from ..events import CallbackAnswer, CallCheck, RequestYielded, Steered
from ..graph import NodeGraph
from ..node_protocol import unwrapped
from ..nodes import Screen, Screened
from ..policy import Approval, Rule, asked
from ..run import Run
from ..spending import Budget, Spent
from ..tools import ToolOutcome, unknown_outcome
from ..values import Message, Reply, ToolCall, ToolResult, Usage, UserMessage, call_key, evolve
from .callbacks import answered_by_a_callback
from .choices import Choices
from .replies import answered_by_a_model, are_arguments, unfit_arguments
from .sim import ChildAnswer, World
from .subject import rules_of_gate

__all__ = ["Adversary", "steered_by_a_caller"]

T = TypeVar("T")

FINE: Final = ToolOutcome("fine", "ok")
RETURNS: Final[tuple[ToolOutcome | Exception, ...]] = (
    *(FINE, ToolOutcome("did not work", "error"), ToolOutcome("too slow", "timeout")),
    *(ToolOutcome('["a", "b"]', "ok"), ToolOutcome("x" * 2_000, "ok"), ToolOutcome("", "ok")),
    *(unknown_outcome("tool"), OSError("the tool broke"), FINE, FINE, FINE),
)
APPROVED: Final = Approval(approved=True)
DENIED: Final = (Approval(approved=False), Approval(approved=False, reason="No, thank you."))
DECISIONS: Final[tuple[Approval | Exception | None, ...]] = (
    *(APPROVED, *DENIED, *DENIED, *DENIED, None),
    Approval(approved=True, arguments={"text": "edited"}),
    Approval(approved=True, arguments='{"text": '),
    Approval(approved=True, arguments={"answer": "edited"}),
    *(ValueError("the approver broke"), APPROVED, APPROVED),
)
SPENT: Final = Spent(2, 1, Usage(20, 10))
MUCH: Final = Spent(5, 4, Usage(400, 200), 1.0, 0, 40.0)
KIND_CHILD: Final[ChildAnswer] = ("42", "ok", SPENT)
CHILDREN: Final[tuple[ChildAnswer | Exception | None, ...]] = (
    *(KIND_CHILD, ("It failed.", "error", SPENT), None, ("", "ok", Spent())),
    *(('["a", "b"]', "ok", SPENT), RuntimeError("the child broke"), KIND_CHILD),
    *(("42", "ok", MUCH), ("It gave up.", "error", MUCH)),
)
KIND_JUDGE: Final[ChildAnswer] = ("true", "ok", SPENT)
JUDGES: Final[tuple[ChildAnswer | Exception | None, ...]] = (
    *(KIND_JUDGE, ("false", "ok", SPENT), ("It failed.", "error", SPENT), None, KIND_JUDGE),
    *(('{"passed": false, "answer": "No."}', "ok", SPENT), ("42", "ok", MUCH), KIND_JUDGE),
    RuntimeError("the judge broke"),
)
"""The ends of agents that screen what the user says."""
LONG: Final = 1_000_000
"""The token count that a `wordy` adversary reports: more than any context window."""


@final
@dataclass
class Adversary:
    """Builds the `World` for `simulate` in which `choices` decide every answer.

    Args:
        graph: the graph that runs.
        choices: the numbers that decide the answers.
        stubborn: whether the model and the user's functions repeat their first answers, while
            tools, people and child runs succeed. A cycle without a limit then never ends.
        wordy: whether the model reports more tokens than its context window holds.
        repeatable: whether tools may run again after a crash.
        askers: maps the id of each effect to the name of the node that requested it.
        outer: the policy rules that apply in addition to each gate's own rules, outermost first.
        approvals: maps the name of a tool to whether every call of it needs an approval. Tools
            that decide by a predicate are missing: for them the choices decide.
    """

    graph: NodeGraph[Any]
    choices: Choices
    stubborn: bool = False
    wordy: bool = False
    repeatable: bool = False
    askers: Mapping[int, str] = field(default_factory=dict[int, str])
    outer: tuple[tuple[Rule, ...], ...] = ()
    approvals: Mapping[str, bool] = field(default_factory=dict[str, bool])
    _replies: dict[tuple[str, ...], Reply] = field(default_factory=dict[tuple[str, ...], Reply])
    _answers: dict[str, CallbackAnswer] = field(default_factory=dict[str, CallbackAnswer])
    _kept: dict[int, object] = field(default_factory=dict[int, object])

    @property
    def world(self) -> World:
        """The `World` for `simulate` whose functions give this adversary's answers."""
        return World(
            model=self._draw_reply,
            tool=lambda _: FINE if self.stubborn else _drawn_or_raise(self.choices.pick(RETURNS)),
            check=self._draw_checks,
            human=self._draw_decision,
            callback=self._draw_answer,
            child=self._draw_child,
            steer=lambda effect, run: evolve(
                steered_by_a_caller(run, self.choices), effect=effect.id
            ),
            repeatable=lambda _: self.repeatable,
        )

    def _draw_reply(self, effect: CallModel) -> Reply:
        if self.wordy:
            return evolve(answered_by_a_model(effect, self.choices), usage=Usage(LONG, 5))
        if not self.stubborn:
            return answered_by_a_model(effect, self.choices)
        question = (self.askers[effect.id], *[tool.name for tool in effect.request.tools])
        if question not in self._replies:
            self._replies[question] = answered_by_a_model(effect, self.choices)
        return self._replies[question]

    def _draw_checks(self, effect: CheckCalls) -> tuple[CallCheck, ...]:
        if self.stubborn:
            needs = [self.approvals.get(call.name, False) for call in effect.calls]
            return tuple([CallCheck(needs_approval=need) for need in needs])
        if self.choices.chance(16):
            raise RuntimeError("the check broke")
        # The conditions of all gates form one level, because a driver evaluates them together.
        nodes = self.graph.nodes.values()
        own = tuple([rule for node in nodes for rule in rules_of_gate(node) if rule.condition])
        levels = (*self.outer, own) if own else self.outer
        return tuple([self._draw_check(call, levels) for call in effect.calls])

    def _draw_check(self, call: ToolCall, levels: tuple[tuple[Rule, ...], ...]) -> CallCheck:
        if self.choices.chance(6) or not are_arguments(call.arguments):
            return CallCheck("The arguments do not fit.")
        always = self.approvals.get(call.name)
        # The condition of a rule is true, is false, or raises an error (None).
        drawn = [
            [(name, self.choices.pick((False, True, None))) for name in asked(rules, call.name)]
            for rules in levels
        ]
        return CallCheck(
            needs_approval=self.choices.chance(2) if always is None else always,
            met=tuple([tuple([name for name, holds in level if holds]) for level in drawn]),
            unmet=tuple(
                [tuple([name for name, holds in level if holds is False]) for level in drawn]
            ),
        )

    def _draw_decision(self, effect: AskHuman) -> Approval | None:
        if self.stubborn:
            return APPROVED
        return _drawn_or_raise(self._remember(effect, lambda: self.choices.pick(DECISIONS)))

    def _draw_child(self, effect: StartRun) -> ChildAnswer | None:
        node = self.graph.nodes[self.askers[effect.id]]
        judges = any(isinstance(one, Screen | Screened) for one in unwrapped([node]))
        ended: ChildAnswer | Exception | None = KIND_JUDGE if judges else KIND_CHILD
        if not self.stubborn:
            ends = JUDGES if judges else CHILDREN
            ended = self._remember(effect, lambda: self.choices.pick(ends))
        return _lower_to_budget(effect.budget, _drawn_or_raise(ended))

    def _draw_answer(self, effect: Invoke) -> CallbackAnswer:
        node, name = self.graph.nodes[self.askers[effect.id]], effect.callback
        known = self._answers.get(name) if self.stubborn else None
        if known is not None:
            return known
        answer = answered_by_a_callback(node, name, self.choices)
        # A generator's request is not repeated: the generator would then never end.
        if self.stubborn and not isinstance(answer, RequestYielded):
            self._answers[name] = answer
        return answer

    def _remember(self, effect: Effect, draw: Callable[[], T]) -> T:
        """Return the effect's stored answer; if it is missing or None, draw and store a new one."""
        known = self._kept.get(effect.id)
        if known is None:
            known = self._kept[effect.id] = draw()
        return cast("T", known)  # `draw` made this value for the same effect, so it is a T.


def _lower_to_budget(budget: Budget, ended: ChildAnswer | None) -> ChildAnswer | None:
    """Return the child's end with its tool calls lowered to the limit of its budget."""
    if ended is None or budget.tool_calls is None:
        return ended
    answer, status, spent = ended
    return answer, status, evolve(spent, tool_calls=min(spent.tool_calls, budget.tool_calls))


def _drawn_or_raise(answer: T | Exception) -> T:
    if isinstance(answer, Exception):
        # Raises a copy, because an exception keeps the tracebacks of all its earlier raises.
        raise type(answer)(*answer.args)
    return answer


def steered_by_a_caller(run: Run[Any], choices: Choices) -> Steered:
    """Return a random `Steered` event of a caller that iterates the run; it may change nothing.

    The caller may add a message, answer calls, replace the conversation, or remove tools.
    """
    more = (UserMessage(f"And {unfit_arguments(choices)!a}?"),) if choices.chance(3) else ()
    fewer = evolve(run.setup, tools=run.setup.tools[:1]) if choices.chance(16) else None
    another: tuple[Message, ...] | None = None
    if choices.chance(12):
        another = choices.pick(((UserMessage("Anew."),), (*run.messages, UserMessage("Go on."))))
    turn, results = run.turn, list[ToolResult]()
    if turn.calls and choices.chance(5):
        results = [
            ToolResult(call_key(turn.number, place), call.id, call.name, "mine")
            for place, call in enumerate(turn.calls)
            if not choices.chance(3)
        ]
    return Steered(run.at, 0, another, more, tuple(results), fewer)
