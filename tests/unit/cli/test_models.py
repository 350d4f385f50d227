"""`graphloop models`."""

from __future__ import annotations

import json

import pytest

from graphloop.providers import SERVICES
from tests.unit.cli.command_line import ROOT, shown
from tests.unit.cli.terminal import Terminal

KEY = "canary-key-0123456789"


def test_each_service_is_a_line_with_its_key_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is never shown, only whether it is set."""
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_BASE_URL", f"http://me:{KEY}@host/v1")

    text = shown("models")

    head, *lines = text.splitlines()
    assert head.split() == ["SERVICE", "WIRE", "KEY", "IS", "SET", "URL"]
    assert sorted(SERVICES) == [line.split()[0] for line in lines]
    groq, ollama, openai = (
        next(line.split() for line in lines if line.startswith(name))
        for name in ("groq ", "ollama ", "openai ")
    )
    assert groq == ["groq", "openai-chat", "GROQ_API_KEY", "yes", SERVICES["groq"].base_url]
    assert ollama[3:] == ["not", "needed", "OLLAMA_BASE_URL"]
    assert openai[2:4] == ["OPENAI_API_KEY", "no"]
    assert KEY not in text


def test_the_services_are_json_lines_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that sets up keys reads them."""
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)

    text = shown("models", "--json")

    rows = {row["service"]: row for row in map(json.loads, text.splitlines())}
    assert set(SERVICES) == set(rows)
    assert rows["mistral"]["is_set"] is True
    assert rows["xai"]["is_set"] is False
    assert KEY not in text


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (200, ["SERVICE", "WIRE", "KEY", "IS", "SET", "URL"]),
        (80, ["SERVICE", "WIRE", "KEY", "IS", "SET"]),
        (60, ["SERVICE", "KEY", "IS", "SET"]),
        (44, ["SERVICE", "IS", "SET"]),
    ],
)
def test_a_line_of_the_list_fits_the_terminal(columns: int, head: list[str]) -> None:
    """A terminal would break a longer line in its words."""
    with Terminal("models", cwd=ROOT, columns=columns) as terminal:
        assert terminal.end() == 0
        lines = terminal.text.splitlines()

    assert head == lines[0].split()
    assert max(map(len, lines)) <= columns
    assert len(SERVICES) + 1 == len(lines)
