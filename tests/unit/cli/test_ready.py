"""A file with a ready agent, whose model the command line replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.cli.run import recorded_model
from graphloop.cli.target import load_target
from tests.unit.cli.command_line import STORE, here, refused, shown, write
from tests.unit.cli.pay_desk import GATED, GATED_SCRIPT, run_ids

pytestmark = pytest.mark.usefixtures("desk")

SCRIPT = ("--script", "replies.yaml")
READY = GATED.replace(
    "def build(model):\n    return Agent(model, tools=[pay])",
    'agent = Agent("anthropic:claude-opus-4-8", tools=[pay], fallback_models=["openai:gpt-5"])',
)
"""What a newcomer writes; no key of its models is set."""


def ready(**more: str) -> None:
    """Write a file with a ready agent, its script, and more files."""
    write({"desk.py": READY, "replies.yaml": GATED_SCRIPT, **more})


@pytest.mark.parametrize(
    "words",
    [("check", "desk.py"), ("draw", "desk.py", "--text"), ("fuzz", "desk.py", "--seeds", "2")],
)
def test_a_look_at_an_agent_needs_no_key(words: tuple[str, ...]) -> None:
    """Proofs and pictures come before the first token, so before the first key, too."""
    ready()

    assert here(*words).returncode == Status.OK


def test_a_run_without_a_key_is_refused_before_it_starts() -> None:
    ready()

    message = refused("run", "desk.py", *STORE)

    assert "'anthropic:claude-opus-4-8': expected an API key, found none" in message
    assert not Path("runs.db").exists()


def test_a_script_replaces_the_model_of_a_ready_agent() -> None:
    ready()

    assert "✓ pay(amount=5): 5 paid\nDone.\n" in shown(
        "run", "desk.py", *SCRIPT, "--approve", "always"
    )


def test_a_script_beside_the_file_gives_the_replies_without_a_key() -> None:
    ready(**{"script.yaml": GATED_SCRIPT})

    done = here("run", "desk.py", "--approve", "always")

    assert "Done.\ncompleted" in done.stdout
    assert done.stderr.startswith("no API key found: replaying script.yaml")


def test_a_resume_goes_on_with_the_model_that_the_run_began_with() -> None:
    """The journal names the model, so the resume needs no option."""
    ready()
    shown("run", "desk.py", *SCRIPT, *STORE, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")

    resumed = shown("resume", run_id, *STORE, "--approve", "always")

    assert "✓ pay(amount=5): 5 paid\nDone.\n" in resumed
    assert "Done." in shown("replay", run_id, *STORE)


def test_a_named_model_replaces_the_model_of_a_ready_agent() -> None:
    """A key of the agent's own model is not needed; those of its other models are."""
    write({"desk.py": READY.replace(', fallback_models=["openai:gpt-5"]', "")})
    write({"replies.yaml": GATED_SCRIPT})
    named = f"script:{Path('replies.yaml').absolute()}"

    assert "Done." in shown("run", "desk.py", "--model", named, "--approve", "always")
    both = refused("run", "desk.py", "--model", named, *SCRIPT)
    assert "--script: expected it or --model, found both" in both


def test_the_key_of_a_fallback_model_is_needed_beside_another_model() -> None:
    """A run that fails over in its middle must not learn there that a key is missing."""
    ready()

    message = refused("run", "desk.py", "--model", "ollama:llama", *STORE)

    assert "'openai:gpt-5': expected an API key, found none" in message


def test_a_recording_asks_with_the_access_that_the_agent_has() -> None:
    """The key of the agent stands in its file, and in no environment."""
    write({"own.py": 'from graphloop import Agent\nagent = Agent("openai:gpt-5", api_key="k")\n'})

    model = recorded_model(load_target("own.py"), None, "talk.yaml")

    assert model is not None
    assert model.label == "openai:gpt-5"


def test_the_replies_of_a_ready_agent_are_recorded_and_replayed() -> None:
    source = "from graphloop import Agent\nfrom graphloop.testing import ScriptedModel\n"
    write({"hi.py": f"{source}agent = Agent(ScriptedModel(['Hello.']))\nPROMPT = 'Hi?'\n"})

    recorded = shown("run", "hi.py", "--record", "talk.yaml")
    replayed = shown("run", "hi.py", "--script", "talk.yaml")

    assert recorded.startswith("> Hi?\nHello.\n")
    assert replayed.startswith("> Hi?\nHello.\n")
    assert "text: Hello." in Path("talk.yaml").read_text("utf-8")
