"""Sampling options, headers, and files of environment variables."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import STORE, graphloop, here, refused, shown, write
from tests.unit.cli.pay_desk import GATED, run_ids
from tests.wire_server import Answer, WireServer, sse

pytestmark = pytest.mark.usefixtures("desk")

SCRIPT = ("--script", "script.yaml")
SECRET = "sk-hunter2"  # noqa: S105 - a canary
CALL = {"index": 0, "id": "1", "function": {"name": "pay", "arguments": '{"amount": 5}'}}
ASKED = sse(
    json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [CALL]}}]}),
    '{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}',
    "[DONE]",
)
DONE = sse(
    '{"choices": [{"index": 0, "delta": {"content": "Done."}}]}',
    '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
    "[DONE]",
)
READY = GATED.replace(
    """def build(model):
    return Agent(model,""",
    """from pathlib import Path
agent = Agent("openai:m", base_url=Path("url").read_text(), headers={"x-own": "1"},""",
)


def settings_of_the_run() -> dict[str, object]:
    """Return the settings that the journal of the only run notes."""
    (run_id,) = run_ids("runs.db")
    first = shown("watch", run_id, *STORE, "--json").splitlines()[0]
    setup: dict[str, object] = json.loads(first)["event"]["setup"]["settings"]
    return setup


def kept(desk: Path) -> bytes:
    """Return all bytes of the store in a directory."""
    return b"".join([file.read_bytes() for file in desk.glob("runs.db*")])


def test_sampling_options_reach_the_request() -> None:
    write({"script.yaml": "- Blue.\n"})
    numbers = ("--temperature", "0.25", "--max-tokens", "99")
    own = ("--option", "reasoning_effort=low", "--option", 'stop=["x"]')

    shown("run", "Why so?", *SCRIPT, *STORE, *numbers, *own)

    settings = settings_of_the_run()
    assert (settings["temperature"], settings["max_tokens"]) == (0.25, 99)
    options = settings["options"]
    options = json.loads(options) if isinstance(options, str) else options
    assert options == {"reasoning_effort": "low", "stop": ["x"]}


@pytest.mark.parametrize("texts", [("low",), ("=low",), ("a=1", "a=2")])
def test_an_option_without_a_name_or_twice_is_refused(texts: tuple[str, ...]) -> None:
    write({"script.yaml": "- Blue.\n"})
    options = [word for text in texts for word in ("--option", text)]

    assert "--option: expected" in refused("run", "Why so?", *SCRIPT, *options)


def test_a_file_sets_variables_that_are_not_set(desk: Path) -> None:
    """The shell of the caller has the last word, as with other tools that read such files."""
    write(
        {
            "script.yaml": "- Blue.\n",
            "keys.env": f"""
# A comment.
export GRAPHLOOP_MODEL=script:{desk}/script.yaml
QUOTED="two words"  # and a comment
HOME=/nowhere
""",
            "agent.py": """
import os
from graphloop import Agent
def build(model): return Agent(model, instructions=os.environ["QUOTED"] + os.environ["HOME"])
PROMPT = "Why so?"
""",
        }
    )

    shown("run", "agent.py", "--env-file", "keys.env", *STORE)

    (run_id,) = run_ids("runs.db")
    journal = shown("watch", run_id, *STORE, "--json")
    assert f"two words{os.environ['HOME']}" in journal


@pytest.mark.parametrize("line", ["GRAPHLOOP_MODEL {}", "A={} {}", 'A="{}', "1A={}"])
def test_a_wrong_line_is_refused_without_its_text(line: str) -> None:
    """The values of such files are keys."""
    write({"keys.env": f"OK=1\n{line.format(SECRET, SECRET)}\n"})

    message = refused("run", "Why so?", *SCRIPT, "--env-file", "keys.env")

    assert "keys.env:2: expected NAME=VALUE" in message
    assert SECRET not in message


def test_a_missing_file_is_refused() -> None:
    done = here("run", "Why so?", *SCRIPT, "--env-file", "none.env")

    assert done.returncode == 2
    assert "--env-file none.env: expected a readable text file" in done.stderr


@pytest.mark.parametrize("program", [GATED, READY])
async def test_headers_reach_each_request_and_no_store(program: str, desk: Path) -> None:
    """A gateway's token is a header: a store that a colleague reads must not hold it."""
    headers = ("--header", f"x-gateway={SECRET}", "--header", "x-team=a=b")
    async with WireServer([Answer(ASKED), Answer(DONE)]) as server:
        write({"pay/agent.py": program, "url": server.url})
        url = () if program == READY else ("--base-url", server.url)
        parked = await asyncio.to_thread(graphloop, "run", "pay", *url, *headers, *STORE, cwd=desk)
        assert Status.PARKED == parked.returncode, parked.stderr
        run_id = parked.stderr.split("approve ")[1].split()[0]
        allowed = ("resume", run_id, "--approve", "always", *headers, *STORE)
        ended = await asyncio.to_thread(graphloop, *allowed, cwd=desk)

    assert Status.OK == ended.returncode, ended.stderr
    assert [SECRET, SECRET] == [each.headers["x-gateway"] for each in server.requests]
    assert ["a=b", "a=b"] == [each.headers["x-team"] for each in server.requests]
    assert run_id.encode() in kept(desk)
    assert SECRET.encode() not in kept(desk)
    assert SECRET not in parked.stdout + parked.stderr + ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "texts",
    [(SECRET,), (f"={SECRET}",), (f"Authorization: Bearer={SECRET}",), ("x-team=1", SECRET)],
)
def test_a_wrong_header_is_refused_without_its_text(texts: tuple[str, ...]) -> None:
    """The values of headers are often keys."""
    headers = [word for text in texts for word in ("--header", text)]

    message = refused("run", "Why so?", "--base-url", "http://127.0.0.1:9", *headers)

    assert f"--header (number {len(texts)}): expected NAME=VALUE" in message
    assert SECRET not in message


def test_a_header_twice_is_refused() -> None:
    """Header names differ in case only."""
    twice = ("--header", "x-team=a", "--header", "X-Team=b")

    assert "--header: expected 'X-Team' once" in refused("run", "Why so?", *twice)


def test_a_header_without_a_model_to_read_it_is_refused() -> None:
    write(
        {
            "script.yaml": "- Blue.\n",
            "graph.py": """
from graphloop import END, Graph, node
from graphloop.node_protocol import Leave
from graphloop.outcomes import Outcome

class Finished(Outcome): "It is over."

@node
def stop(run: None) -> Finished:
    "Leave."
    return Finished()

graph = Graph("plain", stop, {stop: {...: END}})
""",
        }
    )

    script = refused("run", "Why so?", *SCRIPT, "--header", "a=b")
    plain = refused("run", "graph.py:graph", "Go.", "--header", "a=b")

    assert "headers would have no effect: a script asks no server" in script
    assert "--header would have no effect: graph.py:graph asks no model" in plain
