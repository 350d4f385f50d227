"""Tools: functions that a model can call.

Owns the description of tools for models, the check of arguments, and the call of the function.
Refuses a signature or schema that no call could satisfy, when the tool is defined.
Start with `tool`; `outcome` has the texts that a model reads about its calls.
Three modules that import slow packages are loaded on first use.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .dependencies import (
    Closable,
    DepsNeed,
    check_deps,
    deps_of_context,
    deps_wanted,
    kind_name,
    uncovered,
)
from .execution import UNREAD, TooLate, awaited, leave, within, yes_or_no
from .gates import NO_GATES, Gates, answer_of, conditions_of, gates_of, rules_of
from .needs import CallSpending, ToolAsks, kept, metered, paid
from .options import NOT_DONE, REPEATABLE, UNKNOWN, Approval, Found, NotFound, legal_name
from .outcome import (
    ArgumentsRejected,
    ToolOutcome,
    ToolReturn,
    error_text,
    join_issues,
    not_json,
    outcome_of_error,
    outcome_of_value,
    rejection,
    shorten,
    unknown_outcome,
)
from .progress import ProgressReports, ToolProgress
from .schema import (
    JsonSchema,
    Parameters,
    arguments_parser,
    model_parameters,
    parameters_of,
    schema_of,
    schema_text,
)
from .signature import accepts, is_async
from .tool import AnyTool, Tool, ToolContext, provider_tool, tool
from .toolbox import Toolbox

if TYPE_CHECKING:
    from .docstrings import parsed_docstring
    from .json_schema import generated_schema, sorted_schema_text
    from .raw_schema import raw_parameters

__all__ = [
    "NOT_DONE",
    "NO_GATES",
    "REPEATABLE",
    "UNKNOWN",
    "UNREAD",
    "AnyTool",
    "Approval",
    "ArgumentsRejected",
    "CallSpending",
    "Closable",
    "DepsNeed",
    "Found",
    "Gates",
    "JsonSchema",
    "NotFound",
    "Parameters",
    "ProgressReports",
    "TooLate",
    "Tool",
    "ToolAsks",
    "ToolContext",
    "ToolOutcome",
    "ToolProgress",
    "ToolReturn",
    "Toolbox",
    "accepts",
    "answer_of",
    "arguments_parser",
    "awaited",
    "check_deps",
    "conditions_of",
    "deps_of_context",
    "deps_wanted",
    "error_text",
    "gates_of",
    "generated_schema",
    "is_async",
    "join_issues",
    "kept",
    "kind_name",
    "leave",
    "legal_name",
    "metered",
    "model_parameters",
    "not_json",
    "outcome_of_error",
    "outcome_of_value",
    "paid",
    "parameters_of",
    "parsed_docstring",
    "provider_tool",
    "raw_parameters",
    "rejection",
    "rules_of",
    "schema_of",
    "schema_text",
    "shorten",
    "sorted_schema_text",
    "tool",
    "uncovered",
    "unknown_outcome",
    "within",
    "yes_or_no",
]

__getattr__ = front_door(
    __name__,
    {
        ".docstrings": ("parsed_docstring",),
        ".json_schema": ("generated_schema", "sorted_schema_text"),
        ".raw_schema": ("raw_parameters",),
    },
)
