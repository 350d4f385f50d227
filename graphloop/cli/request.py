"""What the command line asked of `run` and `resume`, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from ..errors import ConfigError

__all__ = ["Approve", "ResumeRequest", "RunRequest", "refuse_blanks"]


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
    as_json: bool = False

    def refuse_blanks(self) -> None:
        """Refuse what was given without saying anything.

        Raises:
            ConfigError: an argument or option is blank.
        """
        refuse_blanks({"RUN": self.run, "--target": self.target, "--base-url": self.base_url})


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
