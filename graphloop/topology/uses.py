"""Uses: the names of the library's nodes in files, which nothing else can be registered as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..nodes.append import Append
from ..nodes.approve import Approve
from ..nodes.child import Child
from ..nodes.compact import Compact
from ..nodes.critique import Critique
from ..nodes.execute import Execute
from ..nodes.extend import Extend
from ..nodes.fallback import Fallback
from ..nodes.function import Function
from ..nodes.gate import Gate
from ..nodes.limit import Limit
from ..nodes.map_over import MapOver
from ..nodes.model_call import ModelCall
from ..nodes.parallel import Parallel
from ..nodes.prepare_step import PrepareStep
from ..nodes.retrying import Retrying
from ..nodes.router import Router
from ..nodes.stop_check import StopCheck
from ..nodes.verify import Verify

__all__ = ["LIBRARY"]

LIBRARY: Final[Mapping[str, type]] = {
    "append": Append,
    "approve": Approve,
    "child": Child,
    "compact": Compact,
    "critique": Critique,
    "execute": Execute,
    "extend": Extend,
    "fallback": Fallback,
    "function": Function,
    "gate": Gate,
    "limit": Limit,
    "map_over": MapOver,
    "model_call": ModelCall,
    "parallel": Parallel,
    "prepare_step": PrepareStep,
    "retrying": Retrying,
    "router": Router,
    "stop_check": StopCheck,
    "verify": Verify,
}
