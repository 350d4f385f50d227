"""Suppression: findings that somebody has looked at and set aside, each for a reason.

Nothing is set aside in silence: the report shows what was and why, a suppression without a reason
is an error, and one that suppresses nothing is a warning, for it would hide what comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from .report import PROPERTIES, Finding, Suppressed

__all__ = ["Ignore", "set_aside"]

Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Reasons by node and code; an empty node stands for the graph as a whole."""


def set_aside(
    findings: Iterable[Finding], ignore: Ignore
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Return the findings that count, with those about `ignore` itself, and those that do not."""
    counted: list[Finding] = []
    aside: list[Suppressed] = []
    for finding in findings:
        reason = ignore.get((finding.node, finding.code), "").strip()
        if reason:
            aside.append(Suppressed(finding, reason))
        else:
            counted.append(finding)
    used = {(one.finding.node, one.finding.code) for one in aside}
    return (*counted, *_misuses(ignore, used)), tuple(aside)


def _misuses(ignore: Ignore, used: set[tuple[str, str]]) -> Iterator[Finding]:
    for (node, code), reason in ignore.items():
        place = f"ignore[{node!r}, {code!r}]"
        if not reason.strip():
            yield Finding(
                "GL0",
                "error",
                place,
                "sets findings aside without saying why.",
                (),
                "give the reason as text, or take it out.",
                node=node,
            )
        elif code not in PROPERTIES:
            yield Finding(
                "GL0",
                "error",
                place,
                f"there is no property {code!r}.",
                (),
                f"name one of {', '.join(PROPERTIES)}.",
                node=node,
            )
        elif (node, code) not in used:
            yield Finding(
                "GL0",
                "warning",
                place,
                "sets nothing aside: there is no such finding.",
                (),
                "take it out, so that it cannot hide what comes.",
                node=node,
            )
