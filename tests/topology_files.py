"""Files of topologies: one that is right, and what can be wrong with one, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from graphloop import Tool
from graphloop.agent.sub_agents import AgentTool
from graphloop.errors import Problem
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.loaded import Topology, load
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Registry

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
  execute: {use: execute, max_tool_concurrency: 2, hold: true}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 8}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {approval_needed: gate, else: append}
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
  execute: {approval_needed: gate, else: append}
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
    lines: list[str] = [*RIGHT.splitlines()]
    lines[number - 1 : number] = [line]
    return "\n".join(lines) + "\n"


def problems(text: str | bytes, names: Registry | None = None) -> tuple[Problem, ...]:
    """Return the problems of a text, which is refused as `a.yaml`; each has a fix."""
    known = Registry() if names is None else names
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

LINES: Final = """\
bare question mark, 6:26: question mark
  model_call: {use: short?}
bad indentation, 6:2: no YAML
 model_call: {use: model_call}
alias, 3:8: an alias (*begin)
start: *begin
anchor, 3:8: an anchor (&begin)
start: &begin gate
merge key, 5:3: a merge key
  <<: {use: prepare_step}
tag, 2:7: a tag (
name: !!python/object:os.system x
duplicate key, 6:3: twice, first on
  prepare_step: {use: append}
duplicate top key, 22:1: the key 'name' stands here twice
name: other
key is a number, 5:3: found the number 1
  1: {use: prepare_step}
key is null, 5:3: a key of text, found null
  ~: {use: prepare_step}
unknown top key, 22:1: Did you mean 'nodes'?
node: {}
missing version, 1:1: `graphloop`
description: x
version of tomorrow, 1:12: found 2
graphloop: 2
version as a fraction, 1:12: found the number 1.0
graphloop: 1.0
version as text, 1:12: found the text '1'
graphloop: '1'
name is a number, 2:7: `name`: expected text
name: 7
name is nothing, 2:6: `name`: expected text, found nothing
name:
name is blank, 2:7: a text that says something
name: ' '
name is a boolean, 2:7: found the boolean true
name: true
unknown start, 3:8: Did you mean 'prepare_step'?
start: prepare
node named END, 5:3: not a node's name
  END: {use: prepare_step}
node without use, 6:15: `use`
  model_call: {model: x}
node is a word, 6:15: expected a mapping
  model_call: model_call
named twice, 6:29: is its name
  model_call: {use: append, name: x}
unknown use, 6:21: 'model_call'?
  model_call: {use: modelcall}
an import path, 6:21: no kind of node
  model_call: {use: os.system}
unknown parameter, 12:33: Did you mean 'max_steps'?
  stop_check: {use: stop_check, max_step: 8}
yes for true, 10:33: `hold`: expected true or false, found the text 'yes'
  execute: {use: execute, hold: yes}
a number as text, 12:44: found the text '8'
  stop_check: {use: stop_check, max_steps: '8'}
1_000, 12:44: found the text '1_000'
  stop_check: {use: stop_check, max_steps: 1_000}
a fraction, 12:44: found the number 8.0
  stop_check: {use: stop_check, max_steps: 8.0}
no bound, 12:44: at least 1
  stop_check: {use: stop_check, max_steps: 0}
infinity, 12:44: found the number .inf
  stop_check: {use: stop_check, max_steps: .inf}
an octal number, 12:44: found the number 010
  stop_check: {use: stop_check, max_steps: 010}
unknown verdict, 9:13: mean 'allow'?
    rules: [{alow: search}]
two verdicts, 9:24: allow, deny
    rules: [{allow: a, deny: b}]
a key of another verdict, 9:24: `ttl_s`
    rules: [{allow: a, ttl_s: 3}]
unknown predicate, 9:30: no predicate is registered as 'odd'
    rules: [{allow: a, when: odd}]
an expression, 9:30: no predicate is registered as 'amount > 5'
    rules: [{allow: a, when: 'amount > 5'}]
unknown row, 16:3: there is no node 'gates'. Did you mean 'gate'?
  gates: {settled: execute, else: append}
unknown outcome, 16:10: Did you mean 'settled'?
  gate: {setled: execute, else: append}
missing outcome, 16:3: aborted leads nowhere
  gate: {settled: execute}
idle else, 16:45: `else` covers no outcome
  gate: {settled: execute, aborted: append, else: END}
unknown target, 16:19: Did you mean 'execute'?
  gate: {settled: exec, else: append}
end in small letters, 19:40: leads to 'end'
  stop_check: {go: prepare_step, else: end}
a row is a word, 16:9: `gate`: expected a mapping
  gate: execute
unknown agent, 6:35: no agent of this file is named 'writer'
  model_call: {use: child, agent: writer}
an agent of no kind, 22:13: one of include, graph and given
agents: {a: {description: x}}
an include of a text, 22:23: no folder
agents: {a: {include: b.yaml}}
unknown tool, 22:9: no tool is registered as 'search'
tools: [search]
unknown rule, 21:5: Did you mean 'never'?
  - {nevr: deploy}
rules are a word, 21:3: `rules`: expected a list
  never
an ignore without a reason, 22:10: `reason`
ignore: [{node: gate, code: GL6}]
"""
"""Two lines a kind: its name, place and message; then the bad line, put into the right file."""


def _bad_lines() -> Iterator[Bad]:
    lines = LINES.splitlines()
    for head, line in zip(lines[::2], lines[1::2], strict=True):
        kind, place, said = head.replace(", ", "\n", 1).replace(": ", "\n", 1).splitlines()
        number, column = map(int, place.split(":"))
        yield Bad(kind, with_line(number, line), number, column, said)


BAD: Final = (
    *_bad_lines(),
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
    Bad("alias bomb", LAUGHS + "\n" + RIGHT, 1, 4, "an anchor (&a)"),
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
    Bad("key is a list", with_line(5, "  ? [a]\n  : {use: append}"), 5, 5, "found a list"),
    Bad("a list on top", "- graphloop: 1\n", 1, 1, "expected a mapping, found a list"),
    Bad("a word on top", "graphloop", 1, 1, "found the text 'graphloop'"),
    Bad("missing key", with_line(2, "description: x"), 1, 1, "`name`"),
    Bad("no nodes", "graphloop: 1\nname: a\nstart: b\nnodes: {}\n", 4, 8, "at least one node"),
    Bad(
        "a huge number",
        with_line(12, "  stop_check: {use: stop_check, max_steps: %s}" % ("9" * 5000)),
        12,
        44,
        "found the number 9999",
    ),
    Bad("missing row", with_line(16, ""), 14, 3, "node 'gate' has no row"),
    Bad("a tool twice", RIGHT + "agents: {a: {given: true}}\ntools: [a, a]\n", 23, 8, "twice"),
    Bad("an agent of no use", RIGHT + "agents: {a: {given: true}}\ntools: [a]\n", 23, 8, "know no"),
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
