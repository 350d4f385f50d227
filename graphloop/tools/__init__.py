"""Tools: functions that a model can call.

Owns the description of tools for models, the check of arguments, and the call of the function.
Refuses a signature or schema that no call could satisfy, when the tool is defined.
Start with `tool`; `outcome` has the texts that a model reads about its calls.
"""

from .dependencies import (
    Closable,
    DepsNeed,
    check_deps,
    deps_of_context,
    deps_wanted,
    kind_name,
    refuse_undeclared,
    uncovered,
)
from .execution import (
    UNREAD,
    FirstSteps,
    TooLate,
    awaited,
    leave,
    run_sync,
    within,
    yes_or_no,
)
from .gates import NO_GATES, Gates, answer_of, conditions_of, gates_of, rules_of
from .needs import CallSpending, Meter, ToolAsks, kept, paid
from .options import NOT_DONE, REPEATABLE, UNKNOWN, Approval, Found, NotFound, legal_name
from .outcome import (
    ArgumentsRejected,
    ToolOutcome,
    ToolReturn,
    error_text,
    findings_of,
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
    "FirstSteps",
    "Found",
    "Gates",
    "JsonSchema",
    "Meter",
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
    "findings_of",
    "gates_of",
    "is_async",
    "kept",
    "kind_name",
    "leave",
    "legal_name",
    "model_parameters",
    "outcome_of_error",
    "outcome_of_value",
    "paid",
    "parameters_of",
    "provider_tool",
    "refuse_undeclared",
    "rejection",
    "rules_of",
    "run_sync",
    "schema_of",
    "schema_text",
    "shorten",
    "tool",
    "uncovered",
    "unknown_outcome",
    "within",
    "yes_or_no",
]
