"""Furnished: an agent that has no tools, with tools of every kind and all that bounds their use.

The standard loop decides most where a call may be refused, asked about, answered from outside or
answered by a child run; an agent without tools has nothing of that to be fuzzed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..compaction import Compaction
from ..front.agent import Agent
from ..front.options import AgentOptions, ToolInput
from ..policy import allow, ask, deny
from ..providers.script import ScriptedModel
from ..tools import Tool

__all__ = ["furnished"]

SCHEMA: Final = {"type": "object", "properties": {"text": {"type": "string"}}}


def furnished(agent: Agent) -> Agent:
    """Return an agent as it is; one without tools has tools, and each option that it lacks.

    Its tools are allowed, asked about or denied, need an approval always or by a condition, wait
    for a client, or are agents; its answers are checked, and its conversation is made shorter. A
    budget is drawn for each world.
    """
    if agent.options.get("tools"):
        return agent
    plain = Agent(ScriptedModel(()))
    tools: list[ToolInput] = [
        *[_tool(name) for name in ("read", "list", "erase", "pay")],
        Tool(name="write", parameters=SCHEMA, execute=_played, needs_approval=True),
        Tool(name="spend", parameters=SCHEMA, execute=_played, needs_approval=_depends),
        Tool(name="device", parameters=SCHEMA),
        plain.as_tool(name="helper"),
        plain.as_tool(name="successor", takes_over=True),
    ]
    rules = deny("erase") | ask("pay", when=_depends) | ask("list") | allow("*")
    options: AgentOptions = {
        "gate": rules,
        "max_steps": 6,
        "compaction": Compaction(context_window=1_000, keep_recent_turns=1),
        "verify": _accepts,
        **agent.options,
        "tools": tools,
    }
    return agent.with_options(**options)


def _tool(name: str) -> Tool[..., object]:
    return Tool(name=name, parameters=SCHEMA, execute=_played)


def _played(text: str) -> str:
    raise AssertionError("the adversary plays every tool")


def _depends(arguments: Mapping[str, object], context: object) -> bool:
    raise AssertionError("the adversary plays every condition")


def _accepts(answer: object) -> bool:
    raise AssertionError("the adversary plays every check")
