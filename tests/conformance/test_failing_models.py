"""What each failure of a model's server leads to: the table of `docs/how-to/failing-models.md`."""

from __future__ import annotations

import pytest

from graphloop import Agent, Retries
from graphloop.errors import AuthenticationFailed, BadReply, ProviderError, RequestRejected
from graphloop.providers import connect
from graphloop.testing import ScriptedModel
from tests.wire_server import Answer, WireServer, json_answer, sse

FAILED = '{"error": {"message": "no"}}'
UNPAID = '{"error": {"message": "no", "code": "insufficient_quota"}}'
CUT = Answer(sse('{"choices": [{"index": 0, "delta": {"content": "Hal"}}]}'), cut_after=1)
PAGE = Answer([b"<html>"], headers={"content-type": "text/html"})


async def requests_sent(answer: Answer) -> tuple[int, str]:
    """Return the number of requests to a failing server, and the answer of the next model."""
    async with WireServer([answer] * 3) as server:
        model = connect(
            "openai:m", base_url=server.url, api_key="key-1", retries=Retries(delay_s=0)
        )
        async with Agent(model, fallback_models=[ScriptedModel(["From the next."])]) as agent:
            try:
                said = (await agent.generate("Hi")).text
            except ProviderError as error:
                said = type(error).__name__
        return len(server.requests), said


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (json_answer(500, FAILED), 3),
        (json_answer(503, "down"), 3),
        (json_answer(429, FAILED), 3),
        (json_answer(429, FAILED, retry_after="31"), 1),
        (CUT, 3),
    ],
)
async def test_what_may_pass_is_asked_again_and_then_of_the_next_model(
    answer: Answer, sent: int
) -> None:
    """A wait that is too long is left to the next model at once."""
    assert await requests_sent(answer) == (sent, "From the next.")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (json_answer(401, FAILED), AuthenticationFailed),
        (json_answer(403, FAILED), AuthenticationFailed),
        (json_answer(400, FAILED), RequestRejected),
        (json_answer(404, FAILED), RequestRejected),
        (json_answer(429, UNPAID), RequestRejected),
        (PAGE, BadReply),
    ],
)
async def test_what_its_developer_must_mend_is_raised_at_once(
    answer: Answer, error: type[ProviderError]
) -> None:
    """Another model would hide a wrong key, name or address."""
    assert await requests_sent(answer) == (1, error.__name__)
