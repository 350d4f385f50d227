"""Docstrings: the summary of a function and of its parameters, in the words of its author.

The parser is slow to import, and few docstrings need it: the room loads this module on first use.
"""

from __future__ import annotations

from inspect import cleandoc

from docstring_parser import ParseError, parse

__all__ = ["parsed_docstring"]


def parsed_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and the descriptions of its parameters by name."""
    try:
        parsed = parse(text)
    except (ParseError, IndexError):
        # Malformed field lists break the parser (found by fuzzing); a tool may still have them.
        return _paragraph(cleandoc(text)), {}
    described = {
        parameter.arg_name: " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    return _paragraph(parsed.description or ""), described


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())
