"""What a notebook and a REPL show: pictures and words by MIME type, and short `repr`s."""

import copy
import json
import pickle
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from graphloop import END, Agent, Graph, ask, budget, tool
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Ready
from graphloop.proofs import bound
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.views import render

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
SECRET = "sk-hunter2"  # noqa: S105 - a canary


@tool
def look(x: int) -> str:
    """Look at a number."""
    return f"seen {x}"


def asked_once(**options: Any) -> Agent:
    replies: list[dict[str, object] | str] = [
        {"calls": [{"name": "look", "arguments": {"x": 1}}]},
        "It is <1>.",
    ]
    return Agent(ScriptedModel(replies * 4), tools=[look], **options)


def endless_graph() -> Graph[None]:
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    return Graph(
        "endless",
        start=prepare,
        edges={
            prepare: {Ready: model, ...: END},
            model: {...: append},
            append: {...: prepare},
        },
    )


def shown(value: Any) -> dict[str, str]:
    """Call the method as IPython does."""
    return dict(value._repr_mimebundle_(include=None, exclude=None))


def titles(svg: str) -> str:
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return " ".join(unescape(" ".join(words)).split())


def test_an_agent_and_its_graph_show_the_picture_of_the_loop() -> None:
    agent = asked_once()

    for value in (agent, agent.graph):
        bundle = shown(value)
        assert {"text/plain", "image/svg+xml"} == bundle.keys()
        assert repr(value) == bundle["text/plain"]
        assert "<svg" in bundle["image/svg+xml"]
        assert "model_call" in titles(bundle["image/svg+xml"])


def test_a_report_shows_its_words_and_its_findings_on_the_graph() -> None:
    graph = endless_graph()
    report = graph.check()

    bundle = shown(report)

    assert str(report) == bundle["text/plain"]
    assert "GL4" in titles(bundle["image/svg+xml"])
    assert "data:image/svg+xml;base64," in bundle["text/html"]
    assert "fix: lead the cycle" in bundle["text/html"]


def test_a_bound_shows_how_often_each_node_is_visited_at_most() -> None:
    counted, endless = asked_once(max_steps=3).bound(), bound(endless_graph())

    most = counted.visits["stop_check"]
    assert f"stop_check at most {most}x" in titles(shown(counted)["image/svg+xml"])
    assert "no bound" in titles(shown(endless)["image/svg+xml"])
    assert str(endless) == shown(endless)["text/plain"]


def test_a_comparison_shows_both_versions_on_one_picture() -> None:
    difference = asked_once(gate=ask("look")).graph.diff(asked_once().graph)

    bundle = shown(difference)

    assert difference.weaker
    assert str(difference) == bundle["text/plain"]
    assert "weaker" in titles(bundle["image/svg+xml"])


@pytest.mark.parametrize("kind", ["memory", "runs", "runs.db"])
async def test_a_result_shows_its_run_over_the_graph(kind: str, tmp_path: Path) -> None:
    """A notebook has a running event loop, and the display is asked for synchronously."""
    store = MemoryStore() if kind == "memory" else str(tmp_path / kind)
    async with asked_once(store=store) as agent:
        result = await agent.generate("Look at 1.")

        bundle = shown(result)

    assert bundle["text/plain"].endswith("It is <1>.")
    assert "It is &lt;1&gt;." in bundle["text/html"]
    words = titles(bundle["image/svg+xml"])
    assert "completed" in words
    assert "calls 1x" in words
    assert "answered 1x" in words


async def test_a_result_is_shown_although_its_journal_cannot_be_read(tmp_path: Path) -> None:
    async with asked_once(store=str(tmp_path / "runs.db")) as agent:
        result = await agent.generate("Look at 1.")
    shutil.rmtree(tmp_path)

    assert "cannot be read" in titles(shown(result)["image/svg+xml"])


def test_words_remain_where_no_program_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.shutil, "which", lambda *_, **__: None)  # type: ignore[attr-defined]
    report = asked_once().graph.check()

    assert {"text/plain"} == shown(asked_once()).keys()
    assert {"text/plain", "text/html"} == shown(report).keys()


def test_a_copied_report_keeps_all_but_its_picture() -> None:
    """A report crosses processes; a graph has functions, which cannot."""
    agent = asked_once()
    for value in (agent.graph.check(), agent.bound(), agent.graph.diff(endless_graph())):
        for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):  # noqa: S301 - our own
            assert value == other
            assert value.to_json() == other.to_json()
            assert "image/svg+xml" not in shown(other)
        assert "subject" not in json.loads(value.to_json())


async def test_reprs_are_one_short_line_without_addresses_and_secrets(tmp_path: Path) -> None:
    """A `repr` is read in a traceback, a log and a failed assertion."""
    asked = asked_once(gate=ask("look"), store=MemoryStore(), approval_secret=SECRET.encode() * 4)
    stream, fresh = asked.stream("Look."), asked.stream("Look.")
    result = await stream.result()
    (pending,) = result.pending
    iterated = asked_once()
    async with iterated.iter("Look.") as runner:
        turns = [(turn, repr(turn)) async for turn in runner]
    values: list[object] = [
        asked,
        Agent("openai:gpt-5", api_key=SECRET, tools=[look]),
        asked.graph,
        asked.graph.check(),
        asked.bound(),
        asked.graph.diff(asked.graph),
        result,
        result.run,
        stream,
        fresh,
        runner,
        turns[0][0],
        asked.runs,
        asked.as_tool(description="d"),
        asked.model,
        look,
        budget(usd=1),
        MemoryStore(),
    ]

    for text in [*map(repr, values), turns[0][1]]:
        assert len(text) <= 120, text
        assert "\n" not in text
        assert not ADDRESS.search(text), text
        assert SECRET not in text
    assert pending.key == "c0.0"


def test_ipython_finds_the_picture_and_the_words() -> None:
    """The real formatter of a notebook, in place of a belief about its protocol."""
    ipython = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")

    data, _ = ipython.DisplayFormatter().format(asked_once().graph.check())

    assert {"text/plain", "text/html", "image/svg+xml"} == data.keys()
    assert data["text/plain"].startswith("graph 'agent': no problem found")
