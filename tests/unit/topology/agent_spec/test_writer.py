"""Topologies as documents of Open Agent Spec, whole."""

from __future__ import annotations

import json

import pytest

from graphloop.topology import TopologyError
from graphloop.topology.agent_spec import read_agent_spec, write_agent_spec
from graphloop.topology.agent_spec.sheet import METADATA
from graphloop.topology.registration import Names
from graphloop.topology.writer import data_of, yaml_of
from tests.agent_spec_documents import loaded, written
from tests.examples.gallery import NAMES as GALLERY
from tests.examples.gallery import exhibits

LOST = {
    "debate": {"debate", "debate/next_round"},
    "supervisor": {
        "supervisor",
        "supervisor/billing",
        "supervisor/stop_check",
        "supervisor/shipping",
        "supervisor/shipping/stop_check",
    },
    "react": {"react", "react/stop_check"},
    "parallel_voting": {"parallel-voting", "parallel-voting/vote"},
    "evaluator_optimizer": {"evaluator-optimizer", "evaluator-optimizer/writer_limit"},
    "reflexion": {"reflexion", "reflexion/has_three_lines", "reflexion/again"},
    "routing": {"routing", "routing/router"},
    "orchestrator_workers": {
        "orchestrator-workers",
        "orchestrator-workers/work",
        "orchestrator-workers/replan",
    },
    "escalation": {"escalation", "escalation/sort", "escalation/person", "escalation/again"},
    "prompt_chain": {
        "prompt-chain",
        "prompt-chain/outlined",
        "prompt-chain/has_three_points",
        "prompt-chain/again",
    },
}


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_is_accepted_elsewhere_and_read_back(name: str) -> None:
    """Also after the other library has written it again; the report has no surprise."""
    with exhibits() as found:
        document, names = found[name].written.document, Names()

        text, report = write_agent_spec(document, names)

        again = written(loaded(text))
        for one in (text, again):
            assert document == read_agent_spec(one, names, allow_refused=True).document
            with pytest.raises(TopologyError, match="does not show"):
                read_agent_spec(one, names)
        assert yaml_of(data_of(document, names)) == json.loads(text)["metadata"][METADATA]
        lost = {one.name for one in report.refused}
        assert lost == LOST.get(name, lost)
        assert any("which others do not read" in one.said for one in report)


def test_the_temporal_rule_of_a_topology_is_lost_elsewhere() -> None:
    """And so are the nodes that run tools after an approval."""
    with exhibits() as found:
        _, report = write_agent_spec(found["plan_approve_execute"].written.document, Names())

    lost = {one.name for one in report.refused}
    assert {"plan-approve-execute/rule 1", "plan-approve-execute/gate"} <= lost
