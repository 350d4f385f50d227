"""Sampling options, and files of environment variables."""

import json
import os
from pathlib import Path

import pytest

from tests.unit.cli.command_line import STORE, here, refused, shown, write
from tests.unit.cli.pay_desk import run_ids

pytestmark = pytest.mark.usefixtures("desk")

SCRIPT = ("--script", "script.yaml")
SECRET = "sk-hunter2"  # noqa: S105 - a canary


def settings_of_the_run() -> dict[str, object]:
    """Return the settings that the journal of the only run notes."""
    (run_id,) = run_ids("runs.db")
    first = shown("watch", run_id, *STORE, "--json").splitlines()[0]
    setup: dict[str, object] = json.loads(first)["event"]["setup"]["settings"]
    return setup


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
    assert "--env-file none.env: expected a text file" in done.stderr
