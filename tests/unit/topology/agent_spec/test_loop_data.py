"""The loop that an agent stands for."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
from graphloop.topology.agent_spec.loop_data import answer_data, appended, loop_data
from graphloop.topology.forms import Data
from graphloop.topology.reader import read_text
from graphloop.topology.writer import yaml_of
from tests.topology_forms import NAMES


@pytest.mark.parametrize(
    "data",
    [
        loop_data([], ["search"], ""),
        loop_data(["search"], ["other"], "openai:gpt-5"),
        answer_data(""),
    ],
)
def test_every_loop_is_proven_safe(data: dict[str, Data]) -> None:
    """What is made of a stranger's document has to be bounded and gated."""
    document = read_text(yaml_of({"graphloop": 1, "name": "a", **data}), NAMES)

    assert check(document.graph).ok


def test_an_answer_is_appended_before_the_way_goes_on() -> None:
    """At the end there is nothing to go on to."""
    assert {"else": "END"} == appended("END")
    assert {"final": "a", "resend": "a", "else": "END"} == appended("a")
