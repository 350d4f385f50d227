"""Map the finish reasons that servers send (finish words) to `FinishReason` values.

Case does not matter. An unknown word means `FinishReason.OTHER`: the answer's tool calls never run,
and its text comes with a warning. A word that reports a server failure raises an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from ..errors import StreamTruncated
from ..values import FinishReason

__all__ = ["FinishWord", "FinishWords", "meaning", "worst"]


class FinishWord(NamedTuple):
    """The meaning of a server's finish reason, and the services that send it.

    `means` is None if the server reports with this word that it failed.
    """

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
"""The rank of each bad meaning, higher is worse; all other meanings have rank 0."""


def worst(words: FinishWords, earlier: str, word: str) -> str:
    """Return the worse of two finish words, or the later word if both are equally bad."""
    before, after = [
        _BADNESS.get(words.get(raw.lower(), _UNKNOWN).means, 0) for raw in (earlier or word, word)
    ]
    return earlier if before > after else word


def meaning(words: FinishWords, raw: str) -> FinishReason:
    """Return the `FinishReason` for a server's finish word `raw`.

    Raises:
        StreamTruncated: `raw` is empty, or reports that the server failed.
    """
    word = words.get(raw.lower(), _UNKNOWN)
    if word.means is None or not raw:
        raise StreamTruncated(
            f"finish reason: expected a word that ends an answer, found {raw!r}: the server broke "
            "off before the model was done. Fix: ask again; what came is not an answer."
        )
    return word.means
