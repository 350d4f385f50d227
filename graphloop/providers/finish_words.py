"""The words by which servers end an answer, and their meanings.

Capitals do not matter. An unknown word ends an answer without meaning: the calls of the answer
never run, and its text comes with a warning. A word for a server that broke off ends no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from ..errors import StreamTruncated
from ..values import FinishReason

__all__ = ["FinishWord", "FinishWords", "meaning", "worst"]


class FinishWord(NamedTuple):
    """The meaning of a word, and the services that send it."""

    means: FinishReason | None
    services: str


FinishWords: TypeAlias = Mapping[str, FinishWord]

_UNKNOWN: Final = FinishWord(FinishReason.OTHER, "")

_BADNESS: Final[Mapping[FinishReason | None, int]] = {
    FinishReason.OTHER: 1,
    FinishReason.LENGTH: 2,
    FinishReason.CONTEXT_WINDOW: 2,
    FinishReason.REFUSAL: 3,
    FinishReason.CONTENT_FILTER: 3,
    None: 4,
}
"""How bad a meaning is; meanings that are not here end an answer well."""


def worst(words: FinishWords, earlier: str, word: str) -> str:
    """Return the worse of two words; of equals the later."""
    before, after = [
        _BADNESS.get(words.get(raw.lower(), _UNKNOWN).means, 0) for raw in (earlier or word, word)
    ]
    return earlier if before > after else word


def meaning(words: FinishWords, raw: str) -> FinishReason:
    """Return the meaning of a server's last word.

    An empty text means no word.

    Raises:
        StreamTruncated: the server broke off.
    """
    word = words.get(raw.lower(), _UNKNOWN)
    if word.means is None or not raw:
        raise StreamTruncated(
            f"finish reason: expected a word that ends an answer, found {raw!r}: the server broke "
            "off before the model was done. Fix: ask again; what came is not an answer."
        )
    return word.means
