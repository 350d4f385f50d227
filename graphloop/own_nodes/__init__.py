"""Own nodes: make nodes from functions, generators, graphs and other nodes.

This package has `@node`, the requests that a generator may yield, sub-graphs and composed nodes.
`@node` refuses a function whose annotations do not list its outcomes.
Start with `node_decorator.py`; `compose.py` has router, parallel, retry and similar functions.
"""

from ..effects import PersonSaid
from ..errors import AskFailed
from .compose import fallback, loop_until, map_over, parallel, retry, router
from .node_decorator import node
from .node_signature import NodeContext
from .requests import Asking, ask_agent, ask_model, ask_person, tell
from .route_outcomes import route_outcome
from .screens import screen, screened
from .sub_graphs import sub_graph
from .sub_plan import ChildResult

__all__ = [
    "AskFailed",
    "Asking",
    "ChildResult",
    "NodeContext",
    "PersonSaid",
    "ask_agent",
    "ask_model",
    "ask_person",
    "fallback",
    "loop_until",
    "map_over",
    "node",
    "parallel",
    "retry",
    "route_outcome",
    "router",
    "screen",
    "screened",
    "sub_graph",
    "tell",
]
