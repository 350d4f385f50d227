"""Approvals: a person's answer about one call, and the token that binds it to that call.

An approval is a capability: it holds for one call of one run with exactly these arguments, until
it expires. Its token is `v1.<payload>.<mac>`: the capability as canonical JSON and its HMAC-SHA256,
both in base64url without padding. Without a secret the mac is empty, and the token protects from
mistakes only, not from an attacker. The journal ensures that a token is used only once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from ..errors import ConfigError
from ..spending import is_number

__all__ = [
    "AS_IT_WAS",
    "Approval",
    "Capability",
    "Refusal",
    "approve",
    "claimed",
    "decline",
    "digest",
    "issue",
    "refuse_edit",
    "secret_of",
    "verify",
]

VERSION = "v1"

AS_IT_WAS: Final = (
    "it may have run already, so its arguments cannot be edited: approve it as it is, "
    "or deny it, and the model may ask anew"
)
"""The reason that an `unknown` call allows no edit; no gate would check the new arguments."""

Refusal: TypeAlias = Literal[
    "",
    "malformed",
    "not signed",
    "not verifiable",
    "forged",
    "of another run",
    "of another call",
    "for other arguments",
    "of another conversation",
    "expired",
]
"""The reason to refuse a token; empty for a valid token. `not verifiable`: no secret is known."""


@final
@dataclass(frozen=True, slots=True)
class Approval:
    """A person's answer about one call.

    `arguments` replaces the call's arguments: JSON text, or a mapping, which may be empty. None
    keeps the call's own arguments. `token` is the token of the approval request, which names the
    call. `signal_id` is the id of an answer that came through a store, which accepts an id once.
    """

    approved: bool
    reason: str = ""
    arguments: str | Mapping[str, object] | None = None
    token: str = field(default="", repr=False)
    signal_id: str = ""

    @property
    def edit(self) -> str:
        """The replacement arguments, as JSON text; empty to keep the call's own arguments."""
        edit = self.arguments
        return edit if isinstance(edit, str) else _edit_text(edit)


class Capability(Struct, frozen=True, gc=False):
    """The call that an approval lets run: its tool, its key, and the digest of its arguments.

    `expires_at` is in seconds since the epoch, None for never; `path` distinguishes child runs.
    `conversation` is the digest of the conversation that ends in the call, for approvals without a
    known run. A run ignores this digest, because it knows its own conversation.
    """

    run_id: str
    key: str
    tool: str
    digest: str
    expires_at: float | None = None
    path: str = ""
    conversation: str = ""


def approve(
    *, edit: Mapping[str, object] | str | None = None, reason: str = "", token: str = ""
) -> Approval:
    """Return an approval that lets the call run, perhaps with edited arguments.

    Args:
        edit: the complete replacement arguments, as a mapping or as JSON text. {} means no
            arguments; None keeps the call's own arguments.
        reason: the reason for the approval, for the record.
        token: the token of the approval request, if the request has one.

    Raises:
        ConfigError: `edit` cannot be written as JSON, or is empty text.
    """
    return Approval(approved=True, reason=reason, arguments=_edit_text(edit) or None, token=token)


def decline(reason: str = "") -> Approval:
    """Return an answer that denies the call; the model reads the reason."""
    return Approval(approved=False, reason=reason)


def refuse_edit(place: str, approval: Approval, *, unknown: bool) -> None:
    """Raise if an approval edits an `unknown` call, which can only run again unchanged.

    Raises:
        ConfigError: the approval edits an `unknown` call; the message begins with `place`.
    """
    if unknown and approval.approved and approval.edit:
        raise ConfigError(f"{place}: {AS_IT_WAS}")


def digest(arguments: str) -> str:
    """Return the SHA-256 of the exact argument text, in hexadecimal."""
    return hashlib.sha256(_utf8(arguments)).hexdigest()


def secret_of(value: bytes | str | None) -> bytes | None:
    """Return a secret as bytes; None stays None, and means that tokens are not signed.

    Raises:
        ConfigError: the secret is empty, or neither text nor bytes.
    """
    if value is not None and not isinstance(value, bytes | str):  # pyright: ignore[reportUnnecessaryIsInstance] - no type checker has to have seen the caller's code.
        raise ConfigError(
            f"approval secret: expected text or bytes, found {type(value).__name__}. Fix: pass one."
        )
    if value is not None and not value:
        raise ConfigError(
            f"approval secret: expected one that is not empty, found {value!r}. "
            "Fix: pass a random one, or None for tokens that are not signed."
        )
    return _utf8(value) if isinstance(value, str) else value


