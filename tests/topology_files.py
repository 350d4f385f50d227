"""Files of topologies: one that is right, and what can be wrong with one, kind by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from graphloop import Tool
from graphloop.agent.sub_agents import AgentTool
from graphloop.errors import Problem
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.loaded import Topology, load
from graphloop.topology.reader import read_text
from graphloop.topology.registration import RegisteredNames, Registry

__all__ = ["BAD", "RIGHT", "Bad", "desk", "lines_of", "problems", "with_line"]

RIGHT: Final = """\
graphloop: 1
name: support
start: prepare_step
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate:
    use: gate
    rules: [{allow: [search, "read_*"]}, {ask: refund, ttl_s: 3600}]
  execute: {use: execute, concurrency: 2, hold: true}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 8}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {held: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
rules:
  - {never: "tool:refund", before: gate}
"""


class Bad(NamedTuple):
    """A text that is refused: where, and what the message says."""

    kind: str
    text: str | bytes
    line: int
    column: int
    said: str


_DESK: Final = """\
graphloop: 1
name: desk
start: prepare_step
tools: [%s]
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate: {use: gate, rules: %s}
  execute: {use: execute}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 5}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {held: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
"""


def desk(
    rules: str,
    *tools: Tool[..., Any] | AgentTool,
    when: Callable[..., Any] | None = None,
    edit: Callable[[str], str] = str,
) -> Topology:
    """Return the graph of a file, on whose line 8 a gate has these rules.

    Args:
        rules: the rules, as the file says them.
        tools: the tools of the file.
        when: a predicate that the rules may name.
        edit: changes the file before it is loaded.
    """
    names = Registry()
    for tool in tools:
        names.tool(tool)
    if when is not None:
        names.predicate(when)
    text = _DESK % (", ".join(tool.name for tool in tools), rules)
    return load(edit(text), registry=names)


def with_line(number: int, line: str) -> str:
    """Return the right text with another line in one place."""
    lines: list[str] = list(RIGHT.splitlines())
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def problems(text: str | bytes, names: RegisteredNames | None = None) -> tuple[Problem, ...]:
    """Return the problems of a text, which is refused as `a.yaml`; each has a fix."""
    known = RegisteredNames(Registry(), installed=False) if names is None else names
    with pytest.raises(TopologyError) as refused:
        read_text(text, known, "a.yaml")
    assert all(problem.fix for problem in refused.value.problems)
    return refused.value.problems


def lines_of(found: tuple[Problem, ...]) -> list[int]:
    """Return the lines of problems."""
    return [int(problem.place.split(":")[1]) for problem in found]


def _nested(depth: int) -> str:
    return RIGHT + "prompt: " + "[" * depth + "]" * depth + "\n"


LAUGHS: Final = "\n".join(
    [
        "a: &a [lol, lol, lol]",
        "b: &b [*a, *a, *a, *a, *a, *a, *a, *a]",
        "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]",
    ]
)

BAD: Final = (
    Bad("empty", "", 1, 1, "found nothing"),
    Bad("blank", " \n\n \n", 1, 1, "found nothing"),
    Bad("only comments", "# nothing\n", 2, 1, "found only comments"),
    Bad("ten megabytes", b"#" * 10_000_000, 1, 1, "at most 1,000,000 bytes"),
    Bad("not UTF-8", RIGHT.encode().replace(b"support", b"\xff"), 2, 7, "found the byte 0xff"),
    Bad("UTF-16", RIGHT.encode("utf-16"), 1, 1, "found UTF-16"),
    Bad("NUL", with_line(2, "name: a\0b"), 2, 8, "a NUL character"),
    Bad("control character", with_line(2, "name: a\x07b"), 2, 8, "the character U+0007"),
    Bad("tab", with_line(5, "\tprepare_step: {use: prepare_step}"), 5, 1, "a tab stands here"),
    Bad("broken quotes", with_line(2, 'name: "support'), 9, 31, "this is no YAML"),
    Bad("broken brackets", with_line(6, "  model_call: {use: model_call"), 7, 7, "no YAML"),
    Bad("bare question mark", with_line(6, "  model_call: {use: short?}"), 6, 26, "question mark"),
    Bad("bad indentation", with_line(6, " model_call: {use: model_call}"), 6, 2, "no YAML"),
    Bad("alias bomb", LAUGHS + "\n" + RIGHT, 1, 4, "an anchor (&a)"),
    Bad("alias", with_line(3, "start: *begin"), 3, 8, "an alias (*begin)"),
    Bad("anchor", with_line(3, "start: &begin gate"), 3, 8, "an anchor (&begin)"),
    Bad("merge key", with_line(5, "  <<: {use: prepare_step}"), 5, 3, "a merge key"),
    Bad("tag", with_line(2, "name: !!python/object:os.system x"), 2, 7, "a tag ("),
    Bad("directive", "%TAG ! tag:x,2000:\n---\n" + RIGHT, 1, 1, "a directive (%)"),
    Bad("two documents", RIGHT + "---\n" + RIGHT, 22, 1, "a second document"),
    Bad("deep nesting", _nested(10_000), 22, 40, "at most 32 levels"),
    Bad("too many values", RIGHT + f"tools: [{'a, ' * 60_000}]", 22, 149_703, "at most 50,000"),
    Bad(
        "too many nodes",
        "nodes: {" + "".join(f"n{n}: 1, " for n in range(2_001)) + "}",
        1,
        8,
        "at most 2,000 nodes",
    ),
    Bad("duplicate key", with_line(6, "  prepare_step: {use: append}"), 6, 3, "twice, first on"),
    Bad("duplicate top key", RIGHT + "name: other\n", 22, 1, "the key 'name' stands here twice"),
    Bad("key is a number", with_line(5, "  1: {use: prepare_step}"), 5, 3, "found the number 1"),
    Bad(
        "key is null",
        with_line(5, "  ~: {use: prepare_step}"),
        5,
        3,
        "a key of text, found null",
    ),
    Bad("key is a list", with_line(5, "  ? [a]\n  : {use: append}"), 5, 5, "found a list"),
    Bad("a list on top", "- graphloop: 1\n", 1, 1, "expected a mapping, found a list"),
    Bad("a word on top", "graphloop", 1, 1, "found the text 'graphloop'"),
    Bad("unknown top key", RIGHT + "node: {}\n", 22, 1, "Did you mean 'nodes'?"),
    Bad("missing key", with_line(2, "description: x"), 1, 1, "`name`"),
    Bad("missing version", with_line(1, "description: x"), 1, 1, "`graphloop`"),
    Bad("version of tomorrow", with_line(1, "graphloop: 2"), 1, 12, "found 2"),
    Bad("version as a fraction", with_line(1, "graphloop: 1.0"), 1, 12, "found the number 1.0"),
    Bad("version as text", with_line(1, "graphloop: '1'"), 1, 12, "found the text '1'"),
    Bad("name is a number", with_line(2, "name: 7"), 2, 7, "`name`: expected text"),
    Bad("name is nothing", with_line(2, "name:"), 2, 6, "`name`: expected text, found nothing"),
    Bad("name is blank", with_line(2, "name: ' '"), 2, 7, "a text that says something"),
    Bad("name is a boolean", with_line(2, "name: true"), 2, 7, "found the boolean true"),
    Bad("unknown start", with_line(3, "start: prepare"), 3, 8, "Did you mean 'prepare_step'?"),
    Bad("node named END", with_line(5, "  END: {use: prepare_step}"), 5, 3, "not a node's name"),
    Bad("node without use", with_line(6, "  model_call: {model: x}"), 6, 15, "`use`"),
    Bad("node is a word", with_line(6, "  model_call: model_call"), 6, 15, "expected a mapping"),
    Bad("unknown use", with_line(6, "  model_call: {use: modelcall}"), 6, 21, "'model_call'?"),
    Bad("an import path", with_line(6, "  model_call: {use: os.system}"), 6, 21, "no kind of node"),
    Bad(
        "unknown parameter",
        with_line(12, "  stop_check: {use: stop_check, max_step: 8}"),
        12,
        33,
        "Did you mean 'max_steps'?",
    ),
    Bad(
        "yes for true",
        with_line(10, "  execute: {use: execute, hold: yes}"),
        10,
        33,
        "`hold`: expected true or false, found the text 'yes'",
    ),
    Bad(
        "a number as text",
        with_line(12, "  stop_check: {use: stop_check, max_steps: '8'}"),
        12,
        44,
        "found the text '8'",
    ),
    Bad(
        "1_000",
        with_line(12, "  stop_check: {use: stop_check, max_steps: 1_000}"),
        12,
        44,
        "found the text '1_000'",
    ),
    Bad(
        "a fraction",
        with_line(12, "  stop_check: {use: stop_check, max_steps: 8.0}"),
        12,
        44,
        "found the number 8.0",
    ),
    Bad(
        "no bound",
        with_line(12, "  stop_check: {use: stop_check, max_steps: 0}"),
        12,
        44,
        "at least 1",
    ),
    Bad(
        "infinity",
        with_line(12, "  stop_check: {use: stop_check, max_steps: .inf}"),
        12,
        44,
        "found the number .inf",
    ),
    Bad(
        "an octal number",
        with_line(12, "  stop_check: {use: stop_check, max_steps: 010}"),
        12,
        44,
        "found the number 010",
    ),
    Bad(
        "a huge number",
        with_line(12, "  stop_check: {use: stop_check, max_steps: %s}" % ("9" * 5000)),
        12,
        44,
        "found the number 9999",
    ),
    Bad("unknown verdict", with_line(9, "    rules: [{alow: search}]"), 9, 13, "mean 'allow'?"),
    Bad("two verdicts", with_line(9, "    rules: [{allow: a, deny: b}]"), 9, 24, "allow, deny"),
    Bad(
        "a key of another verdict",
        with_line(9, "    rules: [{allow: a, ttl_s: 3}]"),
        9,
        24,
        "`ttl_s`",
    ),
    Bad(
        "unknown predicate",
        with_line(9, "    rules: [{allow: a, when: odd}]"),
        9,
        30,
        "no predicate is registered as 'odd'",
    ),
    Bad(
        "an expression",
        with_line(9, "    rules: [{allow: a, when: 'amount > 5'}]"),
        9,
        30,
        "no predicate is registered as 'amount > 5'",
    ),
    Bad(
        "unknown row",
        with_line(16, "  gates: {settled: execute, else: append}"),
        16,
        3,
        "there is no node 'gates'. Did you mean 'gate'?",
    ),
    Bad("missing row", with_line(16, ""), 14, 3, "node 'gate' has no row"),
    Bad(
        "unknown outcome",
        with_line(16, "  gate: {setled: execute, else: append}"),
        16,
        10,
        "Did you mean 'settled'?",
    ),
    Bad(
        "missing outcome",
        with_line(16, "  gate: {settled: execute}"),
        16,
        3,
        "aborted leads nowhere",
    ),
    Bad(
        "idle else",
        with_line(16, "  gate: {settled: execute, aborted: append, else: END}"),
        16,
        45,
        "`else` covers no outcome",
    ),
    Bad(
        "unknown target",
        with_line(16, "  gate: {settled: exec, else: append}"),
        16,
        19,
        "Did you mean 'execute'?",
    ),
    Bad(
        "end in small letters",
        with_line(19, "  stop_check: {go: prepare_step, else: end}"),
        19,
        40,
        "leads to 'end'",
    ),
    Bad("a row is a word", with_line(16, "  gate: execute"), 16, 9, "`gate`: expected a mapping"),
    Bad(
        "unknown agent",
        with_line(6, "  model_call: {use: child, agent: writer}"),
        6,
        35,
        "no agent of this file is named 'writer'",
    ),
    Bad(
        "an agent of no kind",
        RIGHT + "agents: {a: {description: x}}\n",
        22,
        13,
        "one of include, graph and given",
    ),
    Bad("an include of a text", RIGHT + "agents: {a: {include: b.yaml}}\n", 22, 23, "no folder"),
    Bad("unknown tool", RIGHT + "tools: [search]\n", 22, 9, "no tool is registered as 'search'"),
    Bad("unknown rule", with_line(21, "  - {nevr: deploy}"), 21, 5, "Did you mean 'never'?"),
    Bad("rules are a word", with_line(21, "  never"), 21, 3, "`rules`: expected a list"),
    Bad(
        "an ignore without a reason",
        RIGHT + "ignore: [{node: gate, code: GL6}]\n",
        22,
        10,
        "`reason`",
    ),
    Bad(
        "an inner graph's mistake",
        RIGHT
        + "agents: {a: {graph: {name: b, start: c, nodes: {c: {use: gate, hold: 1}}, "
        + "edges: {c: {else: END}}}}}\n",
        22,
        70,
        "`hold`: expected true or false, found the number 1",
    ),
)
"""Kinds of bad files: each is refused with its line and column."""
