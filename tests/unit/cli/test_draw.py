"""`graphloop draw`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.approve import approve
from graphloop.cli.draw import draw
from graphloop.cli.request import Approve, DrawRequest, ResumeRequest, RunRequest
from graphloop.cli.resume import resume
from graphloop.cli.run import run
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel
from tests.unit.cli.command_line import called, printed
from tests.unit.cli.pay_desk import parked, run_ids

MAGIC = {"svg": b"<svg", "png": b"\x89PNG", "mmd": b"flowchart", "dot": b"digraph", "txt": b"start"}


def drawn(
    capsys: pytest.CaptureFixture[str], *runs: str, sequence: bool = False, output: str = "-.txt"
) -> str:
    """Return what is printed of runs in the store."""
    capsys.readouterr()
    request = DrawRequest(runs=runs, store="runs.db", sequence=sequence, output=output)
    assert draw(request) is Status.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("suffix", MAGIC)
def test_a_file_is_drawn_by_its_suffix(
    suffix: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command says what it wrote."""
    assert draw(DrawRequest(target="agent", output=f"loop.{suffix}")) is Status.OK

    assert MAGIC[suffix] in (desk / f"loop.{suffix}").read_bytes()
    assert capsys.readouterr().out.startswith(f"loop.{suffix}: graph 'agent', 9 nodes, ")


@pytest.mark.parametrize("output", [None, "-"])
def test_without_a_file_it_is_mermaid(
    output: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ready to be pasted where Markdown is read."""
    draw(DrawRequest(output=output))

    assert capsys.readouterr().out.strip() == Agent(ScriptedModel(())).graph.mermaid().strip()


def test_it_is_printed_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """No browser is needed to see a loop."""
    draw(DrawRequest(text=True))
    text = capsys.readouterr().out
    draw(DrawRequest(output="-.txt"))

    assert "├━━━ ready ━" in text
    assert text == capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["mmd", "dot", "txt", "svg", "scxml", "xstate.json"])
def test_every_notation_that_is_text_is_printed(
    suffix: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as the file of that suffix has in it, and no file is left behind."""
    assert draw(DrawRequest(output=f"-.{suffix}")) is Status.OK
    shown = capsys.readouterr().out
    draw(DrawRequest(output=f"a.{suffix}"))

    assert shown.strip() == (desk / f"a.{suffix}").read_text(encoding="utf-8").strip()
    assert not (desk / f"-.{suffix}").exists()


@pytest.mark.parametrize("suffix", ["png", "pdf", "bmp"])
def test_what_is_no_text_is_not_printed(suffix: str, desk: Path) -> None:
    """Nor is a file made whose name looks like an option."""
    with pytest.raises(ConfigError, match=rf"found '-\.{suffix}'"):
        draw(DrawRequest(output=f"-.{suffix}"))
    assert not (desk / f"-.{suffix}").exists()


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_it_is_printed_where_stdout_lacks_its_signs(encoding: str) -> None:
    """Windows and LC_ALL=C: plain signs in place of a trace, and columns as they were."""
    shown = printed("draw", "agent", "--text", encoding=encoding).decode(encoding).splitlines()
    whole = called("draw", "agent", "--text").stdout.splitlines()

    assert [len(line) for line in whole] == [len(line) for line in shown]
    assert "* start => prepare_step" in shown
    assert "?" not in "".join(shown)


def test_what_happened_is_printed_where_stdout_lacks_its_signs(pay_desk: Path) -> None:
    """Lifelines and arrows have plain signs, too."""
    shown = printed(
        *("draw", "--run", parked(), "--store", "runs.db", "--sequence", "--text"),
        encoding="ascii",
        cwd=pay_desk,
    ).decode("ascii")

    assert "\n|   +-->+   |" in shown
    assert "may pay run?" in shown


def test_a_file_that_is_printed_is_utf_8_whatever_stdout_is(desk: Path) -> None:
    """`graphloop draw -o - > loop.mmd` writes what `-o loop.mmd` does."""
    (desk / "snow.py").write_text(
        "from graphloop import END, Graph\nfrom graphloop.nodes import Limit\n"
        "from graphloop.outcomes import Go, Stop\n"
        "one = Limit(3, 'Schnee ❄')\n"
        "graph = Graph('Bär', one, {one: {Go: END, Stop: END}})\n",
        encoding="utf-8",
    )
    for suffix in ("mmd", "dot"):
        shown = printed("draw", "snow.py", "-o", f"-.{suffix}", encoding="cp1252", cwd=desk)
        draw(DrawRequest(target="snow.py", output=f"snow.{suffix}"))
        written = (desk / f"snow.{suffix}").read_bytes().replace(b"\r\n", b"\n")
        assert shown.replace(b"\r\n", b"\n").strip() == written.strip()
    text = printed("draw", "snow.py", "--text", encoding="cp1252", cwd=desk).decode("cp1252")
    assert text.startswith("Bär\n")
    assert "Schnee ?" in text


@pytest.mark.usefixtures("desk")
def test_another_suffix_is_refused() -> None:
    """The message lists those there are."""
    with pytest.raises(ConfigError, match=r"\.svg, \.png"):
        draw(DrawRequest(output="loop.bmp"))


def test_a_check_is_laid_over_the_graph(desk: Path) -> None:
    """In the theme that is asked for."""
    draw(DrawRequest(check=True, theme="dark", output="proof.dot"))
    text = (desk / "proof.dot").read_text(encoding="utf-8")

    assert "no problem found; shaded: behind a gate" in text
    assert "bgcolor=white" not in text


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_laid_over_its_own_graph(capsys: pytest.CaptureFixture[str]) -> None:
    """By its id alone: the store knows what it was started from."""
    run_id = parked()
    waiting = drawn(capsys, run_id[:8])

    assert "▶ ◇ gate  1x" in waiting
    assert "waits for approval of pay" in waiting
    resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.ALWAYS))
    assert drawn(capsys, run_id).startswith("agent (completed)\n")
    assert drawn(capsys, run_id, parked()).startswith("agent (2 runs: 1 completed, 1 not over)\n")


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_is_named_twice_is_refused() -> None:
    """Also where it is named by another beginning of its id."""
    run_id = parked()

    with pytest.raises(ConfigError, match="twice"):
        draw(DrawRequest(runs=(run_id, run_id[:8]), store="runs.db"))


