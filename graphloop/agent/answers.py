"""Answers to the calls that a run waits for: decisions of people, and results of client tools.

A pending call runs only if its answer is a valid approval of this call. The call is denied if the
approval's token is unsigned, expired, malformed or of another call. The call is also denied if the
answer has another type, or if the edited arguments do not fit the tool.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast, final

from msgspec import Struct, field
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from ..driver import Approver, LeftOpen, Ports, Resumption
from ..effects import AskHuman, CallTool
from ..errors import ConfigError, StoreError, nearest
from ..events import Decided, Event, Queued, ToolReturned
from ..policy import AS_IT_WAS, Approval, Policy, Rule, may_ask, refuse_edit, verify
from ..questions import Pending, ask_key, bad_answer, bad_yes, capability_of, question_of
from ..run import Run
from ..stores import commands_in, is_command
from ..tools import Toolbox, ToolOutcome, outcome_of_error, outcome_of_value
from ..values import ResultStatus, UserMessage, UserPart, evolve
from .hooks import lent_deps
from .inputs import AnswersInput
from .options import Decide, Decision

__all__ = [
    "RESULT",
    "Answers",
    "ToolApprover",
    "approval_from",
    "approver_alone",
    "check_given_answer",
    "child_approver",
    "outcome_of",
    "path_key",
    "with_commands",
]

S = TypeVar("S")

CLIENT_RESULT_CHARS_MAX: Final = 100_000
LOG: Final = logging.getLogger("graphloop")
RESULT: Final = "=result"
"""The suffix of a tool result's mailbox key; the key alone may hold an approval of the call."""


class _Posted(Struct, frozen=True, omit_defaults=True):
    """An answer in the form that a store's mailbox keeps until the run is resumed."""

    approved: bool | None = None
    reason: str = ""
    arguments: str = ""
    token: str = ""
    at: float | None = None
    content: str | tuple[UserPart, ...] = ""
    status: ResultStatus = "ok"
    data: str = ""


