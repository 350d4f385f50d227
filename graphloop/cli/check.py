"""`graphloop check`: what is proven of a graph, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..errors import ConfigError, GraphError
from ..front.agent import Agent
from ..front.world import split_tools
from ..overlays.proof import proof_marks
from ..proofs.arguments import codes
from ..proofs.report import PROPERTIES, Report
from ..proofs.sarif import to_sarif
from ..providers.script import ScriptedModel
from ..temporal import rules_of
from ..tools import Toolbox
from ..topology.temporal_form import rules_of_texts
from .found import draw_found, drawn_to
from .lines import safe_json
from .output import printed, refuse_mixed, tell_found
from .request import refuse_blanks
from .status import Status, put_file, tell
from .target import STANDARD, Loop, load_target, standard_target

__all__ = ["check"]

SARIF: Final = (".sarif", ".sarif.json", ".json")
"""What SARIF is called."""


def check(
    target: str,
    *,
    as_json: bool,
    sarif: str | None = None,
    draw: str | None = None,
    proven: str | None = None,
    rules: Sequence[str] = (),
) -> Status:
    """Print the report on `target`; a graph that cannot even be built has one, too.

    Args:
        target: what to check.
        as_json: whether the report is JSON.
        sarif: a file for the report as SARIF; `-` prints it in place of the report.
        draw: a file for the graph with the report laid over it; on stdout, and the report is told
            on stderr then.
        proven: codes that must be proven, with commas between them, or `all` without the rules
            that nobody gave.
        rules: temporal rules besides the target's own, each a text.

    Raises:
        ConfigError: the target cannot be loaded for another reason than its graph's table, or the
            file cannot be written.
    """
    drawn, told = drawn_to(draw), printed("--sarif", sarif, SARIF)
    refuse_mixed({"--json": as_json, "--sarif": told is not None, "--draw": drawn is not None})
    wanted = _wanted(proven)
    refuse_blanks({f"--rule {at}": one for at, one in enumerate(rules, 1)})
    own = rules_of_texts(rules, "--rule")
    try:
        loop, tools = _loaded(target)
        graph, given = (
            (loop.graph, loop.options.get("rules", ())) if isinstance(loop, Agent) else (loop, ())
        )
        report = graph.check(rules=rules_of(given) & own, tools=tools)
        if draw is not None:
            draw_found(graph, draw, proof_marks(graph, report))
    except GraphError as error:
        # There is no graph to draw.
        report = Report.from_error(error)
    if sarif is not None and told is None:
        _write(Path(sarif), to_sarif([report]))
    if told is not None or as_json:
        put_file(f"{safe_json(report.to_json() if told is None else to_sarif([report]))}\n")
    else:
        tell_found(f"{report}", beside=drawn)
    lacking = [one for one in wanted if one not in report.proven]
    if lacking:
        tell(f"not proven, and --proven says that it has to be: {', '.join(lacking)}")
    return Status.OK if report.ok and not lacking else Status.FAILED


def _loaded(text: str) -> tuple[Loop, tuple[str, ...]]:
    """Load what `text` names, and the tools that runs of a graph may call; none if unknown."""
    target = standard_target() if text == STANDARD else load_target(text, (STANDARD,))
    loop = target.loop(ScriptedModel(()))
    if isinstance(loop, Agent) or not target.tools:
        return loop, ()
    own, agents = split_tools(target.tools)
    below = [name for one in agents.values() for name in one.opener.tool_names]
    known = [*[one.name for one in Toolbox(own).specs], *below, *(loop.tool_names or ())]
    return loop, tuple(dict.fromkeys(known))


def _wanted(proven: str | None) -> tuple[str, ...]:
    """Return the codes that must be proven."""
    refuse_blanks({"--proven": proven})
    if proven is None:
        return ()
    if proven == "all":
        return tuple([code for code in PROPERTIES if code != "GL12"])
    return codes("--proven", [one.strip() for one in proven.split(",")])


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--sarif: {str(path)!r} cannot be written: {error}") from error
