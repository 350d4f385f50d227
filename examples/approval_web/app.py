"""A web page of the questions of all parked runs, for people who approve; it knows no agent.

python examples/approval/agent.py         parks a run in runs.db
python examples/approval_web/app.py       then answer it on http://127.0.0.1:8000

The program that drives the runs goes on with the answers. Put a login before this page.
"""

import asyncio
import sys
from html import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from graphloop.errors import ConfigError, StoreAway, UnknownRun
from graphloop.workers import Client

FORM = """<form method=post action="/{}?key={}"><p><b>{}</b> {} ({})</p>
<button name=answer value=yes>Approve</button>
<button name=answer value=no>Decline</button></form>"""
WAIT_S = 10.0  # A store waits longer for its database; a browser should not.


def build(client: Client) -> Starlette:
    """Return the web app of a client."""

    async def questions(_: Request) -> Response:
        async with asyncio.timeout(WAIT_S):
            told = [
                (run.run_id, ask.key, ask.name, ask.arguments, run.run_id)
                async for run in client.runs(status="parked")
                for ask in run.asks
                if ask.kind == "approval" and not run.parent
            ]
        forms = [FORM.format(*map(escape, each)) for each in told]
        return HTMLResponse("".join(forms) or "Nothing waits.")

    async def answer(request: Request) -> Response:
        try:
            key, form = request.query_params["key"], (await request.body()).decode().split("&")
        except (KeyError, UnicodeDecodeError):
            return HTMLResponse("Expected a question's key, and a form in UTF-8.", 400)
        decide = client.approve if "answer=yes" in form else client.decline  # All else denies.
        try:
            async with asyncio.timeout(WAIT_S):
                if await decide(request.path_params["run"], key) == "answered":
                    return HTMLResponse("Another answer was first, and counts.", 409)
        except (ConfigError, UnknownRun) as error:
            return HTMLResponse(escape(str(error)), 409)
        return RedirectResponse("/", 303)

    def away(request: Request, _: Exception) -> Response:
        hint = "Your answer may still count." if request.method == "POST" else "Try again."
        return HTMLResponse(f"The runs are out of reach. {hint}", 503, {"Retry-After": "10"})

    routes = [Route("/", questions), Route("/{run}", answer, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers={StoreAway: away, TimeoutError: away})


if __name__ == "__main__":
    uvicorn.run(build(Client(sys.argv[1] if sys.argv[1:] else "runs.db")))
