"""Effects: wishes with a number."""

from __future__ import annotations

from typing import get_args

from graphloop.effects import Effect
from graphloop.step import ANSWERS


def test_every_effect_has_an_id_and_an_answer() -> None:
    """A wish that nothing can answer would park its run for ever."""
    effects = set(get_args(Effect))

    assert effects == set(ANSWERS)
    assert all("id" in kind.__annotations__ for kind in effects)
