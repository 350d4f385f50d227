"""Suppression: findings that somebody has looked at and set aside, each for a reason.

Nothing is set aside in silence: the report shows what was and why, a suppression without a reason
is an error, and one that suppresses nothing is a warning, for it would hide what comes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from .report import PROPERTIES, Finding, Suppressed, Unknown

__all__ = ["Ignore", "aside_in", "claims", "excused", "set_aside"]

Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Reasons by node and code; an empty node stands for the graph as a whole."""


def excused(found: Finding | Unknown, ignore: Ignore) -> str:
    """Return the reason for which something is set aside; empty for none."""
    return ignore.get((found.node, found.code), "").strip()


def aside_in(ignore: Ignore) -> frozenset[str]:
    """Return the nodes whose cycles (GL4) are set aside, by their names in their own graphs."""
    return frozenset(node.rpartition("/")[2] for node, code in ignore if code == "GL4")


def claims(found: Finding | Unknown, ignore: Ignore) -> Finding | Unknown:
    """Return what nobody can tell as a finding, where somebody answers for it."""
    if isinstance(found, Finding) or not found.node or not excused(found, ignore):
        return found
    place = f"node {found.node!r}"
    fix = "let its nodes promise what they do."
    return Finding(found.code, "warning", place, found.reason, (), fix, node=found.node)


def set_aside(
    findings: Iterable[Finding], ignore: Ignore, told: Container[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Return the findings that count, with those about `ignore` itself, and those that do not.

    Args:
        findings: what was found.
        ignore: the reasons.
        told: what the names of nodes begin with of which anything was told; None for all.
    """
    counted: list[Finding] = []
    aside: list[Suppressed] = []
    for finding in findings:
        reason = excused(finding, ignore)
        if reason:
            aside.append(Suppressed(finding, reason))
        else:
            counted.append(finding)
    used = {(one.finding.node, one.finding.code) for one in aside}
    looked = {one: why for one, why in ignore.items() if told is None or _prefix(one[0]) in told}
    return (*counted, *_misuses(looked, used)), tuple(aside)


def _prefix(node: str) -> str:
    """Return the names of the children that lead to a node."""
    path, slash, _ = node.rpartition("/")
    return path + slash


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
