"""graphloop: LLM agents as explicit, typed graphs that you can see, prove, run and resume."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import stop
    from .drivers.ports import Approval
    from .errors import ToolError
    from .front.agent import Agent
    from .front.generate import generate_text, generate_text_sync, stream_chat
    from .front.graph import Graph
    from .front.options import Model, StepChanges, StepInfo
    from .front.result import RunResult
    from .front.stream import RunStream
    from .graph import END, Edges
    from .node import Node
    from .proofs.check import check
    from .providers.retries import Retries
    from .providers.timeouts import Timeouts
    from .run import EndReason, StepResult
    from .tools import Tool, ToolContext, tool
    from .values import FinishReason, ToolChoice, Usage

__all__ = [
    "END",
    "Agent",
    "Approval",
    "Edges",
    "EndReason",
    "FinishReason",
    "Graph",
    "Model",
    "Node",
    "Retries",
    "RunResult",
    "RunStream",
    "StepChanges",
    "StepInfo",
    "StepResult",
    "Timeouts",
    "Tool",
    "ToolChoice",
    "ToolContext",
    "ToolError",
    "Usage",
    "check",
    "generate_text",
    "generate_text_sync",
    "stop",
    "stream_chat",
    "tool",
]

_HOMES = {
    ".drivers.ports": ("Approval",),
    ".errors": ("ToolError",),
    ".front.agent": ("Agent",),
    ".front.generate": ("generate_text", "generate_text_sync", "stream_chat"),
    ".front.graph": ("Graph",),
    ".front.options": ("Model", "StepChanges", "StepInfo"),
    ".front.result": ("RunResult",),
    ".front.stream": ("RunStream",),
    ".graph": ("END", "Edges"),
    ".node": ("Node",),
    ".proofs.check": ("check",),
    ".providers.retries": ("Retries",),
    ".providers.timeouts": ("Timeouts",),
    ".run": ("EndReason", "StepResult"),
    ".tools": ("Tool", "ToolContext", "tool"),
    ".values": ("FinishReason", "ToolChoice", "Usage"),
}


def __getattr__(name: str) -> object:
    """Load a public name from its home on first use, so that importing costs what is used.

    The homes stand here twice, because type checkers follow import statements only; a test holds
    the two against each other.
    """
    if name == "stop":
        return import_module(".stop", __name__)
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home, __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
