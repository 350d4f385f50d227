"""What a user's type checker knows about tools. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_type

from pydantic import BaseModel

from graphloop.providers import anthropic_web_search
from graphloop.tools.options import NOT_DONE, EffectPolicy, Found, Reconciliation
from graphloop.tools.tool import Tool, ToolContext, ToolOutcome, provider_tool, tool
from graphloop.tools.toolbox import Toolbox
from graphloop.values import ToolSpec


class Query(BaseModel):
    text: str


@tool
async def get_weather(city: str, days: int = 1) -> str:
    """Weather."""
    return f"{city} {days}"


@tool(name="add_up", needs_approval=True, timeout_s=3.0, thread=True)
def add(left: int, right: int, context: ToolContext) -> int:
    """Add."""
    return left + right + context.turn


def cautious(query: Query, context: ToolContext) -> bool:
    return query.text == context.key


def search(query: Query) -> list[str]:
    return [query.text]


async def look_up(order: Mapping[str, object], context: ToolContext) -> Reconciliation:
    return Found(order) if context.idempotency_key else NOT_DONE


@tool(effect="reconcile", reconcile=look_up, sequential="ledger", ends_run=True)
def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


async def use(context: ToolContext) -> None:
    assert_type(await get_weather("Oslo", days=2), str)
    assert_type(add(1, 2, context), int)
    assert_type(get_weather.validate("{}"), str | None)
    assert_type(await get_weather.run("{}", context), ToolOutcome)
    assert_type(get_weather.spec, ToolSpec)
    assert_type(context.idempotency_key, str)
    assert_type(context.path, tuple[str, ...])
    assert_type(pay.effect, EffectPolicy)
    assert_type(await pay.reconciled("{}", context), ToolOutcome | Literal["not_done", "unknown"])


by_model = Tool(name="search", parameters=Query, execute=search, needs_approval=cautious)
assert_type(by_model(Query(text="x")), list[str])
client = Tool(name="ask", parameters={"type": "object"})
assert_type(client, Tool[..., object])
web = anthropic_web_search(max_uses=3, user_location={"city": "Oslo"})
assert_type(web, Tool[..., object])
other = provider_tool({"type": "search_1", "name": "search"})
assert_type(provider_tool({"google_search": {}}, name="find", wire="google"), Tool[..., object])
mixed: list[Tool] = [get_weather, add, pay, by_model, client, web, other]
box = Toolbox([get_weather, add, search, client])
renamed = Toolbox({"weather": get_weather, "find": by_model})
given: Mapping[str, Tool] = {"weather": get_weather}
from_mapping = Toolbox(given)

get_weather(3)  # type: ignore[arg-type, unused-coroutine]  # pyright: ignore[reportArgumentType, reportUnusedCoroutine]
add("1", 2)  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
tool(search, timeout=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
tool(search, effect="twice")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
anthropic_web_search(user_location={"town": "Oslo"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
