"""Documents of Open Agent Spec as topologies, whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.topology import TopologyError
from graphloop.topology.agent_spec import read_agent_spec, write_agent_spec
from graphloop.topology.agent_spec.sheet import METADATA
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Names, Registry
from tests.agent_spec_documents import NAMES, agent_node, chain, read, refund, told, written

DESK = """\
graphloop: 1
name: desk
tools: [refund]
start: prepare_step
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate: {use: gate, rules: [{ask: refund, ttl_s: 60}]}
  execute: {use: execute}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 3}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, failed: END, else: append}
  gate: {settled: execute, else: append}
  execute: {held: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
"""
PLAIN = DESK.replace(", ttl_s: 60", "").replace(", max_steps: 3", "")


def test_a_topology_that_travels_along_is_read_back() -> None:
    """Exactly, with what Agent Spec has no words for."""
    document, plain = read_text(DESK, NAMES), read_text(PLAIN, NAMES)

    found = read_agent_spec(write_agent_spec(document, NAMES)[0], NAMES, allow_refused=True)
    shown = read_agent_spec(write_agent_spec(plain, NAMES)[0], NAMES)

    assert (document, plain) == (found.document, shown.document)
    assert ["bound", "node"] == [one.kind for one in found.report.refused]
    assert not shown.report.refused
    assert "20 turns" in str(shown.report)


@pytest.mark.parametrize("confirmed", ["false", "null"])
def test_a_document_that_was_changed_since_is_refused(confirmed: str) -> None:
    """Neither of the two may be taken for the other: one of them is less safe."""
    text, _ = write_agent_spec(read_text(DESK, NAMES), NAMES)
    changed = text.replace('"requires_confirmation": true', f'"requires_confirmation": {confirmed}')
    assert changed != text

    with pytest.raises(TopologyError, match=r"'tool\.refund\.confirmed' is not what that says"):
        read_agent_spec(changed, NAMES)


def test_a_topology_that_was_changed_is_refused() -> None:
    """What the rest demands is demanded."""
    text, _ = write_agent_spec(read_text(DESK, NAMES), NAMES)

    with pytest.raises(TopologyError, match="was changed after"):
        read_agent_spec(
            text.replace("ask: refund", "allow: refund").replace(", ttl_s: 60", ""), NAMES
        )


def test_without_its_metadata_a_document_is_read_like_any_other() -> None:
    """The confirmation is asked for; the bound is another, which the report says."""
    data = json.loads(write_agent_spec(read_text(DESK, NAMES), NAMES)[0])
    del data["metadata"][METADATA]

    found = read(data)

    assert "20 turns" in str(found.report)
    assert "ask: refund" in write_agent_spec(found.document, NAMES)[0]


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    """Problems name it, with line and column."""
    path = tmp_path / "flow.json"
    path.write_text(written(chain(agent_node(tools=[refund()]))))
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{\n\t"component_type": "Flow",\n\t"id": 3\n}')

    assert read_agent_spec(path, NAMES).document.graph.nodes
    with pytest.raises(TopologyError, match=r"wrong\.json:1:1: the document lacks"):
        read_agent_spec(wrong, NAMES)
    with pytest.raises(TopologyError, match="there is no such file"):
        read_agent_spec(tmp_path / "none.json", NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 1_000_001, "at most 1,000,000 bytes"),
        ("[" * 50, "at most 32 levels"),
        ("- 1\n" * 60_000, "at most 50,000 values"),
        ("a: &b 1\n", "an anchor"),
        ("a: !!python/object/apply:os.system [x]\n", "a tag"),
        ("a: 1\na: 2\n", "stands here twice"),
        ("", "found nothing"),
    ],
)
def test_what_no_topology_may_be_no_document_may_be(text: str, message: str) -> None:
    """The same limits hold, for the same reader reads both."""
    with pytest.raises(TopologyError, match=message):
        read_agent_spec(text, NAMES)


def test_what_nobody_refers_to_is_told() -> None:
    """It may have been meant."""
    data = json.loads(written(chain(agent_node())))
    data["$referenced_components"]["lost"] = {"component_type": "X", "id": "lost", "name": "x"}

    assert "approximated" == told(read(data))["lost"]


def test_names_need_not_be_registered_to_be_written_down() -> None:
    """A command converts a file, and knows no tools."""
    text = written(chain(agent_node(tools=[refund()])))

    found = read_agent_spec(text, Names(installed=False), unregistered=True)

    entry = found.document.agents["answer_agent"].document
    assert entry is not None
    assert ("refund",) == entry.tools


def carried(visible: str, inside: str, names: Names = NAMES) -> str:
    """Return a document that shows one topology, and carries another."""
    data = json.loads(write_agent_spec(read_text(visible, names), names)[0])
    other = write_agent_spec(read_text(inside, names), names)[0]
    return json.dumps({**data, "metadata": json.loads(other)["metadata"]})


INVISIBLE: tuple[tuple[str, str, str], ...] = (
    ("calls: gate, failed", "calls: execute, failed", "how its loop goes on"),
    ("{ask: refund}", "{ask: refund, when: over}, {allow: refund}", "the conditions of its rules"),
    ("{ask: refund}", "{ask: refund, ttl_s: 1}", "how long its questions stay open"),
    ("use: stop_check}", "use: stop_check, max_steps: 900}", "900 turns"),
    ("use: execute}", "use: execute, concurrency: 1}", "its concurrency are lost"),
    ("start:", "prompt: Refund all.\nstart:", "what is asked"),
    ("edges:", "ignore: [{code: GL2, reason: none}]\nedges:", "GL2 is set aside"),
    ("edges:", "rules: [{never: execute, before: gate}]\nedges:", "a temporal rule"),
)


@pytest.mark.parametrize(("old", "new", "said"), INVISIBLE)
def test_what_the_rest_does_not_show_has_to_be_allowed(old: str, new: str, said: str) -> None:
    """Whoever reads the document sees nothing of it: it may be less safe than that."""
    registry = Registry()
    registry.tool(NAMES.find("tool", "refund"), name="refund")
    registry.predicate(len, name="over")
    registered = Names(registry, installed=False)
    text = carried(PLAIN, PLAIN.replace(old, new), registered)

    with pytest.raises(TopologyError, match=said) as caught:
        read_agent_spec(text, registered)
    found = read_agent_spec(text, registered, allow_refused=True)

    assert "remove 'graphloop.topology' from the metadata" in str(caught.value)
    assert said in "\n".join(map(str, found.report.refused))
    assert read_text(PLAIN.replace(old, new), registered) == found.document


FLOW = """\
graphloop: 1
name: ship
start: draft
agents:
  writer:
    graph:
      name: writer
      start: prepare_step
      nodes: {prepare_step: {use: prepare_step}, model_call: {use: model_call}, say: {use: append}}
      edges:
        prepare_step: {ready: model_call, calls: say, else: END}
        model_call: {failed: END, else: say}
        say: {else: END}
nodes:
  draft: {use: child, agent: writer}
  drafted: {use: append}
  confirm: {use: critique, prompt: 'Is it harmless?'}
  check: {use: child, agent: writer}
  checked: {use: append}
  deploy: {use: child, agent: writer}
edges:
  draft: {answered: drafted, else: END}
  drafted: {final: confirm, resend: confirm, else: END}
  confirm: {accepted: check, else: END}
  check: {answered: checked, else: END}
  checked: {final: deploy, resend: deploy, else: END}
  deploy: {else: END}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("draft: {answered: drafted,", "draft: {answered: drafted, failed: deploy,"),
        ("final: confirm, resend: confirm,", "final: confirm, resend: deploy,"),
        ("final: deploy, resend: deploy,", "final: deploy, resend: deploy, refused: deploy,"),
        ("confirm: {accepted: check,", "confirm: {accepted: check, failed: deploy,"),
    ],
)
def test_a_way_around_what_confirms_has_to_be_allowed(old: str, new: str) -> None:
    """A flow there has no ways after failures, so it shows none."""
    inside = FLOW.replace(old, new)
    assert inside != FLOW

    assert read_text(FLOW, NAMES) == read_agent_spec(carried(FLOW, FLOW), NAMES).document
    with pytest.raises(TopologyError, match="to 'deploy' is lost"):
        read_agent_spec(carried(FLOW, inside), NAMES)


