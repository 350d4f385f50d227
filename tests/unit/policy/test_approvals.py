"""Approvals: verdicts, and tokens that are good for exactly one call."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.policy.approvals import (
    Approval,
    Capability,
    approve,
    claimed,
    decline,
    digest,
    issue,
    secret_of,
    verify,
)
from graphloop.values import evolve

texts = st.text(max_size=12)  # with lone surrogates: models write them.
times = st.floats(0, 4e9)
capabilities = st.builds(Capability, texts, texts, texts, texts, st.none() | times, texts, texts)
secrets = st.none() | st.binary(min_size=1, max_size=40) | st.text(min_size=1, max_size=9)

ASKED = Capability("run-1", "c0.1", "refund", digest('{"amount": 5}'), 100.0, "support")
KEY = b"0123456789abcdef"


def payload_of(fields: object) -> str:
    """Return any JSON as the payload of a token."""
    text = (
        fields
        if isinstance(fields, str)
        else json.dumps(fields, sort_keys=True, separators=(",", ":"))
    )
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def fields_of(capability: Capability) -> dict[str, object]:
    return {
        "run_id": capability.run_id,
        "key": capability.key,
        "tool": capability.tool,
        "digest": capability.digest,
        "expires_at": capability.expires_at,
        "path": capability.path,
    }


@given(capability=capabilities, secret=secrets)
@example(Capability("r" * 100_000, "\ud800", "é", ""), "geheimnis-ß")
@example(Capability("", "", "", "", 0.0), None)
def test_a_token_approves_the_call_it_was_issued_for(
    capability: Capability, secret: bytes | str | None
) -> None:
    """Until its time has come; and asking again gives the same token."""
    token = issue(capability, secret)
    expires_at = capability.expires_at
    early = 0.0 if expires_at is None else expires_at - 1.0

    assert token == issue(evolve(capability), secret)
    assert token.isascii()
    assert "" == verify(token, capability, secret=secret, now=early)
    if expires_at is not None:
        assert "expired" == verify(token, capability, secret=secret, now=expires_at)


@given(one=capabilities, two=capabilities, secret=secrets)
def test_different_capabilities_have_different_tokens(
    one: Capability, two: Capability, secret: bytes | str | None
) -> None:
    """No two calls share an approval, whatever their texts hold."""
    assert (one == two) == (issue(one, secret) == issue(two, secret))


@given(
    token=st.one_of(
        st.text(max_size=40),
        st.lists(st.text(max_size=9) | st.just("v1"), max_size=5).map(".".join),
        st.binary(max_size=40).map(lambda raw: f"v1.{payload_of(raw.decode('latin-1'))}."),
        st.text(max_size=40).map(lambda mac: f"{issue(ASKED, None)}{mac}"),
    ),
    secret=secrets,
)
@example("v1." * 1_000_000, KEY)
@example("v1.é.ü", KEY)
@example("v1.\ud800.\ud800", KEY)
@example("v1.é.", None)
@example(f"v1.{payload_of('[' * 100_000)}.", None)
@example(f"v1.{payload_of('9' * 100_000)}.", None)
@example("v1.AAAAA.", None)
def test_no_text_that_was_not_issued_is_good(token: str, secret: bytes | str | None) -> None:
    """And none raises: the text comes from outside, and a crash would be a verdict too."""
    if token != issue(ASKED, None):
        assert "" != verify(token, ASKED, secret=secret, now=0.0)


@given(at=st.integers(0, 400), by=st.integers(1, 255), secret=st.sampled_from([None, KEY]))
def test_a_token_changed_anywhere_is_no_longer_good(at: int, by: int, secret: bytes | None) -> None:
    """One character is enough, also the spare bits of the last one, which base64 ignores.

    Except that without a secret, a time can become another time.
    """
    capability = ASKED if secret else evolve(ASKED, expires_at=None)
    token = issue(capability, secret)
    at %= len(token)
    changed = f"{token[:at]}{chr((ord(token[at]) + by) % 256)}{token[at + 1 :]}"

    assert "" != verify(changed, capability, secret=secret, now=0.0)


@pytest.mark.parametrize("secret", [None, KEY])
@pytest.mark.parametrize(
    ("other", "told"),
    [
        (evolve(ASKED, run_id="run-2"), "of another run"),
        (evolve(ASKED, key="c0.2"), "of another call"),
        (evolve(ASKED, tool="pay"), "of another call"),
        (evolve(ASKED, path="sales"), "of another call"),
        (evolve(ASKED, digest=digest('{"amount":5}')), "for other arguments"),
        (evolve(ASKED, expires_at=9.0), "expired"),
        (evolve(ASKED, expires_at=None), ""),
    ],
)
def test_a_token_is_no_good_for_another_call(
    other: Capability, told: str, secret: bytes | None
) -> None:
    """An approval that is not bound to its call can be moved to a worse one (langgraph #8026)."""
    token = issue(other, secret)

    assert told == verify(token, ASKED, secret=secret, now=10.0)


@pytest.mark.parametrize("now", [100.0, 100.5, float("nan"), float("inf")])
@pytest.mark.parametrize("expires_at", [100.0, None])
def test_an_approval_comes_too_late_from_the_very_second_on(
    now: float, expires_at: float | None
) -> None:
    """By the token's time or by the request's; a clock that says nonsense is late as well."""
    token = issue(evolve(ASKED, expires_at=expires_at), KEY)

    assert "expired" == verify(token, ASKED, secret=KEY, now=now)


@pytest.mark.parametrize(
    ("token", "secret", "told"),
    [
        (issue(ASKED, None), KEY, "not signed"),
        (issue(ASKED, KEY), None, "not verifiable"),
        (issue(ASKED, KEY), "another", "forged"),
        (issue(ASKED, KEY) + "A", KEY, "forged"),
        (issue(ASKED, KEY).replace("v1.", "v2."), KEY, "malformed"),
        (issue(ASKED, KEY) + ".", KEY, "malformed"),
        ("v1.", KEY, "malformed"),
        ("", KEY, "malformed"),
    ],
)
def test_the_reason_tells_what_is_wrong_with_a_token(
    token: str, secret: bytes | str | None, told: str
) -> None:
    """A signed run that is resumed without its secret takes nobody's word (CONTRACT §9 #46)."""
    assert told == verify(token, ASKED, secret=secret, now=0.0)


@pytest.mark.parametrize(
    "payload",
    [
        payload_of({**fields_of(ASKED), "more": 1}),
        payload_of({**fields_of(ASKED), "expires_at": float("nan")}),
        payload_of({**fields_of(ASKED), "expires_at": 100}),
        payload_of({**fields_of(ASKED), "expires_at": "100.0"}),
        payload_of({**fields_of(ASKED), "expires_at": 10**400}),
        payload_of({**fields_of(ASKED), "key": 1}),
        payload_of({"run_id": "run-1"}),
        payload_of(json.dumps(fields_of(ASKED))),
        payload_of([]),
        payload_of("{"),
        payload_of(fields_of(ASKED)) + "=",
        "",
    ],
)
def test_only_the_canonical_payload_is_read(payload: str) -> None:
    """Two spellings of one capability would be two approvals to whoever remembers the first."""
    assert "malformed" == verify(f"v1.{payload}.", ASKED, secret=None, now=0.0)
    assert "" == verify(f"v1.{payload_of(fields_of(ASKED))}.", ASKED, secret=None, now=0.0)


def test_a_token_has_the_documented_form() -> None:
    """Other processes and other languages write and read it."""
    version, payload, mac = issue(ASKED, KEY).split(".")

    assert "v1" == version
    assert payload_of(fields_of(ASKED)) == payload
    assert "p2DEzdXRX3T_3q6wRpQlwII6v6uESmYXTT4Q3lJ6y5E" == mac
    assert issue(ASKED, KEY) == issue(ASKED, KEY.decode())
    assert f"v1.{payload}." == issue(ASKED, None)


@given(text=texts)
def test_a_digest_is_of_the_exact_text(text: str) -> None:
    """Also of text that is no Unicode; equal JSON in other words is other text."""
    expected = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    assert expected == digest(text)
    assert digest(text) != digest(f"{text} ")


@pytest.mark.parametrize("value", ["", b"", 5, bytearray(b"x")])
def test_what_is_no_secret_is_refused(value: Any) -> None:
    """An empty secret signs, and protects from nobody (CONTRACT A18)."""
    with pytest.raises(ConfigError, match="approval secret"):
        secret_of(value)
    with pytest.raises(ConfigError, match="approval secret"):
        issue(ASKED, value)
    with pytest.raises(ConfigError, match="approval secret"):
        verify("", ASKED, secret=value, now=0.0)


@pytest.mark.parametrize("expires_at", [float("nan"), float("inf"), True, "soon"])
def test_a_time_that_never_comes_is_refused(expires_at: Any) -> None:
    """NaN would be an approval that nobody can tell from an expired one."""
    with pytest.raises(ConfigError, match="expires_at: expected a finite number"):
        issue(evolve(ASKED, expires_at=expires_at), None)


def test_a_whole_second_is_the_same_time_as_a_number_with_a_point() -> None:
    """JSON tells them apart, clocks do not."""
    assert issue(ASKED, KEY) == issue(evolve(ASKED, expires_at=100), KEY)


def test_an_approval_may_edit_the_arguments() -> None:
    """As a mapping, or as the text to run."""
    assert Approval(approved=True) == approve()
    assert '{"amount":5}' == approve(edit={"amount": 5}).edit
    assert '{"amount": 5}' == approve(edit='{"amount": 5}').edit


def test_an_edit_to_no_arguments_is_an_edit() -> None:
    """Without it, the call would run with the very arguments that a person took away."""
    assert "{}" == approve(edit={}).edit
    assert "" == approve().edit


def test_an_edit_is_what_it_was_when_it_was_given() -> None:
    """The caller's mapping may change afterwards."""
    edit: dict[str, object] = {"amount": 5}
    approval = approve(edit=edit)
    edit["amount"] = 500

    assert '{"amount":5}' == approval.edit


@pytest.mark.parametrize("edit", ["", {"x": object()}, {"x": "\ud800"}])
def test_an_edit_that_is_no_json_is_refused(edit: Any) -> None:
    """Where it was written, not in the process that runs the tool."""
    with pytest.raises(ConfigError, match="approve: `edit`"):
        approve(edit=edit)


def test_a_denial_has_a_reason_and_nothing_else() -> None:
    """The model reads it."""
    assert Approval(approved=False, reason="too much") == decline("too much")
    assert Approval(approved=False) == decline()


def test_a_token_says_what_it_claims_to_be_good_for() -> None:
    """For whoever cannot know which run has asked; nothing of it is verified."""
    capability = Capability("r", "c0.0", "pay", digest("{}"), 60.0)

    assert capability == claimed(issue(capability, "secret"))
    assert capability == claimed(issue(capability, None))
    for token in ("", "v1", "v1.x.y", "v1..", "v1.e30.e30"):
        assert claimed(token) is None


def test_a_token_may_be_bound_to_a_conversation() -> None:
    """A run, which is known by its id, does not look at it; who knows no run does."""
    unbound = evolve(ASKED, conversation="")
    bound, other = evolve(ASKED, conversation="a"), evolve(ASKED, conversation="b")
    token = issue(bound, "secret")

    assert "" == verify(token, bound, secret="secret", now=1.0)  # noqa: S106
    assert "" == verify(token, unbound, secret="secret", now=1.0)  # noqa: S106
    assert "of another conversation" == verify(token, other, secret="secret", now=1.0)  # noqa: S106
    found = verify(issue(unbound, "secret"), bound, secret="secret", now=1.0)  # noqa: S106
    assert "of another conversation" == found


def test_a_token_without_a_conversation_is_written_as_it_always_was() -> None:
    """Those that were given before there was one are still good."""
    payload = issue(ASKED, None).split(".")[1]

    assert "conversation" not in json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert ASKED == claimed(issue(ASKED, None))