class Answers(Struct, frozen=True):
    """A caller's approvals and client tool results, each by the key of its call.

    A key is `"c0.1"`, or `"c0.1/c2.0"` for a call in a child run. `given_at` maps a key to the time
    at which the approval was put into the store's mailbox.
    """

    approvals: Mapping[str, object] = field(default_factory=dict[str, object])
    tool_results: Mapping[str, object] = field(default_factory=dict[str, object])
    given_at: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def given(cls, answers: AnswersInput) -> Answers:
        """Build the answers from the caller's `approvals` and `tool_results`; None is empty."""
        approvals, results = answers.get("approvals"), answers.get("tool_results")
        return cls({} if approvals is None else approvals, {} if results is None else results)

    def refuse_wrong_types(self) -> None:
        """Raise an error if an approval is neither a bool nor an `Approval` with a bool.

        Raises:
            ConfigError: an approval has a wrong type; the message names its key.
        """
        for key, answer in self.approvals.items():
            check_given_answer(f"approvals[{key!r}]", answer)

    def refuse_unsigned(self) -> None:
        """Raise an error if an approval has no token; a run with an `approval_secret` needs one.

        Raises:
            ConfigError: an approval has no token; the message names the approval and the fix.
        """
        for key, answer in self.approvals.items():
            approval = approval_from(answer)
            if approval.approved and not approval.token:
                raise ConfigError(
                    f"approvals[{key!r}] has no token, and with an `approval_secret` only a signed "
                    "approval counts. Fix: answer with `call.approve()` of the call in "
                    "`result.pending`."
                )

    def check(self, asks: Mapping[str, str]) -> None:
        """Raise an error if the run does not wait for one of these answers.

        `asks` maps the key of each waiting call to the kind of its answer.

        Raises:
            ConfigError: an answer has another key; the message lists the keys of waiting calls.
        """
        for option, given, kind in (
            ("approvals", self.approvals, "approval"),
            ("tool_results", self.tool_results, "client_tool"),
        ):
            keys = [key for key, asked in asks.items() if asked == kind]
            for key in given:
                if key not in keys:
                    raise ConfigError(
                        f"`{option}` answers {key!r}, which the run does not wait for; it waits "
                        f"for {', '.join(keys) or 'nothing of this kind'}.{nearest(key, keys)}"
                    )

    def only(self, keys: Container[str]) -> Answers:
        """Return the answers with these keys."""
        approvals = {key: one for key, one in self.approvals.items() if key in keys}
        results = {key: one for key, one in self.tool_results.items() if key in keys}
        return Answers(approvals, results, self.given_at)

    def refuse_bad_edits(self, run: Run[Any], toolbox: Toolbox) -> None:
        """Raise an error if edited arguments do not fit their tool, before any event is recorded.

        Raises:
            ConfigError: edited arguments are invalid; the message names the approval and mistake.
        """
        for effect in run.pending.values():
            if isinstance(effect, AskHuman) and (key := path_key(run, effect)) in self.approvals:
                place, approval = f"approvals[{key!r}]", approval_from(self.approvals[key])
                refuse_edit(place, approval, unknown=effect.unknown)
                problem = approval.approved and bad_answer(effect, approval, toolbox)
                if problem:
                    raise ConfigError(f"{place}: the edited arguments fail: {problem}")

    def posts(self, now: float) -> Iterator[tuple[str, str]]:
        """Yield a mailbox key and the encoded text of each answer; `now` is the default time."""
        for key, answer in self.approvals.items():
            said, at = approval_from(answer), self.given_at.get(key, now)
            posted = _Posted(said.approved, said.reason, said.edit, said.token, at)
            yield key, Encoder().encode(posted).decode()
        for key, value in self.tool_results.items():
            outcome = outcome_of(value)
            posted = _Posted(content=outcome.content, status=outcome.status, data=outcome.data)
            yield f"{key}{RESULT}", Encoder().encode(posted).decode()

    @classmethod
    def of_posts(cls, posted: Mapping[str, str]) -> Answers:
        """Decode the answers from the texts in a store's mailbox, by key.

        Raises:
            StoreError: a text cannot be decoded.
        """
        approvals: dict[str, object] = {}
        results: dict[str, object] = {}
        given_at: dict[str, float] = {}
        for key, text in posted.items():
            if is_command(key):
                continue
            try:
                said = Decoder(_Posted).decode(text)
            except ValueError as error:
                raise StoreError(f"the answer to {key!r} cannot be read: {error}") from error
            if said.approved is None:
                results[key.removesuffix(RESULT)] = ToolOutcome(
                    said.content, said.status, said.data
                )
            else:
                edit = said.arguments or None
                approvals[key] = Approval(said.approved, said.reason, edit, said.token)
                if said.at is not None:
                    given_at[key] = said.at
        return cls(approvals, results, given_at)

    def events(self, run: Run[Any], toolbox: Toolbox, ports: Ports[Any]) -> Iterator[Event]:
        """Yield the events that answer the pending calls of one run, in the order of the calls."""
        for effect in run.pending.values():
            if not isinstance(effect, AskHuman | CallTool):
                continue
            key = path_key(run, effect)
            if isinstance(effect, AskHuman) and key in self.approvals:
                yield self._decision_event(run, effect, key, toolbox, ports.secret, ports.clock())
            elif isinstance(effect, CallTool) and effect.client and key in self.tool_results:
                outcome = outcome_of(self.tool_results[key])
                content = ports.sendable(outcome.content, effect.call.name, run)
                yield ToolReturned(ports.clock(), effect.id, content, outcome.status, outcome.data)

    def _decision_event(
        self,
        run: Run[Any],
        ask: AskHuman,
        key: str,
        toolbox: Toolbox,
        secret: bytes | None,
        now: float,
    ) -> Decided:
        approval, given_at = approval_from(self.approvals[key]), self.given_at.get(key)
        if not approval.approved:
            return Decided(now, ask.id, approved=False, reason=approval.reason)
        refusal = ""
        if not approval.token and secret is not None:
            refusal = "the approval is not signed."
        elif approval.token:
            at, claim = now if given_at is None else given_at, capability_of(run, ask)
            problem = verify(approval.token, claim, secret=secret, now=at)
            refusal = f"the approval is {problem}." if problem else ""
        if not refusal and ask.unknown and approval.edit:
            refusal = AS_IT_WAS
        unfit = bad_answer(ask, approval, toolbox)
        if not refusal and unfit is not None:
            refusal = f"the edited arguments fail: {unfit}"
        if refusal:
            return Decided(now, ask.id, approved=False, reason=refusal)
        return Decided(now, ask.id, True, approval.reason, approval.edit, given_at)  # noqa: FBT003


def path_key(run: Run[Any], effect: AskHuman | CallTool) -> str:
    """Return the key of a call, after the path of its child run: `"c0.1/c2.0"`."""
    key, path = ask_key(effect), run.id.partition("/")[2]
    return f"{path}/{key}" if path else key


def check_given_answer(place: str, answer: object) -> None:
    """Raise an error if an answer is neither a bool nor an `Approval` with a bool.

    Raises:
        ConfigError: the answer has another type; `place` begins the message.
    """
    said = answer.approved if isinstance(answer, Approval) else answer
    if not isinstance(said, bool):
        raise ConfigError(f"{place}: expected True, False or an Approval, found {answer!r:.80}")


def approval_from(answer: object) -> Approval:
    """Convert an approver's answer to an `Approval`; an answer of another type declines."""
    if not isinstance(answer, Approval):
        neither = f"the approver answered {answer!r:.80}, neither a yes nor a no."
        return Approval(answer is True, "" if isinstance(answer, bool) else neither)
    if answer.approved is not True:
        return Approval(approved=False, reason=_encodable(answer.reason))
    edit, token = _encodable(answer.edit) or None, _encodable(answer.token)
    return Approval(True, _encodable(answer.reason), edit, token)  # noqa: FBT003


