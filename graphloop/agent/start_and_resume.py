"""Start a new run from a question, or resume a run, and return its stream."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from os import urandom
from typing import Any, Final, TypeVar, cast

from ..conversation import Repaired, repaired
from ..driver import AsyncDriver, ChildRun, Ports, Resumption
from ..errors import ConfigError
from ..events import Started
from ..run import History, Run, Spent
from ..stores import check_run_id, state_after
from ..values import Message, SystemMessage, UserMessage, evolve
from .answers import Answers, approver_alone
from .conversation_answers import ConversationAnswers
from .inputs import (
    AccessOptions,
    AnswersInput,
    CallInput,
    CallOptions,
    ConversationInput,
    IteratedInput,
    MessageInput,
    PromptInput,
    QuestionInput,
    ResumeInput,
    asked_message,
    messages_of,
)
from .options import refuse_unknown_options
from .result import RunHandle, RunResult, spent_by
from .resumption import (
    child_resumption,
    not_over,
    opening_of,
    other_revision,
    refuse_other_model,
    refuse_other_rules,
    refuse_unattended,
    resumption,
)
from .stream import RunStream
from .terms import OVERRIDES, Override, RunTerms

__all__ = ["conversation", "first_event", "for_call", "overriding", "resume_run", "start_run"]

S = TypeVar("S")


QUESTION: Final = frozenset(QuestionInput.__annotations__)
ANSWERS: Final = frozenset(AnswersInput.__annotations__)
CALL: Final = frozenset(CallOptions.__annotations__)
RESUME_OPTIONS: Final = frozenset(AccessOptions.__annotations__)


def start_run(
    terms: RunTerms[S],
    state: S,
    prompt: PromptInput | None,
    question: QuestionInput[Any],
    *,
    attended: bool = False,
    keep: bool = True,
) -> RunStream[Any, S]:
    """Return the stream of a new run; the run starts when the stream is first read.

    The conversation is copied now: later changes of the caller's lists have no effect.

    Args:
        terms: the terms of the run.
        state: the initial user state of the run.
        prompt: the user's question, which follows the messages of `question`; or None.
        question: the options of the call: the conversation, and answers to its open tool calls.
        attended: whether the caller iterates the run turn by turn.
        keep: whether the stream keeps its parts, so that every reader gets all of them.
    """
    if OVERRIDES.get() is not None or not question.keys() <= QUESTION:
        terms, question = for_call(terms, question, attended=attended)
    # `_read_input` returns an error, which the stream then shows like every failure.
    read = _read_input(terms, prompt, question)

    async def open_run() -> RunHandle[S]:
        if isinstance(read, ConfigError):
            raise read
        messages, warnings, handed = read
        deps, said = question.get("deps"), terms.options.instructions
        if messages and callable(said):
            messages, said = await _with_instructions(terms, messages, deps)
        store, is_stored = terms.shared.store(), terms.shared.is_given
        run_id = question.get("run_id")
        if run_id is None and handed is not None and is_stored:
            run_id = await handed.run_id(terms.graph.name, store)
        ports = evolve(
            terms.ports(store, (), deps),
            attended=attended,
            stoppable=keep or attended,
            shows_steps=keep or attended or terms.reads_steps,
            # Even without a store, an iterated run can be resumed after its caller was cancelled.
            resumable=attended or is_stored,
            given_answer=None if handed is None else handed.given_answer(),
        )
        if state is not None or terms.state_type is not None:
            terms.check_state(state, kept=ports.kept)
        setup = evolve(terms.setup, attended=True) if attended else terms.setup
        run_id = urandom(16).hex() if run_id is None else run_id
        started = Started(
            *(ports.clock(), run_id, terms.graph.name, messages, setup, state),
            chat=terms.chat,
            revision=terms.revision() if is_stored else "",
        )
        return _make_handle(
            ports, started, terms, messages, instructed=bool(said), warnings=warnings
        )

    return RunStream(open_run, terms.graph, keep=keep, has_objects=terms.final is not None)


async def first_event(
    terms: RunTerms[Any], prompt: PromptInput | None, question: QuestionInput[Any]
) -> Started:
    """Return the first event of a new run that a worker will drive.

    Raises:
        ConfigError: an option is invalid; or the question answers calls: only `generate` can.
    """
    if OVERRIDES.get() is not None or not question.keys() <= QUESTION:
        terms, question = for_call(terms, question)
    read = _read_input(terms, prompt, question)
    if isinstance(read, ConfigError):
        raise read
    messages, _, handed = read
    if handed is not None:
        raise ConfigError(
            "a submitted run: expected a question, found answers to the calls of `messages`. Fix: "
            "start the run with `generate`."
        )
    if messages and callable(terms.options.instructions):
        messages, _ = await _with_instructions(terms, messages, question.get("deps"))
    if terms.state_type is not None:
        terms.check_state(None, kept=True)
    run_id = question.get("run_id") or urandom(16).hex()
    return Started(
        terms.clock(), run_id, terms.graph.name, messages, terms.setup, None, chat=terms.chat
    )


async def _with_instructions(
    terms: RunTerms[Any], messages: History[Message], deps: object
) -> tuple[History[Message], str | None]:
    """Ask the function for the instructions; return the first messages with them, and the text."""
    said = await terms.resources.instructions(deps)
    return conversation(None, messages, said)[0], said


def resume_run(
    terms: RunTerms[S],
    run: str | RunResult[Any, S],
    answers: AnswersInput[Any],
    *,
    attended: bool = False,
    keep: bool = True,
    ends: bool = False,
) -> RunStream[Any, S]:
    """Return the stream of a resumed run, which is given by its result or by its id.

    Args:
        terms: the terms that the run was started on.
        run: the run's id in the store, or the result with which the run parked.
        answers: decisions about the pending calls, and the results of client tools.
        attended: whether the caller iterates the run turn by turn, as when it was started.
        keep: whether the stream keeps its parts, so that every reader gets all of them.
        ends: whether the caller only ends the run, which calls no function, so needs no `deps`.
    """
    terms, asked = terms.current, answers.get("model")
    if terms.test_deps or not answers.keys() <= ANSWERS:
        terms, answers = _for_resume(terms, answers)
    given = Answers.given(answers)
    deps = answers.get("deps")

    async def open_run() -> RunHandle[S]:
        if not ends and (terms.deps_needs or "deps" in answers):
            terms.check_deps(answers)
        if isinstance(run, RunResult):
            kept_in, known, added = terms.shared.reopened(run.store), run.run, run.added
            opening, instructed, revision = run.opening, run.instructed, ""
            await not_over(run.run, kept_in, terms.graph)
        elif "/" in run and terms.shared.fleet.elsewhere is not None:
            root = terms.ports(terms.shared.stored(), (), deps)
            child, tree = await child_resumption(run, terms.graph, root, given)
            return _make_handle(child.ports, tree, child)
        else:
            kept_in, added = terms.shared.stored(), ()
            events = await kept_in.load(run)
            known = state_after(terms.graph, events)
            opening, instructed = opening_of(events, instructed=bool(terms.options.instructions))
            revision = other_revision(events, terms.revision())
        if asked is not None:
            refuse_other_model(known, terms.setup.model)
        refuse_other_rules(known, terms.setup.watch)
        if attended:
            refuse_unattended(known)
        ports = terms.ports(kept_in, added, deps)
        approve = approver_alone(ports.approve, known)
        ports = evolve(ports, attended=attended, approve=approve, revision=revision)
        tree = await resumption(known, ports, given)
        return _make_handle(ports, tree, terms, opening, instructed=instructed)

    return RunStream(open_run, terms.graph, keep=keep, has_objects=terms.final is not None)


def _make_handle(
    ports: Ports[S],
    begins: Started | Resumption[S],
    terms: RunTerms[S] | ChildRun[S],
    opening: Sequence[Message] = (),
    *,
    instructed: bool = False,
    warnings: tuple[str, ...] = (),
) -> RunHandle[S]:
    """Return the handle of a run that begins, or that goes on from its journal.

    Here alone a run gets its driver. In place of terms, a child run that a worker drives has what
    its parent opens it with; the parent's driver reads its answer and its limits.
    """
    # `Started` has no type for its state, which is that of the graph.
    state: Any = begins.state if isinstance(begins, Started) else begins.run.state
    driver: AsyncDriver[S] = AsyncDriver(terms.graph, ports, state)
    spent, turns, below = Spent(), 0, dict[str, Run[Any]]()
    if isinstance(begins, Started):
        run_id, seen = begins.run_id, driver.start(begins)
    else:
        run, run_id, below = begins.run, begins.run.id, begins.descendants
        if begins.cancelled is not None:
            driver.abort(begins.cancelled)
        seen = driver.resume(run, begins.answers, begins.children, seen=begins.seen)
        spent, turns = spent_by(run, below), len(run.record.steps)
    if isinstance(terms, ChildRun):
        return RunHandle(terms.graph, ports, driver, seen, run_id, spent, turns, children=below)
    listener = terms.options.on_step_finish
    return RunHandle(
        *(terms.graph, ports, driver, seen, run_id, spent, turns),
        children=below,
        on_step_finish=None if listener is None else terms.resources.step_listener(ports.deps),
        warnings=warnings,
        final=terms.final,
        limits=terms.limits,
        reads_steps=terms.reads_steps,
        opening=opening,
        instructed=instructed,
    )


def for_call(
    terms: RunTerms[S], question: Mapping[str, Any], *, attended: bool = False
) -> tuple[RunTerms[S], QuestionInput[Any]]:
    """Return the terms of a new run with options of its own, and its question without them.

    Raises:
        ConfigError: an option is unknown or invalid; no request has been sent.
    """
    terms = terms.current
    asked = terms.asked(question)
    given = {name: asked.pop(name) for name in CALL if name in asked}
    takes: type[object] = IteratedInput if attended else CallInput
    if terms.recast is None:
        takes = ConversationInput if attended else QuestionInput
        refuse_unknown_options(question, takes, "a run")
    refuse_unknown_options(asked, takes, "a run")
    return terms.with_options(given), cast("QuestionInput[Any]", asked)


@contextmanager
def overriding(terms: RunTerms[S], by: RunTerms[S]) -> Generator[None]:
    """Inside the `with` block, start runs on the terms `by` where they would start on `terms`."""
    token = OVERRIDES.set({**(OVERRIDES.get() or {}), terms.resources: Override(terms, by)})
    try:
        yield
    finally:
        OVERRIDES.reset(token)


def _for_resume(
    terms: RunTerms[S], answers: Mapping[str, Any]
) -> tuple[RunTerms[S], AnswersInput[Any]]:
    """Return the terms of a resume with access of its own, and its answers without it.

    Raises:
        ConfigError: an option is unknown, invalid, or one that a run keeps from its start.
    """
    asked = terms.asked(answers)
    kept = sorted(asked.keys() & (CALL - RESUME_OPTIONS))
    if kept:
        raise ConfigError(
            f"a resume: expected answers, or {', '.join(sorted(RESUME_OPTIONS))}, found "
            f"{', '.join(kept)}, which a run keeps from its start. Fix: leave it out; in a run "
            "that `iter` started, `turn.set_params` changes its settings."
        )
    given = {name: asked.pop(name) for name in RESUME_OPTIONS if name in asked}
    refuse_unknown_options(asked, ResumeInput, "a resume")
    return terms.with_options(given), cast("AnswersInput[Any]", asked)


def _read_input(
    terms: RunTerms[Any], prompt: PromptInput | None, question: QuestionInput[Any]
) -> tuple[History[Message], tuple[str, ...], ConversationAnswers | None] | ConfigError:
    """Return the first messages, the findings of their repair, and the answers to open calls.

    A `ConfigError` about them is returned, not raised.
    """
    run_id, options = question.get("run_id"), terms.options
    approvals, results = question.get("approvals"), question.get("tool_results")
    is_answered = approvals is not None or results is not None
    if terms.nesting.problem:
        return ConfigError(terms.nesting.problem)
    try:
        if terms.deps_needs or "deps" in question:
            terms.check_deps(question)
        if run_id is not None:
            check_run_id("run_id", run_id)
        messages, repairs = conversation(
            prompt,
            question.get("messages"),
            None if callable(options.instructions) else options.instructions,
            keep_open=is_answered,
            may_be_empty=not terms.needs_messages,
            repair=options.on_bad_history == "repair",
        )
        if not is_answered:
            return messages, repairs, None
        said, given = tuple(messages), Answers.given(question)
        handed = ConversationAnswers(said, given, terms.secret, terms.clock)
        handed.check(terms.resources.toolbox, terms.resources.children)
    except ConfigError as error:
        return error
    return messages, repairs, handed


def conversation(
    prompt: PromptInput | None,
    messages: Sequence[MessageInput] | None,
    instructions: str | None,
    *,
    keep_open: bool = False,
    may_be_empty: bool = False,
    repair: bool = True,
) -> tuple[History[Message], tuple[str, ...]]:
    """Return the messages that a run starts with, and a description of each repair in them.

    Args:
        prompt: the question, which follows the messages; or None.
        messages: the conversation so far, or None.
        instructions: the text of the system message, which is put first.
        keep_open: whether calls at the end may stay without results, because the run answers them.
        may_be_empty: whether a run without any message is allowed.
        repair: whether calls without results, and results without calls, are repaired.

    Raises:
        ConfigError: neither prompt nor messages, a message of the wrong form, a prompt after open
            calls, or a conversation that needs a repair where `repair` is False.
    """
    if prompt is None and messages is None:
        if may_be_empty:
            return History(), ()
        raise ConfigError("a run: expected `prompt=`, `messages=` or both, found neither")
    if prompt is not None and keep_open:
        raise ConfigError(
            "`prompt`: expected none beside `approvals` or `tool_results`, which answer the calls "
            "at the end of `messages`. Fix: ask in the next run, with messages=result.conversation."
        )
    asked: tuple[Message, ...] = ()
    if isinstance(prompt, str) and prompt.strip():
        asked = (UserMessage(prompt),)
    elif prompt is not None:
        asked = (asked_message(prompt),)
    mended = Repaired(())
    if isinstance(messages, History):
        # A run's history has one result for each call, and values only; isinstance hides that.
        known = cast("History[Message]", messages).append(*asked)
    else:
        if messages is not None:
            heard = messages_of(messages, may_be_empty=prompt is not None)
            mended = repaired(heard, keep_open=keep_open)
        known = History((*mended.messages, *asked))
    if mended.findings and not repair:
        found = "\n".join(f"  {number}. {text}" for number, text in enumerate(mended.findings, 1))
        raise ConfigError(
            f"`messages` does not fit together, and on_bad_history='refuse':\n{found}"
        )
    if not known:
        raise ConfigError(
            "`messages` holds only results of calls that it does not make: a model needs a message"
        )
    said = SystemMessage(instructions) if instructions else None
    # No copy: a chat has many messages, and each of its questions passes here.
    given = known if said is None or known[0] == said else History((said, *known))
    return given, mended.findings
