"""What a server's last word means."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphloop.errors import StreamTruncated
from graphloop.providers.anthropic.wire import ANTHROPIC_WORDS
from graphloop.providers.finish_words import FinishWord, meaning
from graphloop.providers.openai_chat.wire import CHAT_WORDS
from graphloop.values import FinishReason

TABLES = (CHAT_WORDS, ANTHROPIC_WORDS)


@pytest.mark.parametrize("words", TABLES)
def test_each_word_means_what_its_table_says_in_capitals_too(
    words: Mapping[str, FinishWord],
) -> None:
    """Gateways to Gemini write the words of every wire in capitals."""
    for name, word in words.items():
        for raw in (name, name.upper()):
            if word.means is None:
                with pytest.raises(StreamTruncated, match=raw):
                    meaning(words, raw)
            else:
                assert word.means is meaning(words, raw)


@pytest.mark.parametrize("words", TABLES)
@pytest.mark.parametrize("raw", ["a_word_of_tomorrow", "stop it", "\ufffd"])
def test_a_word_that_no_table_holds_means_nothing(
    words: Mapping[str, FinishWord], raw: str
) -> None:
    """A guess would run a call that was cut."""
    assert FinishReason.OTHER is meaning(words, raw)


@pytest.mark.parametrize("words", TABLES)
def test_each_word_names_the_services_that_say_it(words: Mapping[str, FinishWord]) -> None:
    """A word without a source is a guess."""
    assert all(name == name.lower() and word.services for name, word in words.items())