def _encodable(value: object) -> str:
    """Return `str(value)` with lone surrogates replaced, so that a journal can encode the text."""
    return str(value).encode("utf-8", "replace").decode()


def outcome_of(value: object) -> ToolOutcome:
    """Convert a client tool's result to a `ToolOutcome`; an exception becomes an error outcome."""
    if isinstance(value, ToolOutcome):
        return value
    if isinstance(value, Exception):
        return outcome_of_error(value, CLIENT_RESULT_CHARS_MAX)
    return outcome_of_value(value, CLIENT_RESULT_CHARS_MAX)


@final
class ToolApprover(Struct, frozen=True):
    """Asks the caller's `decide` function about the calls of one run.

    The approver of a child's own agent leaves a call open if a gate of a parent run asks about the
    call. A parent's gate asks by its current rules, or by its rules in the journal. The call then
    waits for the parent's approver.

    Args:
        decide: the caller's function, which returns True, False or an `Approval`.
        agents: the names of the agents that contain the run, outermost first.
        own: the rules of gates that do not come from a parent run.
        parent_rules: the current rules of the parent runs' gates; None for a run without a parent.
    """

    decide: Decide[Any]
    agents: tuple[str, ...] = ()
    own: tuple[tuple[Rule, ...], ...] = ()
    parent_rules: tuple[tuple[Rule, ...], ...] | None = None

    def with_deps(self, deps: object) -> ToolApprover:
        """Return the approver of a run with these dependencies."""
        return replace(self, decide=lent_deps(self.decide, deps))

    async def __call__(self, effect: AskHuman, run: Run[Any]) -> Approval:
        """Call `decide` for one pending call and return its answer as an `Approval`.

        An answer that is not an approval declines the call.

        Raises:
            ConfigError: the answer edits a call that may have run.
            LeftOpen: a gate of a parent run asks about the call, so the parent's approver decides.
        """
        if self.parent_rules is not None:
            recorded = [rules for rules in run.setup.rules if rules not in self.own]
            if any(may_ask(rules, effect.call.name) for rules in (*recorded, *self.parent_rules)):
                raise LeftOpen
        pending = question_of(run, effect, path_key(run, effect), self.agents)
        # `with_deps` has already given `deps` to a function that takes them.
        answer = cast("Callable[[Pending], Decision]", self.decide)(pending)
        if inspect.isawaitable(answer):
            answer = await answer
        approval = approval_from(answer)
        refuse_edit(pending.key, approval, unknown=pending.unknown)
        if approval.approved and not approval.edit and (problem := bad_yes(pending.ask)):
            # A foreign server chose the form, so the run goes on, and the server is told no.
            LOG.warning("run %s: %s It counts as declined.", run.id, problem)
        return approval


def child_approver(
    inherited: Approver[Any] | None,
    own: Approver[Any] | None,
    agent: str,
    parent: Run[Any],
    gates: Iterable[Policy],
) -> Approver[Any] | None:
    """Return the approver that decides the approval questions of a child run, or None.

    Args:
        inherited: the parent's approver.
        own: the approver of the child's agent, used only if `inherited` is None.
        agent: the name of the child's agent.
        parent: the run that starts the child.
        gates: the gates of the parents, which also apply to the child.
    """
    rules = tuple([gate.rules for gate in gates])
    approver: object = inherited or own  # A callable's type is no pattern for a class.
    if not isinstance(approver, ToolApprover):
        return inherited or own
    if inherited is None:
        approver = replace(approver, parent_rules=rules)
    elif approver.parent_rules is not None:
        known = {*parent.setup.rules, *approver.parent_rules}
        new = tuple([listed for listed in rules if listed not in known])
        approver = replace(approver, own=(*approver.own, *new))
    return replace(approver, agents=(*approver.agents, agent))


def approver_alone(own: Approver[Any] | None, run: Run[Any]) -> Approver[Any] | None:
    """Return the approver of a run that is resumed without its parents.

    Questions that the parents' gates ask in a child run still wait for the parents' approvers.
    """
    if isinstance(own, ToolApprover) and run.setup.depth:
        return replace(own, parent_rules=())
    return own


def with_commands(tree: Resumption[S], posted: Mapping[str, str], now: float) -> Resumption[S]:
    """Return a resumption that also obeys the commands in the mailbox of its run.

    A message that the run has had already counts no second time. The others go before the answers.
    """
    heard: list[Queued] = []
    for command in commands_in(posted):
        if command.kind == "cancel":
            tree = evolve(tree, cancelled=command.text)
        elif command.signal_id not in tree.run.inbox.signals:
            origin = "steering" if command.kind == "steer" else "follow_up"
            said = UserMessage(command.text, origin)
            heard.append(Queued(now, said, command.kind == "follow_up", command.signal_id))
    return evolve(tree, answers=(*heard, *tree.answers)) if heard else tree
