"""Names of tools that every wire takes, and the nearest where one is not (CONTRACT §9 #56)."""

from __future__ import annotations

import re
import unicodedata

from ..errors import ToolDefinitionError

__all__ = ["check_name", "legal_name"]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_CHARS_MAX = 64


def check_name(name: object) -> None:
    """Refuse a name that some wire would refuse, and offer a legal one.

    Raises:
        ToolDefinitionError: the name is not 1 to 64 letters, digits, '_' or '-'.
    """
    legal = legal_name(name)
    if name == legal:
        return
    raise ToolDefinitionError(
        f"tool {name!r}: a name must be 1 to {NAME_CHARS_MAX} letters, digits, '_' or '-'. "
        f"Fix: name it {legal!r}."
    )


def legal_name(name: object) -> str:
    """Return a name that every wire takes: the same, if it is one."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS_MAX] or "tool"