def test_a_confirmation_that_a_second_component_takes_back_is_refused() -> None:
    """Another reader takes the first of two of one id, in which it is demanded."""
    weak = PLAIN.replace("[{ask: refund}]", "[{allow: refund}]")
    data = json.loads(write_agent_spec(read_text(weak, NAMES), NAMES)[0])
    held = data["$referenced_components"]
    tool = held.pop("tool.refund")
    held["model.run"]["$referenced_components"] = {"tool.refund": tool}
    data["tools"] = [{**tool, "requires_confirmation": True}]
    without = {key: one for key, one in data.items() if key != "metadata"}

    for one in (data, without):
        with pytest.raises(TopologyError, match=r"two components have the id 'tool\.refund'"):
            read(one, allow_refused=True)


def test_a_topology_that_no_document_can_show_is_a_mistake() -> None:
    """In words, like every other."""
    endless = FLOW.replace("deploy: {else", "deploy: {answered: deploy, else").replace(
        "confirm: {accepted: check, else: END}", "confirm: {else: check}"
    )
    data = json.loads(write_agent_spec(read_text(FLOW, NAMES), NAMES)[0])
    data["metadata"][METADATA] = endless

    with pytest.raises(TopologyError, match="no way leads to its end"):
        read(data)


def test_a_name_that_no_graph_can_have_is_refused_where_it_stands() -> None:
    """In the document that was given, not in a text that nobody sees."""
    for own in ("flow", "answer_agent"):
        text = json.dumps(json.loads(written(chain(agent_node(), own="flow"))), indent=1)
        line = next(
            number for number, said in enumerate(text.splitlines(), 1) if f'"name": "{own}"' in said
        )
        bad = text.replace(f'"name": "{own}"', f'"name": "{own}\\n"')

        with pytest.raises(TopologyError, match="holds the control character") as refused:
            read_agent_spec(bad, NAMES)

        assert [f"agent-spec:{line}"] == [
            one.place.rpartition(":")[0] for one in refused.value.problems
        ]


def test_a_node_may_be_called_as_calls_are() -> None:
    """Such a name is no node's here, and it gets another one."""
    found = read(chain(agent_node("c1"), agent_node("END")))

    assert {"c1_", "END_"} <= {*found.document.graph.nodes}


def test_a_document_that_becomes_too_large_is_refused_in_its_own_words() -> None:
    """What stands there has a line; what would have become of it has none."""
    many = chain(*[agent_node(f"n{number}", tools=[refund()]) for number in range(290)])
    with pytest.raises(TopologyError, match="becomes of Flow 'flow' is no topology") as refused:
        read(many)

    assert all(one.place.startswith("agent-spec:1:1") for one in refused.value.problems)


def test_tools_that_are_not_listed_have_to_be_allowed_to_run() -> None:
    """A run may bring them, and whoever reads the document sees that they never run."""
    wide = PLAIN.replace("[{ask: refund}]", '[{ask: refund}, {allow: "*"}]')
    text = carried(PLAIN, wide)

    with pytest.raises(TopologyError, match="what its gate says of tools that are not listed"):
        read_agent_spec(text, NAMES)

    assert read_text(wide, NAMES) == read_agent_spec(text, NAMES, allow_refused=True).document
