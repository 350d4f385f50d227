"""Furnished: an agent that has no tools, with tools of every kind and all that bounds their use.

The standard loop decides most about a call that may be refused, asked about, or answered by a
client or a child run; an agent without tools has nothing of that to be fuzzed in.
"""

from __future__ import annotations

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

    Calls are allowed, asked about or denied, need an approval always or by a condition, wait for a
    client, or start agents; answers are checked, and the conversation is made shorter.
    """
    if agent.options.get("tools"):
        return agent
    asked = {"read": False, "list": False, "erase": False, "pay": False, "write": True}
    helper = Agent(ScriptedModel(()))
    tools: list[ToolInput] = [
        *[
            Tool(name=name, parameters=SCHEMA, execute=_played, needs_approval=always)
            for name, always in asked.items()
        ],
        Tool(name="spend", parameters=SCHEMA, execute=_played, needs_approval=_played),
        Tool(name="device", parameters=SCHEMA),
        helper.as_tool(name="helper"),
        helper.as_tool(name="successor", takes_over=True),
    ]
    options: AgentOptions = {
        "gate": deny("erase") | ask("pay", when=_played) | ask("list") | allow("*"),
        "max_steps": 6,
        "compaction": Compaction(context_window=1_000, keep_recent_turns=1),
        "verify": _played,
        **agent.options,
        "tools": tools,
    }
    return agent.with_options(**options)


def _played(_given: object, _context: object = None) -> bool:
    raise AssertionError("an adversary answers in place of every function")
