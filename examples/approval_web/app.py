"""A web page of the questions of all parked runs, for people who approve; it knows no agent.

python examples/approval/agent.py         parks a run in runs.db
python examples/approval_web/app.py       then answer it on http://127.0.0.1:8000

The program that drives the runs goes on with the answers. Put a login before this page.
"""

import sys
from html import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from graphloop.errors import ConfigError, UnknownRun
from graphloop.workers import Client

FORM = """<form method=post action="/{run}?key={key}"><p><b>{name}</b> {arguments} ({run})</p>
<button name=answer value=yes>Approve</button>
<button name=answer value=no>Decline</button></form>"""


def build(client: Client) -> Starlette:
    """Return the web app of a client."""

    async def questions(_: Request) -> Response:
        forms = [
            FORM.format(
                run=escape(run.run_id),
                key=escape(ask.key),
                name=escape(ask.name),
                arguments=escape(ask.arguments),
            )
            async for run in client.runs(status="parked")
            for ask in run.asks
            if ask.kind == "approval" and not run.parent
        ]
        return HTMLResponse("".join(forms) or "Nothing waits.")

    async def answer(request: Request) -> Response:
        run_id, key = request.path_params["run"], request.query_params["key"]
        body = (await request.body()).decode()
        try:
            if "answer=yes" in body.split("&"):  # All but an explicit yes denies.
                await client.approve(run_id, key)
            else:
                await client.decline(run_id, key)
        except (ConfigError, UnknownRun) as error:
            return HTMLResponse(escape(str(error)), status_code=409)
        return RedirectResponse("/", status_code=303)

    return Starlette(routes=[Route("/", questions), Route("/{run}", answer, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(build(Client(sys.argv[1] if sys.argv[1:] else "runs.db")))
