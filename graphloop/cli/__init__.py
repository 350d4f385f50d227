"""The command line: `graphloop run | draw | check | runs | approve | resume | replay | fork`.

Owns the commands' names, options and help. What a command does is in the module of its name, which
is loaded when it is called: help and mistyped commands are answered at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from . import manual
from .arguments import (
    GRAPH,
    STORE,
    Json,
    Level,
    Proven,
    Registers,
    RuleTexts,
    RunId,
    StorePath,
    TargetOption,
    Text,
    Theme,
    Unbounded,
)
from .request import Approve, DrawRequest, FuzzRequest, ResumeRequest, RunRequest
from .status import Status, delivered, guarded

__all__ = ["main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    delivered(lambda: app(prog_name="graphloop"))


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    if wanted:
        try:
            found = version("graphloop")
        except PackageNotFoundError:
            found = "(not installed)"
        sys.stdout.write(f"graphloop {found}\n")
        raise typer.Exit


@app.callback(help=manual.GRAPHLOOP)
def _graphloop(
    *,
    shown: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Hold the options of `graphloop` itself."""


@app.command("run", help=manual.RUN, short_help="Run an agent or graph and watch it.")
def _run(  # noqa: PLR0913 - the options of a command are its parameters
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_PROMPT", help="DIR, FILE.py or module:name (executed), or a question."
        ),
    ],
    prompt: Annotated[
        Text, typer.Argument(metavar="PROMPT", help="What to ask instead of the file's PROMPT.")
    ] = None,
    *,
    model: Annotated[
        Text,
        typer.Option(metavar="PROVIDER:NAME", help="The model to ask (or set GRAPHLOOP_MODEL)."),
    ] = None,
    script: Annotated[
        Text, typer.Option(metavar="FILE", help="Replay recorded replies instead of a model.")
    ] = None,
    base_url: Annotated[
        Text, typer.Option(metavar="URL", help="A server of your own that speaks the wire.")
    ] = None,
    instructions: Annotated[Text, typer.Option(metavar="TEXT", help="The system message.")] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", help="How many turns at most.")
    ] = None,
    store: Annotated[
        Text,
        typer.Option(
            metavar="PATH", envvar=STORE, help="Keep the run's journal there: runs.db, or DIR."
        ),
    ] = None,
    approve: Annotated[
        Approve | None,
        typer.Option(help="Calls that need approval: ask (default; parks without a terminal)."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="First tell the most that the run can come to.")
    ] = False,
    unbounded: Unbounded = None,
    registers: Registers = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a stream part, nothing else.")
    ] = False,
) -> None:
    """Do `graphloop run`."""
    request = RunRequest(
        target=target,
        prompt=prompt,
        model=model,
        script=script,
        base_url=base_url,
        instructions=instructions,
        max_steps=max_steps,
        store=store,
        approve=approve,
        unbounded=unbounded,
        explain=explain,
        registers=tuple(registers or ()),
        as_json=as_json,
    )
    _exit("run", registers, request=request)


@app.command("draw", help=manual.DRAW, short_help="Draw a graph from the table that runs.")
def _draw(  # noqa: PLR0913 - the options of a command are its parameters
    target: Annotated[Text, GRAPH] = None,
    output: Annotated[
        Text,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="svg, png, pdf, mmd, dot or txt; - is stdout, -.txt or -.dot say how.",
        ),
    ] = None,
    *,
    text: Annotated[bool, typer.Option("--text", help="Print it for a terminal.")] = False,
    theme: Theme = "light",
    level: Level = "node",
    expand: Annotated[
        bool, typer.Option("--expand", help="Draw the graphs that nodes run, too.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Number a witness, shade what is gated.")
    ] = False,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="Draw what this run did; may be repeated."),
    ] = None,
    store: StorePath = None,
    sequence: Annotated[
        bool, typer.Option("--sequence", help="Draw who told whom what in one --run.")
    ] = False,
    registers: Registers = None,
) -> None:
    """Do `graphloop draw`."""
    request = DrawRequest(
        target=target,
        output=output,
        text=text,
        theme=theme,
        level=level,
        expand=expand,
        check=check,
        runs=tuple(run or ()),
        store=store,
        sequence=sequence,
    )
    _exit("draw", registers, request=request)


@app.command("check", help=manual.CHECK, short_help="Prove what can be proven of a graph.")
def _check(  # noqa: PLR0913 - the options of a command are its parameters
    target: Annotated[str, GRAPH],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    sarif: Annotated[
        Text, typer.Option("--sarif", metavar="FILE", help="Write SARIF as well; - is stdout.")
    ] = None,
    draw: Annotated[
        Text, typer.Option("--draw", metavar="FILE", help="Draw what was found as well.")
    ] = None,
    proven: Proven = None,
    rule: RuleTexts = None,
    registers: Registers = None,
) -> None:
    """Do `graphloop check`."""
    given = {"as_json": as_json, "sarif": sarif, "draw": draw, "proven": proven}
    _exit("check", registers, target=target, rules=tuple(rule or ()), **given)