@pytest.mark.usefixtures("pay_desk")
def test_what_was_answered_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody should be sent to approve what is approved; the run goes on once it is taken up."""
    run_id = parked()
    approve(run_id, "pay", store="runs.db", deny=False, reason="", edit=None)
    shown = drawn(capsys, run_id)

    assert "waits for" not in shown
    assert "pay: approved, not resumed yet" in shown


@pytest.mark.usefixtures("pay_desk")
def test_what_was_answered_to_a_child_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Its caller answers under its whole key; its own journal may be drawn, too."""
    run_id = parked("team")
    approve(run_id, "pay", store="runs.db", deny=True, reason="", edit=None)
    capsys.readouterr()
    draw(DrawRequest(runs=(run_id,), store="runs.db", expand=True, text=True))

    shown = capsys.readouterr().out
    assert "pay: denied, not resumed yet" in shown
    assert "waits for approval" not in shown


@pytest.mark.usefixtures("pay_desk")
def test_what_child_runs_did_is_laid_over_the_agents(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several runs together; where a child stands is lit, with what it waits for."""
    runs = parked("team"), parked("team")
    capsys.readouterr()
    draw(DrawRequest(runs=runs, store="runs.db", expand=True, text=True))
    above, _, child = capsys.readouterr().out.partition("run by execute")

    assert "▶ ▣ execute  2x (1+1)" in above
    assert "waits for the agent payer" in above
    assert "│ payer (2 runs: 2 not over)" in child
    assert "│ ▶ ◇ gate  2x (1+1)" in child
    assert "waits for approval of pay" in child
    assert "tokens" in child
    resume(ResumeRequest(run=runs[0], store="runs.db", approve=Approve.ALWAYS))
    capsys.readouterr()
    draw(DrawRequest(runs=runs, store="runs.db", level="phase", expand=True, text=True))
    assert "payer (2 runs: 1 completed, 1 not over)" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_an_agent_that_no_run_has_asked_is_pale(capsys: pytest.CaptureFixture[str]) -> None:
    """And one that is not drawn changes nothing."""
    script = Path("team/agent.py").read_text(encoding="utf-8")
    Path("team/agent.py").write_text(
        script.replace(
            "\nPROMPT", "\nagent = Agent(talk('Hm.', 'x'), tools=[*agent.options['tools']])\nPROMPT"
        ).replace("else call", "else last"),
        encoding="utf-8",
    )
    run(RunRequest(target="team", store="runs.db"))
    (run_id,) = run_ids("runs.db")
    capsys.readouterr()
    draw(DrawRequest(runs=(run_id,), store="runs.db", expand=True, text=True))

    assert "│ payer (no run)" in capsys.readouterr().out


@pytest.mark.usefixtures("desk")
def test_every_level_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """From far, the phases of a loop; near by, what is promised."""
    draw(DrawRequest(level="phase", text=True))
    assert "┊   prepare_step, compact, extend" in capsys.readouterr().out
    draw(DrawRequest(level="detail", text=True))
    assert "┊   go at most 19x" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_a_check_is_laid_over_what_was_proven_along(capsys: pytest.CaptureFixture[str]) -> None:
    """An agent that is a tool is proven, too."""
    draw(DrawRequest(target="team", check=True, expand=True, text=True))

    assert "payer (no problem found" in capsys.readouterr().out


def test_who_told_whom_what_is_drawn(pay_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text, as Mermaid, and into a file."""
    run_id = parked()

    assert "may pay run?" in drawn(capsys, run_id, sequence=True)
    mermaid = drawn(capsys, run_id, sequence=True, output="-")
    assert mermaid.startswith("sequenceDiagram\n")
    assert "messages" in drawn(capsys, run_id, sequence=True, output="run.mmd")
    assert mermaid == (pay_desk / "run.mmd").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"FILE\.mmd or FILE\.txt"):
        drawn(capsys, run_id, sequence=True, output="run.svg")
    with pytest.raises(ConfigError, match=r"-\.mmd, -\.txt for stdout"):
        drawn(capsys, run_id, sequence=True, output="-.dot")
    with pytest.raises(ConfigError, match="cannot be written"):
        drawn(capsys, run_id, sequence=True, output="nowhere/run.mmd")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DrawRequest(target=" "), "TARGET"),
        (DrawRequest(sequence=True, runs=("a", "a")), "expected one --run, found 2"),
        (DrawRequest(check=True, runs=("a",)), "lie upon each other"),
        (DrawRequest(sequence=True), "expected one --run, found 0"),
        (DrawRequest(sequence=True, runs=("a",), expand=True), "--expand"),
        (DrawRequest(theme="blue"), "light or dark"),
        (DrawRequest(level="near"), "phase, node, detail"),
        (DrawRequest(sequence=True, runs=("a",), level="phase"), "--level"),
        (DrawRequest(output="a.scxml", level="phase", theme="dark"), "--level and --theme would"),
        (DrawRequest(output="-.scxml", level="phase"), "--level would"),
        (DrawRequest(text=True, output="a.svg"), "--text"),
    ],
)
def test_options_that_cannot_work_are_refused(request_: DrawRequest, words: str) -> None:
    """Rather than having no effect."""
    with pytest.raises(ConfigError, match=words):
        draw(request_)
