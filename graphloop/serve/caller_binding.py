"""Caller binding: what binds a served run, and the answers to its questions, to one caller.

A client of a server may be hostile. It holds two texts that it can change: a run's id, and the
state that it sends back with its answers. Both end in a mac under the server's secret:

    run id           <random>-<mac of random and caller>, or
                     <random>.<context of an A2A task>-<mac of both and caller>
    request state    an approval token for the open questions of one run, tool and caller

A state that fits no longer, because its questions were answered, is refused like a forged one.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, final
from uuid import uuid4

from msgspec.json import encode

from ..policy import Capability, claimed, digest, issue, secret_of, verify
from ..questions import Pending

__all__ = ["CallerClaims"]

ANSWERS: Final = "answers"
"""The key in a token of a request state; no tool call has such a key."""
TAG_CHARS: Final = 32
CONTEXT_BYTES_MAX: Final = 96
"""The longest context that a run's id names; ids of runs have a largest length."""


@final
class CallerClaims:
    """Signs run ids and request states for one caller, and checks them.

    Args:
        secret: the signing key; give later processes the same one. None for a random key.

    Raises:
        ConfigError: the secret is empty.
    """

    def __init__(self, secret: str | bytes | None) -> None:
        self._secret = secret_of(secret) or secrets.token_bytes(32)

    def new_run(self, caller: str, context: str = "") -> str:
        """Return the id of a new run of a caller, which names a context if one is given.

        Raises:
            ValueError: the context has more than `CONTEXT_BYTES_MAX` bytes.
        """
        name, told = uuid4().hex, context.encode()
        if len(told) > CONTEXT_BYTES_MAX:
            raise ValueError(f"expected at most {CONTEXT_BYTES_MAX} bytes, found {len(told)}")
        if told:
            name = f"{name}.{urlsafe_b64encode(told).decode().rstrip('=')}"
        return f"{name}-{self._tag_of(name, caller)}"

    def owns(self, caller: str, run_id: str) -> bool:
        """Whether a run's id was made for this caller."""
        name, _, tag = run_id.rpartition("-")
        return run_id.isascii() and hmac.compare_digest(tag, self._tag_of(name, caller))

    def context_of(self, run_id: str) -> str:
        """Return the context that a run's id names, which a caller owns; empty for none."""
        told = run_id.rpartition("-")[0].partition(".")[2]
        return urlsafe_b64decode(told + "=" * (-len(told) % 4)).decode()

    def state(self, caller: str, tool: str, run_id: str, asked: Iterable[Pending]) -> str:
        """Return the state that a client sends back with its answers."""
        return issue(_capability_for(caller, tool, run_id, asked), self._secret)

    def run_of(self, state: str) -> str | None:
        """Return the id of the run in a state that this server has signed; else None."""
        found = claimed(state)
        if found is None or verify(state, found, secret=self._secret, now=0.0):
            return None
        return found.run_id

    def fits(
        self, state: str, caller: str, tool: str, run_id: str, asked: Iterable[Pending]
    ) -> bool:
        """Whether a state belongs to the caller, the tool, and exactly these open questions."""
        expected = _capability_for(caller, tool, run_id, asked)
        return not verify(state, expected, secret=self._secret, now=0.0)

    def _tag_of(self, name: str, caller: str) -> str:
        return hmac.new(self._secret, encode((name, caller)), "sha256").hexdigest()[:TAG_CHARS]


def _capability_for(caller: str, tool: str, run_id: str, asked: Iterable[Pending]) -> Capability:
    questions = [(one.key, one.name, one.arguments, one.unknown) for one in asked]
    return Capability(
        run_id, ANSWERS, tool, digest(encode(questions).decode()), path=digest(caller)
    )
