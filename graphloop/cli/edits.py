"""Arguments that somebody typed in place of a call's own."""

from __future__ import annotations

import json

from ..errors import ConfigError

__all__ = ["edited"]


def edited(text: str) -> str:
    """Return arguments that somebody typed.

    Raises:
        ConfigError: they are no JSON object.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"expected the arguments as a JSON object, found {text!r:.80}: {error}"
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(f"expected the arguments as a JSON object, found {text!r:.80}")
    return text
