"""Rules of a gate."""

from __future__ import annotations

import pytest

from graphloop.policy import Rule
from graphloop.topology.forms import Unwritable
from graphloop.topology.policy_forms import RuleForm
from tests.topology_forms import read, refusal, written


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{allow: search}", Rule("allow", ("search",))),
        ("{allow: [a, 'b*'], when: over}", Rule("allow", ("a", "b*"), "over")),
        ("{ask: pay, ttl_s: 60}", Rule("ask", ("pay",), ttl_s=60)),
        ("{deny: '*', reason: never}", Rule("deny", ("*",), reason="never")),
    ],
)
def test_a_rule_reads_back_as_it_is_written(text: str, rule: Rule) -> None:
    """A gate in a file is the gate in Python."""
    assert rule == read(RuleForm(), text) == read(RuleForm(), str(written(RuleForm(), rule)))


def test_a_key_without_effect_is_refused() -> None:
    """A time limit on `allow` would look like a protection."""
    assert "has no key 'ttl_s'" in refusal(RuleForm(), "{allow: a, ttl_s: 3}")
    with pytest.raises(Unwritable, match="has no `reason`"):
        written(RuleForm(), Rule("allow", ("a",), reason="x"))
