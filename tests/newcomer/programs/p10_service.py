"""A service that can be looked at: logs, spans, costs, and what a stored run did."""

import asyncio
import logging
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graphloop import Agent, ModelPrice, budget, tool
from graphloop.otel import otel
from graphloop.testing import ScriptedModel


@tool
async def price(item: str) -> str:
    """Return the price of an item."""
    return {"pen": "2 euros"}[item]


SCRIPT = [
    {
        "calls": [
            {"name": "price", "arguments": {"item": "pen"}},
            {"name": "price", "arguments": {"item": "ink"}},
        ],
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    },
    {"text": "A pen is 2 euros.", "usage": {"input_tokens": 1200, "output_tokens": 10}},
]


async def main() -> None:
    """Run once, then look at the run from every side."""
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s", level=logging.INFO)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(
        ScriptedModel(SCRIPT),
        name="shop",
        tools=[price],
        store="shop.db",
        prices={"scripted": ModelPrice(input_usd=1.0, output_usd=10.0)},
        budget=budget(usd=0.5),
        watch=[otel(tracer_provider=provider)],
    )
    result = await agent.generate("What are a pen and ink?", run_id="order-1")
    print(f"{result.cost_usd:.4f} dollars")
    for span in exporter.get_finished_spans():
        print(span.name, span.status.status_code.name)

    run = await agent.runs.replay("order-1")
    for step in run.record.steps:
        for answer in step.tool_results:
            print(step.index, answer.name, answer.status, answer.content)


if __name__ == "__main__":
    asyncio.run(main())
