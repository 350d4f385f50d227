"""A generator is run from its beginning, and held to what it asked before."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from graphloop.asks import Answer, Ask, AskAgent, AskModel, AskPerson, PersonSaid
from graphloop.errors import AskFailed, ConfigError, NotDeterministic
from graphloop.events import Asked, Failure
from graphloop.front.asking import ask_agent, ask_model, ask_person
from graphloop.front.node_call import Returned, played
from graphloop.turn import Exchange
from tests.strategies import reply, wrong

YES = PersonSaid(approved=True)
MODEL = Exchange(AskModel("one"), reply("two"))
CLOSED: list[str] = []


def talk(first: str = "one", asks: int = 2) -> Generator[Ask, Answer, str]:
    """Ask a model, and a person about what it said."""
    try:
        if not asks:
            return "nothing"
        heard = yield from ask_model(first)
        said = yield from ask_person(heard.message.text)
    except AskFailed as error:
        return f"{error.error}: {error}"
    else:
        return f"{said.approved}"
    finally:
        CLOSED.append(first)


def raising() -> Generator[Ask, Answer, str]:
    """Fail before the first ask."""
    yield from ()
    raise KeyError("oh")


def test_a_generator_is_fed_what_it_was_answered() -> None:
    """Up to its next ask, or to its end; and is closed each time."""
    CLOSED.clear()

    assert Asked(AskModel("one")) == played(talk(), (), "talk")
    assert Asked(AskPerson("two")) == played(talk(), (MODEL,), "talk")
    both = (MODEL, Exchange(AskPerson("two"), YES))
    assert Returned("True") == played(talk(), both, "talk")
    assert ["one"] * 3 == CLOSED


def test_what_could_not_be_had_is_raised_where_it_was_asked_for() -> None:
    """The generator may go on from there."""
    failed = Exchange(AskModel("one"), Failure("Overloaded", "busy"))

    assert Returned("Overloaded: Overloaded: busy") == played(talk(), (failed,), "talk")


def test_a_mistake_below_is_no_answer_that_a_generator_could_go_on_from() -> None:
    """It is the developer's, whatever the generator catches; `finally` is done."""
    CLOSED.clear()

    def careless() -> Generator[Ask, Answer, str]:
        try:
            yield from ask_agent("writer", "write")
        except Exception:  # noqa: BLE001 - that is what is tested
            return "never mind"
        finally:
            CLOSED.append("careless")
        return "written"

    wrong = Exchange(AskAgent("writer", "write"), Failure("ConfigError", "no such option"))

    with pytest.raises(ConfigError) as error:
        played(careless(), (wrong,), "careless")
    for words in ("node 'careless'", "ask number 1", "AskAgent", "ConfigError: no such option"):
        assert words in str(error.value)
    assert ["careless"] == CLOSED


@pytest.mark.parametrize(
    ("generator", "found"),
    [
        (talk("other"), "expected AskModel(prompt='one'"),
        (talk("other"), "found AskModel(prompt='other'"),
        (talk(asks=0), "found that it returned 'nothing'"),
        (raising(), "found that it raised KeyError: 'oh'"),
    ],
)
def test_a_generator_that_does_something_else_is_stopped(
    generator: Generator[Ask, Answer, str], found: str
) -> None:
    """Its answers would be those to other questions."""
    with pytest.raises(NotDeterministic) as error:
        played(generator, (MODEL,), "talk")

    for words in ("node 'talk'", "ask number 1", "the journal holds", found, "Fix: let what"):
        assert words in str(error.value)


def test_what_is_no_ask_is_refused_with_what_to_write() -> None:
    """Most often a `from` is missing; a tool is nobody's to run here."""

    def bare() -> Generator[object, object, str]:
        yield ask_model("one")
        return ""

    def odd() -> Generator[object, object, str]:
        yield "tool"
        return ""

    with pytest.raises(ConfigError, match="Fix: write `yield from`, not `yield`"):
        played(bare(), (), "bare")
    with pytest.raises(ConfigError, match=r"found 'tool'.* behind a gate"):
        played(odd(), (), "odd")
    with pytest.raises(ConfigError, match="'early' returns a generator"):
        played("early", (), "early")


@pytest.mark.parametrize("prompt", [5, None, "half a \ud83d"])
def test_what_no_journal_can_keep_is_refused(prompt: object) -> None:
    """What comes back from it must be what was asked."""
    with pytest.raises(ConfigError, match="AskModel that no journal can keep"):
        played(ask_model(wrong(prompt)), (), "talk")


def stubborn(*, asks: bool) -> Generator[Ask, Answer, str]:
    """Go on when it is closed."""
    try:
        yield from ask_model("one")
    except BaseException:  # noqa: BLE001 - this is what is told about.
        if asks:
            yield from ask_model("two")
        return "all the same"
    return "heard"


def test_a_generator_that_asks_on_when_it_is_left_is_told_so() -> None:
    """What it had asked would be lost, and its node might leave as if it had been answered."""
    with pytest.raises(NotDeterministic, match=r"'talk'.*catches GeneratorExit.*catch `Exception`"):
        played(stubborn(asks=True), (), "talk")

    assert Asked(AskModel("one")) == played(stubborn(asks=False), (), "talk")


def test_a_limit_that_limits_nothing_is_no_ask() -> None:
    """Also where the ask is made without its helper."""

    def unlimited() -> Generator[Ask, Answer, None]:
        yield AskModel("one", max_tokens=0)

    with pytest.raises(ConfigError, match="no journal can keep"):
        played(unlimited(), (), "talk")
