"""The corpus says what a checker says; here its topologies are run, and what they do is the judge.

Nothing of the proofs is used: what a topology is expected to be guilty of, some execution does, and
what it is not, none does among all that were explored (`tests/corpus_oracle.py`).
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from graphloop.events import Setup, Started
from graphloop.proofs.report import PROPERTIES
from graphloop.stores.codec import Codec
from tests.corpus_oracle import DECIDED, UNDECIDED, explored
from tests.sizes import NIGHTLY
from tests.topology_data import STATES, Essay, Guarded, graph_of

CORPUS: Final = Path(__file__).parents[1] / "corpus"
FILES: Final = sorted(CORPUS.glob("*.json"))
SPOTS_MAX: Final = 8_000
LARGE: Final = ("-full", "trap-built-plain")
"""Topologies of many executions, most the same fault in a larger one: run overnight."""

STATE_OF: Final[dict[str, object]] = {
    "": None,
    "Essay": Essay("x"),
    "Guarded": Guarded(threading.Event()),
}


@pytest.mark.parametrize(
    "file",
    [one for one in FILES if NIGHTLY or not one.stem.endswith(LARGE)],
    ids=lambda one: one.stem,
)
def test_executions_show_what_is_expected_and_nothing_else(file: Path) -> None:
    """Two that agree and share no code are seldom wrong together."""
    topology: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    expected = set(topology["expected"]["findings"])
    unknown = set(topology["expected"]["unknown"])

    seen = explored(graph_of(topology), spots_max=SPOTS_MAX)
    shown = set(seen.codes)
    state = topology.get("state", "")
    if state in STATE_OF and not is_journaled(STATE_OF[state]):
        shown.add("GL11")

    assert seen.complete
    assert expected & set(DECIDED) <= shown, seen.codes
    assert shown <= expected | unknown, seen.codes


def test_every_code_is_decided_or_said_not_to_be() -> None:
    """What an oracle is silent about, it has not confirmed."""
    assert set(PROPERTIES) == {*DECIDED, *UNDECIDED}
    assert not set(DECIDED) & set(UNDECIDED)
    assert {"", "Anything", *STATE_OF} == {"", *STATES}


def is_journaled(state: object) -> bool:
    """Whether a journal can hold a state."""
    try:
        line = Codec(type(state)).encode(1, Started(0.0, "r", "g", (), Setup(), state))
        Codec(type(state)).decode(line)
    except Exception:  # noqa: BLE001 - whatever it raises, it is not there afterwards.
        return False
    return True
