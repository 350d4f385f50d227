"""Findings: what became of each part of a topology that was read or written as Open Agent Spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final, get_args

from ...errors import Problem
from ..problems import Mark

__all__ = ["AgentSpecFinding", "AgentSpecReport", "Findings", "Verdict"]

Verdict: TypeAlias = Literal["exact", "approximated", "refused"]
"""`exact`: it means the same on both sides. `approximated`: nearly, and how not is said. `refused`:
nothing fits; it was left out."""

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@final
@dataclass(frozen=True)
class AgentSpecFinding:
    """What became of one component, or of one part of a topology.

    Attributes:
        verdict: "exact", "approximated" or "refused".
        kind: what it is: a component type of Agent Spec, or a part of a topology.
        name: its id in Agent Spec, or its name in the topology.
        said: what it became, or why nothing.
        place: `file:line:column` where it was read; empty for what was written.
    """

    verdict: Verdict
    kind: str
    name: str
    said: str
    place: str = ""

    def __str__(self) -> str:
        at = f"{self.place}: " if self.place else ""
        return f"{self.verdict}: {at}{self.kind} {self.name!r}: {self.said}"


@final
@dataclass(frozen=True)
class AgentSpecReport:
    """What is exact, approximated and refused.

    Attributes:
        findings: what became of each part.
        is_carried: whether what was read is the topology in a document's metadata, in which what
            is refused is not left out: it is what the rest of the document does not show.
    """

    findings: tuple[AgentSpecFinding, ...]
    is_carried: bool = False

    def __iter__(self) -> Iterator[AgentSpecFinding]:
        return iter(self.findings)

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(one))} {one}" for one in VERDICTS)
        return "\n".join((*map(str, self.findings), counts))

    def of(self, verdict: Verdict) -> tuple[AgentSpecFinding, ...]:
        """Return the findings of one verdict."""
        return tuple([one for one in self.findings if one.verdict == verdict])

    @property
    def refused(self) -> tuple[AgentSpecFinding, ...]:
        """What has no counterpart, and was left out."""
        return self.of("refused")

    def problems(self, fix: str) -> tuple[Problem, ...]:
        """Return what was refused as problems of the file, with what to do about each."""
        return tuple(
            [
                Problem(
                    one.place or one.name, f"{one.kind} {one.name!r} is refused: {one.said}.", fix
                )
                for one in self.refused
            ]
        )


@final
@dataclass
class Findings:
    """Takes findings while something is read or written; each is kept once."""

    file: str = ""
    kept: dict[AgentSpecFinding, None] = field(default_factory=dict[AgentSpecFinding, None])
    waiting: list[dict[AgentSpecFinding, None]] = field(
        default_factory=list["dict[AgentSpecFinding, None]"]
    )

    @property
    def _taken(self) -> dict[AgentSpecFinding, None]:
        return self.waiting[-1] if self.waiting else self.kept

    def add(
        self, verdict: Verdict, kind: str, name: str, said: str, mark: Mark | None = None
    ) -> None:
        """Keep a finding."""
        place = "" if mark is None else f"{self.file}:{mark.line}:{mark.column}"
        self._taken[AgentSpecFinding(verdict, kind, name, said, place)] = None

    @property
    def report(self) -> AgentSpecReport:
        """All of them, in the order in which they came."""
        return AgentSpecReport(tuple(self.kept))

    def begin(self) -> None:
        """Begin to take findings about something that may be left out in the end."""
        self.waiting.append({})

    def end(self) -> tuple[AgentSpecFinding, ...]:
        """Return the findings since the last beginning, which are not kept yet."""
        return tuple(self.waiting.pop())

    def keep(self, findings: Iterable[AgentSpecFinding]) -> None:
        """Keep findings that were waiting."""
        self._taken.update(dict.fromkeys(findings))
