"""`graphloop schema`: the JSON Schema of topologies, for editors."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import ConfigError
from ..topology.registration import Names
from ..topology.schema import schema_of
from .output import printed
from .status import Status, put_file

__all__ = ["schema"]


def schema(output: str | None, *, closed: bool = False) -> Status:
    """Write the schema into a file.

    Args:
        output: the file; stdout if it is None or `-`.
        closed: whether all nodes of one's own are registered: others are refused then.

    Raises:
        ConfigError: the file cannot be written.
    """
    text = (
        json.dumps(schema_of(Names(), open_to_others=not closed), indent=2, ensure_ascii=False)
        + "\n"
    )
    if output is None or printed("-o", output, (".json",)):
        put_file(text)
        return Status.OK
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output!r} cannot be written: {error}") from error
    return Status.OK
