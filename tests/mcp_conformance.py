"""A client for the official conformance tests: it calls each tool of the server at a URL.

    npx @modelcontextprotocol/conformance client --scenario tools_call \
        --command "python tests/mcp_conformance.py"
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

from httpx2 import AsyncClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from graphloop import Agent
from graphloop.mcp import http
from graphloop.policy import approve
from graphloop.testing import ScriptedModel
from graphloop.tools import AnyTool

SAMPLES = {"number": 2, "integer": 2, "string": "two", "boolean": True}


class Person:
    """A person with a browser, who lets this client in; the client forgets it with the process."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None
        self._answer: dict[str, list[str]] = {}

    def auth(self, url: str) -> OAuthClientProvider:
        """Return the authentication that `http` takes."""
        back = AnyUrl("http://localhost:3000/callback")
        about = OAuthClientMetadata(client_name="graphloop", redirect_uris=[back])
        return OAuthClientProvider(url, about, self, self.open, self.answer)

    async def open(self, page: str) -> None:
        """Open the page of the login: it leads back at once."""
        async with AsyncClient() as browser:
            answer = await browser.get(page)
        self._answer = parse_qs(urlsplit(answer.headers["location"]).query)

    async def answer(self) -> AuthorizationCodeResult:
        """Return what the page has led back with."""
        code, state, issuer = (self._answer.get(key, [""])[0] for key in ("code", "state", "iss"))
        return AuthorizationCodeResult(code=code, state=state or None, iss=issuer or None)

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def call_of(tool: AnyTool) -> dict[str, object]:
    """Return a call with a value for each required argument."""
    schema = json.loads(tool.spec.parameters)
    properties = schema.get("properties", {})
    needed = {name: SAMPLES[properties[name]["type"]] for name in schema.get("required", ())}
    return {"name": tool.name, "arguments": needed}


async def main(url: str) -> None:
    """Let an agent call all tools; a person takes the defaults of each form."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    auth = Person().auth(url) if scenario.startswith("auth/") else None
    async with http(url, ask=True, auth=auth) as server:
        tools = await server.tools()
        calls = [{"calls": [call_of(tool)]} for tool in tools]
        model = ScriptedModel([*calls, "Done."])
        agent = Agent(model, tools=tools, approve_tool_call=lambda _: approve())
        result = await agent.generate("Call each tool.")
        print(result.text)  # noqa: T201 - a program


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