@app.command("diff", help=manual.DIFF, short_help="Tell whether a graph promises less than before.")
def _diff(  # noqa: PLR0913 - the options of a command are its parameters
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A TARGET; Python is executed.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The later graph.")],
    *,
    output: Annotated[
        Text,
        typer.Option("-o", "--output", metavar="FILE", help="Draw it: svg, png, pdf, mmd, dot."),
    ] = None,
    theme: Theme = "light",
    rule: RuleTexts = None,
    registers: Registers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Do `graphloop diff`."""
    given = {"as_json": as_json, "output": output, "theme": theme}
    _exit("diff", registers, before=before, after=after, rules=tuple(rule or ()), **given)


@app.command("fuzz", help=manual.FUZZ, short_help="Run a graph in hundreds of hostile worlds.")
def _fuzz(  # noqa: PLR0913 - the options of a command are its parameters
    target: Annotated[str, GRAPH],
    *,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="How many worlds (200).")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="The first seed; without --seeds, the only one.")
    ] = None,
    rule: RuleTexts = None,
    replay: Annotated[
        Text, typer.Option(metavar="TOKEN", help="Run the one world again that was printed.")
    ] = None,
    events: Annotated[
        int | None, typer.Option(metavar="N", help="After how many events a run is endless (1000).")
    ] = None,
    draw: Annotated[
        Text, typer.Option(metavar="FILE", help="Draw the coverage: svg, png, pdf, mmd or dot.")
    ] = None,
    registers: Registers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Do `graphloop fuzz`."""
    request = FuzzRequest(
        target=target,
        seeds=seeds,
        seed=seed,
        rules=tuple(rule or ()),
        replay=replay,
        events=events,
        draw=draw,
        registers=tuple(registers or ()),
        as_json=as_json,
    )
    _exit("fuzz", registers, request=request)


@app.command("schema", help=manual.SCHEMA, short_help="Print the JSON Schema of topology files.")
def _schema(
    output: Annotated[
        Text, typer.Option("-o", "--output", metavar="FILE", help="The file; - is stdout.")
    ] = None,
    registers: Registers = None,
) -> None:
    """Do `graphloop schema`."""
    _exit("schema", registers, output=output, closed=bool(registers))


@app.command("runs", help=manual.RUNS, short_help="List runs that are kept in a store.")
def _runs(
    *,
    store: StorePath = None,
    status: Annotated[
        Text, typer.Option(metavar="STATUS", help="Only runs that stand like this.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    as_json: Json = False,
) -> None:
    """Do `graphloop runs`."""
    _exit("runs", store=store, status=status, everything=everything, as_json=as_json)


@app.command("approve", help=manual.APPROVE, short_help="Answer a call that a run waits for.")
def _approve(
    run: RunId,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call's key, or its tool.")],
    *,
    deny: Annotated[bool, typer.Option("--deny", help="Do not let it run.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the model reads why not.")] = "",
    edit: Annotated[
        Text, typer.Option(metavar="JSON", help="Let it run with these arguments instead.")
    ] = None,
    store: StorePath = None,
) -> None:
    """Do `graphloop approve`."""
    _exit("approve", run=run, call=call, store=store, deny=deny, reason=reason, edit=edit)


@app.command("resume", help=manual.RESUME, short_help="Take a run up again, and watch it.")
def _resume(  # noqa: PLR0913 - the options of a command are its parameters
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    base_url: Annotated[
        Text, typer.Option(metavar="URL", help="The server that the run was started with.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", help="As the run was started with.")
    ] = None,
    approve: Annotated[
        Approve | None, typer.Option(help="Calls that nobody has answered: see run --help.")
    ] = None,
    unbounded: Unbounded = None,
    registers: Registers = None,
    as_json: Json = False,
) -> None:
    """Do `graphloop resume`."""
    request = ResumeRequest(
        run=run,
        store=store,
        target=target,
        base_url=base_url,
        max_steps=max_steps,
        approve=approve,
        unbounded=unbounded,
        registers=tuple(registers or ()),
        as_json=as_json,
    )
    _exit("resume", registers, request=request)


@app.command("replay", help=manual.REPLAY, short_help="Print what happened in a run.")
def _replay(
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    upto: Annotated[int | None, typer.Option(metavar="N", help="Stop after this event.")] = None,
    registers: Registers = None,
    as_json: Json = False,
) -> None:
    """Do `graphloop replay`."""
    _exit("replay", registers, run=run, store=store, target=target, upto=upto, as_json=as_json)


@app.command("fork", help=manual.FORK, short_help="Copy a run's past, to go on differently.")
def _fork(  # noqa: PLR0913 - a command has many options
    run: RunId,
    *,
    at: Annotated[int, typer.Option(metavar="N", help="The last event that the copy has.")],
    new_id: Annotated[
        Text, typer.Option("--as", metavar="NEW", help="The copy's id; made up if not given.")
    ] = None,
    store: StorePath = None,
    target: TargetOption = None,
    share: Annotated[bool, typer.Option("--share-approvals", help="See --help.")] = False,
    registers: Registers = None,
) -> None:
    """Do `graphloop fork`."""
    _exit("fork", registers, run=run, store=store, at=at, new_id=new_id, target=target, share=share)


def _exit(command: str, own: list[str] | None = None, /, **arguments: object) -> None:
    """Load the module of that name, call its function of that name, and exit with its status.

    What registers names in files is executed before.
    """
    module = import_module(f".{command}", __package__)
    work = getattr(module, command)

    def status() -> Status:
        if own:
            import_module(".target", __package__).register(own)
        found: Status = work(**arguments)
        return found

    raise typer.Exit(guarded(status))
