"""What the command line asked of `run`, `resume`, `fuzz` and `draw`, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from ..errors import ConfigError

__all__ = [
    "Approve",
    "DrawRequest",
    "FuzzRequest",
    "ResumeRequest",
    "RunRequest",
    "refuse_blanks",
    "refuse_twice",
]


class Approve(StrEnum):
    """Who decides about a call that needs approval."""

    ASK = "ask"
    ALWAYS = "always"
    NEVER = "never"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The arguments of one `graphloop run`; None stands for "not given"."""

    target: str
    prompt: str | None = None
    model: str | None = None
    script: str | None = None
    base_url: str | None = None
    instructions: str | None = None
    max_steps: int | None = None
    store: str | None = None
    approve: Approve | None = None
    unbounded: str | None = None
    explain: bool = False
    registers: tuple[str, ...] = ()
    as_json: bool = False

    def refuse_blanks(self) -> None:
        """Refuse what was given without saying anything; instructions may be empty.

        Raises:
            ConfigError: an argument or option is blank.
        """
        refuse_blanks(
            {
                "FILE_OR_PROMPT": self.target,
                "PROMPT": self.prompt,
                "--model": self.model,
                "--script": self.script,
                "--base-url": self.base_url,
                "--store": self.store,
                "--unbounded": self.unbounded,
            }
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """The arguments of one `graphloop resume`; None stands for "not given"."""

    run: str
    store: str | None = None
    target: str | None = None
    base_url: str | None = None
    max_steps: int | None = None
    approve: Approve | None = None
    unbounded: str | None = None
    registers: tuple[str, ...] = ()
    as_json: bool = False

    def refuse_blanks(self) -> None:
        """Refuse what was given without saying anything.

        Raises:
            ConfigError: an argument or option is blank.
        """
        given = {"RUN": self.run, "--target": self.target, "--base-url": self.base_url}
        refuse_blanks(given | {"--unbounded": self.unbounded})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzRequest:
    """The arguments of one `graphloop fuzz`; None stands for "not given"."""

    target: str
    seeds: int | None = None
    seed: int | None = None
    rules: tuple[str, ...] = ()
    replay: str | None = None
    events: int | None = None
    draw: str | None = None
    registers: tuple[str, ...] = ()
    as_json: bool = False

    def refuse_useless(self) -> None:
        """Refuse what says nothing, or would have no effect.

        Raises:
            ConfigError: an argument or option is blank, or seeds are given beside a token.
        """
        rules = {f"--rule {at}": one for at, one in enumerate(self.rules, 1)}
        given = {"TARGET": self.target, "--replay": self.replay, "--draw": self.draw}
        refuse_blanks(given | rules)
        if self.replay is not None and (self.seeds, self.seed) != (None, None):
            raise ConfigError(
                "--seeds and --seed would have no effect beside --replay, which says which world "
                "to run: leave one of them out."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRequest:
    """The arguments of one `graphloop draw`; None stands for "not given"."""

    target: str | None = None
    output: str | None = None
    text: bool = False
    theme: str = "light"
    level: str = "node"
    expand: bool = False
    check: bool = False
    runs: tuple[str, ...] = ()
    store: str | None = None
    sequence: bool = False

    def refuse_useless(self) -> None:
        """Refuse what says nothing, or would have no effect.

        Raises:
            ConfigError: an argument or option is blank, or two do not go together.
        """
        runs = {f"--run {at}": one for at, one in enumerate(self.runs, 1)}
        refuse_blanks({"TARGET": self.target, "--output": self.output} | runs)
        if self.check and self.runs:
            raise ConfigError(
                "--check and --run would lie upon each other: draw one of them, then the other."
            )
        if self.sequence and len(self.runs) != 1:
            raise ConfigError(
                f"--sequence shows one run: expected one --run, found {len(self.runs)}."
            )
        levels = {"--expand": self.expand, "--level": self.level != "node"}
        if self.sequence and (given := [name for name, is_given in levels.items() if is_given]):
            raise ConfigError(
                f"{' and '.join(given)} would have no effect beside --sequence: leave it out."
            )


def refuse_twice(runs: Sequence[str]) -> None:
    """Refuse a run that was named twice: it would be counted twice.

    Raises:
        ConfigError: one was.
    """
    twice = next((one for at, one in enumerate(runs) if one in runs[:at]), None)
    if twice is not None:
        raise ConfigError(f"--run names {twice!r} twice, and it would count as two: name it once.")


def refuse_blanks(given: Mapping[str, str | None]) -> None:
    """Refuse arguments, by their names on the command line, that were given and say nothing.

    Raises:
        ConfigError: one is blank.
    """
    blank = [name for name, value in given.items() if value is not None and not value.strip()]
    if blank:
        raise ConfigError(
            f"expected {' and '.join(blank)} to say something, found nothing in it "
            "(a shell variable that is not set?): fill it in, or leave it out."
        )
