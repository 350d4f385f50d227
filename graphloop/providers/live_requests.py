"""Live requests: whether this process may send requests to model servers.

A test suite that must not spend money refuses them: by the environment variable
`GRAPHLOOP_ALLOW_REQUESTS=0`, or by `refuse_requests()`. A request to the loopback interface is
always allowed: its server is a part of the test, or a model on this machine. A scripted model
sends no request. A provider of your own is not refused, unless it calls `check_request`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_address
from os import environ
from typing import Final

from ..errors import ConfigError

__all__ = ["allow_requests", "check_request", "refuse_requests"]

VARIABLE: Final = "GRAPHLOOP_ALLOW_REQUESTS"
ANSWERS: Final = {"": True, "1": True, "true": True, "0": False, "false": False}

_switches: list[_Switch] = []
"""The open `with` blocks, innermost last. All threads and tasks share it: a refusal that holds for
one task only would let a test's worker thread spend money."""


class _Switch:
    """An open `with` block that allows or refuses requests."""

    def __init__(self, *, allows: bool) -> None:
        self.allows = allows


@contextmanager
def refuse_requests() -> Generator[None]:
    """Refuse requests to real model servers inside the `with` block, in the whole process.

    with refuse_requests():
        agent.generate_sync("What's the weather?")  # ConfigError, unless the model is scripted
    """
    with _switch(allows=False):
        yield


@contextmanager
def allow_requests() -> Generator[None]:
    """Allow requests to real model servers inside the `with` block, in the whole process.

    The innermost block decides, and a block takes precedence over the environment variable.

        with allow_requests():
            agent.generate_sync("What's the weather?")  # asks the model's server
    """
    with _switch(allows=True):
        yield


@contextmanager
def _switch(*, allows: bool) -> Generator[None]:
    switch = _Switch(allows=allows)
    _switches.append(switch)
    try:
        yield
    finally:
        _switches.remove(switch)


def check_request(label: str, host: str) -> None:
    """Raise an error if this process must not send a request to the server of a model.

        check_request("acme:large", "api.acme.example")  # in a provider of your own

    Args:
        label: the model's label, for the error.
        host: the server's host name or IP address.

    Raises:
        ConfigError: requests are refused here; nothing has been sent.
    """
    if _switches:
        allowed, found = _switches[-1].allows, "refuse_requests()"
        fix = "`with graphloop.testing.allow_requests():` around it"
    else:
        text = environ.get(VARIABLE, "")
        allowed, found = _allowed(text), f"{VARIABLE}={text}"
        fix = f"{VARIABLE}=1"
    if allowed or _is_loopback(host):
        return
    raise ConfigError(
        f"model {label!r}: expected a scripted model, since {found} refuses requests to model "
        f"servers, found a request to {host!r}; nothing was sent. Fix: run the test with "
        f"`agent.override(model=ScriptedModel([…]))`; to allow the request, {fix}."
    )


def _allowed(text: str) -> bool:
    answer = ANSWERS.get(text.strip().lower())
    if answer is None:
        raise ConfigError(f"{VARIABLE}: expected 0 or 1, found {text!r}. Fix: set one of them.")
    return answer


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