def issue(capability: Capability, secret: bytes | str | None) -> str:
    """Return the token that lets its holder approve the call of `capability`.

    Equal inputs give equal tokens. Without a secret the token is not signed, and can be forged.

    Raises:
        ConfigError: the secret is not valid, or `expires_at` is not a finite number.
    """
    if capability.expires_at is not None and not is_number(capability.expires_at):
        raise ConfigError(
            f"expires_at: expected a finite number of seconds, found {capability.expires_at!r}. "
            "Fix: give the time as seconds since the epoch."
        )
    payload, key = _encode(capability), secret_of(secret)
    return f"{VERSION}.{payload}.{'' if key is None else _sign(payload, key)}"


def verify(token: str, expected: Capability, *, secret: bytes | str | None, now: float) -> Refusal:
    """Return the reason to refuse a token for the expected call; empty if the token is valid.

    No token makes this function raise. A token has expired when the time in the token or the time
    in `expected` has come; the two times may differ.

    Raises:
        ConfigError: the secret is not valid.
    """
    key = secret_of(secret)
    segments = token.split(".", 3)
    if len(segments) != 3 or segments[0] != VERSION:
        return "malformed"
    _, payload, mac = segments
    if key is None and mac:
        return "not verifiable"
    if key is not None and not mac:
        return "not signed"
    if key is not None and not hmac.compare_digest(_utf8(_sign(payload, key)), _utf8(mac)):
        return "forged"
    found = _decode(payload)
    return "malformed" if found is None else _compare(found, expected, now)


def claimed(token: str) -> Capability | None:
    """Return the capability in a token, without verification; None if the token holds none."""
    segments = token.split(".", 2)
    return _decode(segments[1]) if len(segments) == 3 else None


def _compare(found: Capability, expected: Capability, now: float) -> Refusal:
    if found.run_id != expected.run_id:
        return "of another run"
    if (found.path, found.key, found.tool) != (expected.path, expected.key, expected.tool):
        return "of another call"
    if found.digest != expected.digest:
        return "for other arguments"
    if expected.conversation and found.conversation != expected.conversation:
        return "of another conversation"
    for expires_at in (found.expires_at, expected.expires_at):
        # Not `now >= expires_at`: a clock that returns NaN must not approve.
        if expires_at is not None and not now < expires_at:
            return "expired"
    return ""


def _encode(capability: Capability) -> str:
    fields = msgspec.structs.asdict(capability)
    if capability.expires_at is not None:
        fields["expires_at"] = float(capability.expires_at)
    if not capability.conversation:
        del fields["conversation"]  # Tokens of a run omit this field.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _base64(text.encode("ascii"))


def _decode(payload: str) -> Capability | None:
    """Return the capability that a payload encodes; None unless the payload is canonical."""
    try:
        padded = payload + "=" * (-len(payload) % 4)
        fields: object = json.loads(base64.urlsafe_b64decode(padded))
        capability = msgspec.convert(fields, Capability)
        canonical = _encode(capability)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return capability if canonical == payload else None


def _sign(payload: str, key: bytes) -> str:
    return _base64(hmac.digest(key, _utf8(f"{VERSION}.{payload}"), "sha256"))


def _edit_text(edit: Mapping[str, object] | str | None) -> str:
    if edit is None:
        return ""
    if edit == "":
        raise ConfigError(
            "approve: `edit` must be a mapping or JSON text, found ''. "
            "Fix: leave it out for the call's own arguments, or pass {} for none."
        )
    if isinstance(edit, str):
        return edit
    try:
        text = json.dumps(edit, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()  # Raises for a lone surrogate.
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"approve: `edit` cannot be written as JSON: {error}. "
            "Fix: use text, numbers, lists and mappings."
        ) from error
    return text


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _utf8(text: str) -> bytes:
    """Return text as UTF-8 bytes, even if it has lone surrogates, as text from a model may."""
    return text.encode("utf-8", "surrogatepass")
