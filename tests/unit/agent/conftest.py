"""What the tests of agents set up."""

from __future__ import annotations

import pytest

from graphloop.testing import ScriptedModel


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the labels of all scripted models that are closed."""
    labels: list[str] = []

    async def note(model: ScriptedModel) -> None:
        labels.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    return labels
