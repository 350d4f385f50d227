"""Which model a run asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.model import ANTHROPIC, OPENAI, choose_model
from graphloop.errors import ConfigError

SCRIPT = Path("examples/x/script.yaml")


@pytest.mark.parametrize(
    ("model", "script", "base_url", "environ", "expected"),
    [
        ("openai:m", None, None, {"ANTHROPIC_API_KEY": "k", "GRAPHLOOP_MODEL": "a:b"}, "openai:m"),
        (
            None,
            "s.yaml",
            None,
            {"ANTHROPIC_API_KEY": "k", "GRAPHLOOP_MODEL": "a:b"},
            f"script:{Path('s.yaml').absolute()}",
        ),
        (None, None, None, {"ANTHROPIC_API_KEY": "k", "GRAPHLOOP_MODEL": "a:b"}, "a:b"),
        ("script:/x/s.yaml", None, None, {}, "script:/x/s.yaml"),
        (None, None, "http://h", {"ANTHROPIC_API_KEY": "k"}, OPENAI),
        (None, None, None, {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, ANTHROPIC),
        (None, None, None, {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "k"}, OPENAI),
        (None, None, None, {"OPENAI_BASE_URL": "http://h"}, OPENAI),
    ],
)
def test_what_is_said_beats_what_is_set(
    model: str | None,
    script: str | None,
    base_url: str | None,
    environ: dict[str, str],
    expected: str,
) -> None:
    """A key in the environment must never override what somebody typed.

    A script is named from the root: the run may be taken up again from anywhere.
    """
    found = choose_model(
        model=model, script=script, base_url=base_url, environ=environ, beside=SCRIPT
    )

    assert (found.model, found.notice) == (expected, "")


def test_a_replay_is_announced() -> None:
    """A recorded answer that looks like a model's own would be a lie."""
    found = choose_model(model=None, script=None, base_url=None, environ={}, beside=SCRIPT)

    assert found.model == f"script:{SCRIPT.absolute()}"
    assert found.notice == (
        "no API key found: replaying examples/x/script.yaml; "
        "set ANTHROPIC_API_KEY or use --model to ask a real model"
    )


def test_without_key_and_script_the_ways_out_are_named() -> None:
    """The first thing most newcomers meet is this message."""
    with pytest.raises(ConfigError, match="no API key: set ANTHROPIC_API_KEY or OPENAI_API_KEY"):
        choose_model(model=None, script=None, base_url=None, environ={}, beside=None)


def test_a_script_and_a_model_exclude_each_other() -> None:
    """One of the two would have no effect."""
    with pytest.raises(ConfigError, match=r"found both \(s.yaml and openai:m\)"):
        choose_model(model="openai:m", script="s.yaml", base_url=None, environ={}, beside=None)
