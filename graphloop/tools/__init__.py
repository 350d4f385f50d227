"""Tools: functions that a model can call.

Owns how a model reads a tool, how arguments are checked, and how the function is called.
Refuses, at definition, a signature or schema that no call could satisfy.
Start with `tool`; `outcome` has the answers that a model reads.
"""

from .options import NOT_DONE, UNKNOWN, Found
from .provider_tools import (
    anthropic_code_execution,
    anthropic_web_fetch,
    anthropic_web_search,
    provider_tool,
)
from .tool import Tool, ToolContext, tool

__all__ = [
    "NOT_DONE",
    "UNKNOWN",
    "Found",
    "Tool",
    "ToolContext",
    "anthropic_code_execution",
    "anthropic_web_fetch",
    "anthropic_web_search",
    "provider_tool",
    "tool",
]
