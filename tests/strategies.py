"""Hypothesis strategies of the project: values, events, and worlds that mean no good.

An adversary answers as a function of the effect's id or the call's key, never of how often it was
asked: a process that died and asks again must hear the same, or no two runs could be compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

from graphloop.effects import (
    AskAgent,
    AskHuman,
    AskModel,
    AskPerson,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    Request,
    StartRun,
    Tell,
    ToolQuestion,
)
from graphloop.errors import ConfigError
from graphloop.events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    Failure,
    ItemsListed,
    ModelReplied,
    NodeReturned,
    Queued,
    RequestYielded,
    Resumed,
    Setup,
    Started,
    Steered,
    StopRequested,
    ToolAsked,
    ToolReturned,
)
from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.media import FileId, Inline, MediaPart, MediaSource, Url
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.stop_check import StopCheck
from graphloop.policy.approvals import Approval
from graphloop.policy.policy import Rule, refuse_shadowed
from graphloop.run import History, Run
from graphloop.spending import Budget, Spent
from graphloop.testing.sim import ChildAnswer, Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.turn import CallVerdict, Turn
from graphloop.values import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Message,
    OpaquePart,
    OutputSpec,
    ReasoningPart,
    Reply,
    ResultStatus,
    Settings,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolKind,
    ToolResult,
    ToolSpec,
    ToolSpecs,
    Usage,
    UserMessage,
    UserPart,
    evolve,
)

T = TypeVar("T")

__all__ = [
    "QUESTION",
    "SETUP",
    "Adversary",
    "Steering",
    "adversaries",
    "call",
    "events",
    "fresh",
    "loop",
    "media_parts",
    "media_sources",
    "messages",
    "replied",
    "replies",
    "reply",
    "said",
    "setup",
    "spec",
    "unshadowed",
    "wrong",
]

QUESTION = (UserMessage("go"),)


def wrong(value: object) -> Any:
    """Return a value as of any type: for calls that are wrong on purpose."""
    return value


NAMES = ("read", "write", "client", "nowhere", "")
"""Two tools, a client tool, a tool that does not exist, and no name at all."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
counts = st.integers(0, 2**40)
usages = st.builds(Usage, counts, counts, counts, counts, counts, counts)
spents = st.builds(Spent, counts, counts, usages, finite, counts, finite)
amounts = st.none() | counts
budgets = st.builds(Budget, amounts, st.none() | finite, st.none() | finite, amounts)
ids = st.sampled_from(["", "a", "a", "b", "toolu_1"])
arguments = st.sampled_from(
    ["{}", '{"x": 1}', "", "{", '{"x": ', "null", "[]", '{"x": 1}{"x": 1}', "\x00", "[[["]
)
calls = st.builds(ToolCall, ids, st.sampled_from(NAMES), arguments, texts)
media_sources: st.SearchStrategy[MediaSource] = st.one_of(
    st.builds(Inline, st.binary(max_size=20)),
    st.builds(Url, texts),
    st.builds(FileId, texts, texts),
)
media_parts = st.builds(MediaPart, texts, media_sources, texts, texts)
user_parts: st.SearchStrategy[UserPart] = st.one_of(
    st.builds(TextPart, texts, texts),
    media_parts,
)
contents = st.one_of(texts, st.lists(user_parts, max_size=2).map(tuple))
assistant_parts: st.SearchStrategy[AssistantPart] = st.one_of(
    st.builds(TextPart, st.sampled_from(["", " ", "done"])),
    st.builds(ReasoningPart, texts, texts, texts, texts),
    st.builds(OpaquePart, texts),
    media_parts,
    calls,
)
assistant_messages = st.builds(
    AssistantMessage, st.lists(assistant_parts, max_size=4).map(tuple), texts, texts
)
statuses: st.SearchStrategy[ResultStatus] = st.sampled_from(
    ["ok", "error", "invalid", "unknown_tool", "denied", "timeout", "not_run", "unknown"]
)
tool_results = st.builds(ToolResult, texts, texts, texts, contents, statuses)
user_messages = st.builds(UserMessage, contents, texts)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, texts), user_messages, assistant_messages, tool_results
)
finish_reasons = st.sampled_from(FinishReason)
replies = st.builds(
    Reply, assistant_messages, finish_reasons, st.builds(Usage, counts), texts, texts, texts
)
kinds: st.SearchStrategy[ToolKind] = st.sampled_from(["function", "client", "agent", "provider"])
specs = st.builds(ToolSpec, texts, texts, texts, kinds, st.booleans(), texts, texts)
choices = st.builds(
    ToolChoice,
    st.sampled_from(["auto", "required", "none", "tool"]),
    texts,
    st.sampled_from(["every_step", "first_step"]),
)
settings = st.builds(
    Settings,
    st.none() | st.integers(1, 9),
    st.none() | finite,
    st.none() | finite,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | st.integers(),
    st.none() | st.booleans(),
    texts,
)
rules = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    st.lists(texts, max_size=2).map(tuple),
    texts,
    st.none() | finite,
    texts,
)
setups = st.builds(
    Setup,
    texts,
    st.lists(specs, max_size=2).map(tuple),
    settings,
    st.none() | choices,
    budgets,
    st.none() | st.builds(OutputSpec, texts, texts, texts),
    st.lists(st.lists(rules, max_size=2).map(tuple), max_size=2).map(tuple),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.none() | finite,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
failures = st.builds(Failure, texts, texts, texts, st.booleans())
notes = st.builds(UserMessage, texts, texts) | st.builds(SystemMessage, texts)
asks: st.SearchStrategy[Request] = st.one_of(
    st.builds(AskModel, texts, texts, texts, st.booleans(), st.none() | st.integers(1, 9)),
    st.builds(AskPerson, texts),
    st.builds(AskAgent, texts, texts, st.booleans()),
    st.builds(Tell, notes),
)
answers: st.SearchStrategy[CallbackAnswer] = st.one_of(
    st.builds(
        Changes,
        st.none() | st.lists(messages, max_size=2).map(tuple),
        st.none() | st.lists(texts, max_size=2).map(tuple),
        st.none() | choices,
        st.none() | texts,
        st.lists(specs, max_size=1).map(tuple),
        st.lists(texts, max_size=1).map(tuple),
    ),
    st.builds(StopRequested, st.lists(texts, max_size=2).map(tuple)),
    st.builds(
        NodeReturned,
        texts,
        json_values,
        texts,
        st.booleans(),
        st.lists(notes, max_size=2).map(tuple),
    ),
    st.builds(AnswerChecked, st.booleans(), texts, st.booleans()),
    st.builds(BranchesJoined, texts),
    st.builds(ItemsListed, st.lists(texts, max_size=3).map(tuple)),
    st.builds(RequestYielded, asks),
)
effect_ids = st.integers(1, 9)
conditions = st.lists(st.lists(texts, max_size=2).map(tuple), max_size=2).map(tuple)
checks = st.builds(CallCheck, texts, st.booleans(), conditions, conditions)
event_kinds: dict[type[Event], st.SearchStrategy[Event]] = {
    Started: st.builds(
        Started,
        finite,
        texts,
        texts,
        st.lists(messages, max_size=3).map(tuple),
        setups,
        json_values,
    ),
    ModelReplied: st.builds(ModelReplied, finite, effect_ids, replies, st.none() | finite),
    Resumed: st.builds(Resumed, finite),
    EffectsStarted: st.builds(
        EffectsStarted, finite, st.lists(effect_ids, max_size=3).map(tuple), spents
    ),
    CallsChecked: st.builds(
        CallsChecked, finite, effect_ids, st.lists(checks, max_size=3).map(tuple)
    ),
    ToolReturned: st.builds(
        ToolReturned, finite, effect_ids, contents, statuses, st.just(""), spents
    ),
    ToolAsked: st.builds(
        ToolAsked, finite, effect_ids, st.builds(ToolQuestion, texts, texts, texts), spents
    ),
    Decided: st.builds(Decided, finite, effect_ids, st.booleans(), texts, texts),
    CallbackReturned: st.builds(CallbackReturned, finite, effect_ids, answers),
    EffectFailed: st.builds(EffectFailed, finite, effect_ids, failures, spents, st.booleans()),
    ChildEnded: st.builds(
        ChildEnded, finite, effect_ids, texts, statuses, spents, texts, json_values, st.booleans()
    ),
    Steered: st.builds(
        Steered,
        finite,
        effect_ids,
        st.none() | st.lists(messages, max_size=2).map(tuple),
        st.lists(messages, max_size=2).map(tuple),
        st.lists(tool_results, max_size=2).map(tuple),
        st.none() | setups,
    ),
    Queued: st.builds(Queued, finite, user_messages, st.booleans()),
    Cancelled: st.builds(Cancelled, finite, texts, st.booleans(), st.booleans(), spents),
}


@st.composite
def _event(draw: st.DrawFn) -> Event:
    # Its own strategy, because Hypothesis warns of a strategy whose repr is very long.
    kinds: st.SearchStrategy[Event] = st.one_of(*event_kinds.values())
    return draw(kinds)


events = _event()
"""Every event with every kind of content; texts hold no lone surrogates, floats are finite."""


def spec(name: str, kind: ToolKind = "function", *, ends: bool = False, lock: str = "") -> ToolSpec:
    """Return a tool on offer."""
    return ToolSpec(name, f"does {name}", '{"type": "object"}', kind, ends, "", lock)


def setup(*, client: bool = True) -> Setup:
    """Return a setup with two tools, and a client tool if wanted."""
    tools = (spec("read"), spec("write"), *((spec("client", "client"),) if client else ()))
    return Setup("model", tools)


SETUP = setup()


def call(name: str = "read", call_id: str = "", arguments: str = "{}") -> ToolCall:
    """Return a call; its id is empty unless given, for ids must not matter."""
    return ToolCall(call_id, name, arguments)


def said(*parts: AssistantPart | str) -> AssistantMessage:
    """Return what a model said, strings as text."""
    return AssistantMessage(
        tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    )


def reply(*parts: AssistantPart | str, finish: FinishReason | None = None) -> Reply:
    """Return a reply; its finish reason follows from its calls unless given."""
    message = said(*parts)
    natural = FinishReason.TOOL_CALLS if message.calls else FinishReason.STOP
    return Reply(message, finish or natural, Usage(10, 5))


def fresh(turn: Turn | None = None, *, messages: Sequence[Message] = QUESTION) -> Run[None]:
    """Return a run at the beginning of a turn with the usual tools."""
    return Run(
        id="r",
        node="node",
        state=None,
        setup=setup(),
        at=0.0,
        messages=History(messages),
        turn=turn or Turn(number=0, tools=ToolSpecs(setup().tools)),
    )


def replied(answer: Reply, *verdicts: CallVerdict | None, retries: int = 0) -> Run[None]:
    """Return a run whose turn has this reply, and these verdicts on its calls."""
    return fresh(
        Turn(
            number=0,
            tools=ToolSpecs(setup().tools),
            reply=answer,
            calls=answer.message.calls,
            verdicts=verdicts,
            retries=retries,
            usage=answer.usage,
        )
    )


STANDARD = Standard()


def loop(
    nodes: Standard = STANDARD,
    *,
    max_steps: int = 6,
    max_consecutive_tool_errors: int = 3,
    max_consecutive_denials: int = 9,
    max_pauses: int = 2,
    concurrency: int = 3,
    callback: str = "",
) -> NodeGraph[None]:
    """Return the standard loop with small bounds, and with the rest of these nodes."""
    stop = StopCheck(
        max_steps=max_steps,
        max_consecutive_tool_errors=max_consecutive_tool_errors,
        max_consecutive_denials=max_consecutive_denials,
        max_pauses=max_pauses,
    )
    prepare = PrepareStep(callback=callback) if callback else nodes.prepare
    execute = dataclasses.replace(nodes.execute, max_tool_concurrency=concurrency)
    table = standard_edges(nodes._replace(prepare=prepare, execute=execute, stop=stop))
    return NodeGraph("agent", prepare, table)


Steering: TypeAlias = Callable[[Run[None]], Steered]
"""What a caller says when it sees the run; time and effect are filled in by the simulation."""


def unsteered(run: Run[None]) -> Steered:
    """Let the run go on as it is."""
    return Steered(run.at, 0)


@dataclass(frozen=True)
class Adversary:
    """A world that answers by the effect's id or the call's key, from these few lists.

    `models` may hold exceptions to raise; `tools` likewise. `decisions` holds None where nobody
    ever answers. `repeatable` is whether tools may run again after a crash.
    """

    models: tuple[Reply | Exception, ...]
    tools: tuple[ToolOutcome | Exception, ...] = (ToolOutcome("fine", "ok"),)
    checks: tuple[CallCheck | Exception, ...] = (CallCheck(),)
    decisions: tuple[Approval | Exception | None, ...] = (Approval(True),)
    callbacks: tuple[CallbackAnswer | Exception, ...] = (Changes(),)
    children: tuple[ChildAnswer | Exception | None, ...] = (("42", "ok", Spent(1, 1)),)
    steering: tuple[Steering, ...] = (unsteered,)
    repeatable: bool = False

    @property
    def world(self) -> World:
        """The same adversary, as the simulation wants it."""
        return World(
            model=self.model,
            tool=self.tool,
            check=self.check,
            human=self.human,
            callback=self.callback,
            child=self.child,
            steer=self.steer,
            repeatable=lambda _: self.repeatable,
        )

    def model(self, effect: CallModel) -> Reply:
        """Reply by the effect's id."""
        return _given(self.models[effect.id % len(self.models)])

    def tool(self, effect: CallTool) -> ToolOutcome:
        """Return by the call's key."""
        return _given(_pick(self.tools, effect.key))

    def check(self, effect: CheckCalls) -> tuple[CallCheck, ...]:
        """Check by turn and place."""
        return tuple(
            _given(_pick(self.checks, f"{effect.turn}.{place}"))
            for place in range(len(effect.calls))
        )

    def human(self, effect: AskHuman) -> Approval | None:
        """Decide by the call's key."""
        return _given(_pick(self.decisions, effect.key))

    def callback(self, effect: Invoke) -> CallbackAnswer:
        """Change by the effect's id."""
        answer = self.callbacks[effect.id % len(self.callbacks)]
        if isinstance(answer, Exception):
            raise type(answer)(*answer.args)
        return answer

    def child(self, effect: StartRun) -> ChildAnswer | None:
        """End by the call's key."""
        return _given(_pick(self.children, effect.key))

    def steer(self, effect: AwaitCaller, run: Run[None]) -> Steered:
        """Steer by the effect's id."""
        return self.steering[effect.id % len(self.steering)](run)

    def run(
        self,
        graph: NodeGraph[None],
        *,
        messages: Sequence[Message] = QUESTION,
        setup: Setup = SETUP,
        seed: int = 0,
        crash_after: Sequence[int] = (),
        abort_after: int | None = None,
        events_max: int | None = None,
    ) -> Simulation[None]:
        """Simulate a run of `graph` in this world."""
        return simulate(
            graph,
            messages,
            self.world,
            None,
            setup=setup,
            seed=seed,
            crash_after=crash_after,
            abort_after=abort_after,
            events_max=events_max,
        )


def _given(answer: T | Exception) -> T:
    if isinstance(answer, Exception):
        # A fresh one each time: an exception that is raised again keeps its old tracebacks.
        raise type(answer)(*answer.args)
    return answer


def _pick(answers: Sequence[T], key: str) -> T:
    return answers[sum(map(ord, key)) % len(answers)]


def _storm(size: int) -> Reply:
    """Return a reply with many calls, all under one id."""
    names = ("read", "write", "nowhere")
    return reply("so be it", *(call(names[at % 3], "same") for at in range(size)))


model_moves = st.one_of(
    st.sampled_from(
        [
            reply("done"),
            reply(call()),
            reply(call("read", "x"), call("read", "x"), call("write", "x")),
            reply(call("client"), call("read")),
            reply(call("nowhere"), call("")),
            reply(),
            reply(" "),
            reply(finish=FinishReason.PAUSE),
            reply(OpaquePart("{}"), finish=FinishReason.PAUSE),
            reply(call(), finish=FinishReason.PAUSE),
            reply("half", call("read", "", '{"x": '), finish=FinishReason.LENGTH),
            reply("no", call(), finish=FinishReason.REFUSAL),
            reply(finish=FinishReason.REFUSAL),
            reply(call(), finish=FinishReason.CONTENT_FILTER),
            reply("full", call(), finish=FinishReason.CONTEXT_WINDOW),
            reply(call(), finish=FinishReason.STOP),
            reply("stopped here", finish=FinishReason.STOP_SEQUENCE),
            _storm(50),
        ]
    ),
    replies,
)
tool_moves: st.SearchStrategy[ToolOutcome | Exception] = st.one_of(
    st.builds(ToolOutcome, contents, statuses), st.just(OSError("disk"))
)
human_moves: st.SearchStrategy[Approval | Exception | None] = st.one_of(
    st.builds(Approval, st.booleans(), texts, st.sampled_from(["", "{}"])),
    st.just(ValueError("what?")),
    st.none(),
)
check_moves: st.SearchStrategy[CallCheck | Exception] = st.one_of(
    st.builds(CallCheck, st.sampled_from(["", "", "bad arguments"]), st.booleans()),
    st.just(RuntimeError("predicate")),
)


def _lists(moves: st.SearchStrategy[T], most: int) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(moves, min_size=1, max_size=most).map(tuple)


adversaries = st.builds(
    Adversary,
    _lists(model_moves, 6),
    _lists(tool_moves, 4),
    _lists(check_moves, 3),
    _lists(human_moves, 3),
)
"""Worlds that raise, lie, pause, cut, refuse and repeat ids; models here never raise."""

failing = st.builds(
    Adversary,
    _lists(model_moves | st.just(ConnectionError("line")), 6),
    _lists(tool_moves, 4),
    _lists(check_moves, 3),
    _lists(human_moves, 3),
)
"""The same, with models that may also raise."""


def with_ids(adversary: Adversary, id_of: Callable[[int], str]) -> Adversary:
    """Return the adversary with other provider ids on all its calls."""
    place = 0
    models: list[Reply | Exception] = []
    for one in adversary.models:
        if isinstance(one, Reply):
            parts: list[AssistantPart] = []
            for part in one.message.parts:
                if isinstance(part, ToolCall):
                    parts.append(evolve(part, id=id_of(place)))
                    place += 1
                else:
                    parts.append(part)
            message = evolve(one.message, parts=tuple(parts))
            models.append(evolve(one, message=message))
        else:
            models.append(one)
    return dataclasses.replace(adversary, models=tuple(models))


def answers_of(effect: Effect) -> dict[str, Event]:
    """Return one event of each kind that names this effect."""
    every: tuple[Event, ...] = (
        ModelReplied(1.0, effect.id, reply("late")),
        CallsChecked(1.0, effect.id, (CallCheck(),)),
        ToolReturned(1.0, effect.id, "late"),
        Decided(1.0, effect.id, approved=True),
        CallbackReturned(1.0, effect.id, Changes()),
        ChildEnded(1.0, effect.id, "late"),
        Steered(1.0, effect.id),
        EffectFailed(1.0, effect.id, Failure("E", "m")),
    )
    return {type(event).__name__: event for event in every}


def unshadowed(given: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules without those that no call can reach: a gate refuses these."""
    kept: list[Rule] = []
    for rule in given:
        with suppress(ConfigError):
            refuse_shadowed([*kept, rule], len(kept))
            kept.append(rule)
    return tuple(kept)
