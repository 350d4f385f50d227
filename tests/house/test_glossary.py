"""No name of the package uses a word that the glossary gives up, except where it means another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ANYWHERE: Final[Mapping[str, str]] = {
    "branch": "a node's parallel branch",
    "callback": "a function of the user's that a node invokes by its name",
    "cap": "a node's own limit, as the glossary says",
    "chain": "the chain of a chat's questions, and of included files",
    "chunk": "a piece of a stream of bytes, as the wires call it",
    "client": "the other side of a connection, and the client tool",
    "command": "of the command line, and for a run in its mailbox",
    "config": "a field of a wire, or of pydantic; and ConfigError",
    "context": "the model's window, and what a running function is given",
    "counter": "a number that a run counts up",
    "decision": "a person's, or one of the fuzzer",
    "engine": "the glossary's own word: it decides which run comes next",
    "exit": "of a process or a `with` block, and an edge out of a region",
    "history": "the glossary's own word: the messages of a run",
    "inbox": "the glossary's own word: what a caller has said",
    "issue": "to make an effect or a token; and what a schema has to say",
    "lock": "of a file, a thread, or a tool",
    "log": "of the process",
    "message": "of a conversation",
    "open": "to open a file, a connection, a run",
    "pause": "of a server in mid-turn, and between two attempts",
    "port": "of TCP; `Ports` are what a driver works with",
    "queue": "the glossary's own word: a named share of the fleet; and of calls",
    "refuse": "to raise an error about what does not fit; a call is denied",
    "remote": "of an agent or a tool behind another protocol",
    "resources": "what an agent owns: its tools, models and functions",
    "result": "the glossary's own word: the answer of a call",
    "round": "of questions and answers with a server, and of a cycle",
    "session": "of HTTP, of MCP, and of one run with a model",
    "signal": "an entry of a mailbox, and of the operating system",
    "slot": "of a worker that drives runs, and of calls at once",
    "state": "the glossary's own word: the user's data",
    "step": "the glossary's own word: an application of `step`",
    "thread": "of the operating system",
    "token": "what models count, and the token of an approval",
    "trace": "of a simulated run, and of telemetry",
    "type": "of Python, of media, of a schema",
    "user": "of the caller's own service: the author of a message",
    "verdict": "the glossary's own word: what a gate decided",
    "version": "of an API, a schema, or a release",
    "warning": "of a run that goes on",
    "workflow": "of Temporal and DBOS",
}
"""The words with another meaning in code, and that meaning."""

NAMES: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "accept": ("what a function's signature takes", frozenset({"accepts"})),
    "database": ("the stores in one", frozenset({"DATABASES", "DatabaseStore"})),
    "estimate": ("the tokens of messages that no provider counted", frozenset({"estimate"})),
    "example": ("a line of code in an error", frozenset({"example"})),
    "executor": ("as the SDKs call it", frozenset({"_executor", "agent_executor"})),
    "filter": ("as the vendors call it", frozenset({"CONTENT_FILTER", "metadata_filter"})),
    "guard": (
        "a node that every path to another passes",
        frozenset({"_GUARDS", "guards", "is_guard", "lost_guards"}),
    ),
    "left": (
        "the past of to leave; what is left out; the opposite of right",
        frozenset(
            {
                *("LEFT", "LEFT_BEHIND", "LeftOpen", "_LeftPathError", "_left_aligned"),
                *("_left_behind", "_left_by_name", "_was_left", "is_left", "left_out"),
            }
        ),
    ),
    "memory": ("the store in it", frozenset({"MemoryStore", "_memory"})),
    "reject": ("a check sends an answer back (`Rejected`)", frozenset({"reject_answer"})),
    "worker": (
        "the process that drives runs",
        frozenset({"Worker", "worker", "worker_command"}),
    ),
}
"""The words that only these names may have, and what they mean there."""

GLOSSARY: Final = "docs/glossary.md"


def banned_words(root: Path) -> frozenset[str]:
    """Return the single words of the column "not", without remarks in parentheses."""
    lines = (root / GLOSSARY).read_text(encoding="utf-8").splitlines()
    cells = [line.strip("|").split("|")[-1] for line in lines if line.startswith("| ")]
    listed = ",".join(re.sub(r"\(.*?\)", "", cell) for cell in cells).split(",")
    return frozenset(
        word for one in listed if re.fullmatch("[a-z]+", word := one.strip()) and word != "not"
    )


def names_of(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, classes, parameters, fields, and constants of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case _:
                pass
        if isinstance(node, ast.ClassDef | ast.Module):
            for line in node.body:
                targets = line.targets if isinstance(line, ast.Assign) else []
                targets += [line.target] if isinstance(line, ast.AnnAssign) else []
                yield from (one.id for one in targets if isinstance(one, ast.Name))


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name in snake case or camel case, in the singular."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_")
    return frozenset({*parts, *(part.removesuffix("s") for part in parts)})


def test_names_use_the_glossary_s_words(root: Path, trees: Mapping[str, ast.Module]) -> None:
    """One thing has one name, so that a search finds all of it; an exception has its reason."""
    banned = banned_words(root)
    found = {
        (word, name): path
        for path, tree in trees.items()
        for name in names_of(tree)
        for word in words_of(name) & banned
    }
    listed = {(word, name) for word, (_, names) in NAMES.items() for name in names}
    unexcused = {pair: found[pair] for pair in {*found} - listed if pair[0] not in ANYWHERE}

    assert {} == unexcused
    assert listed <= {*found}
    assert {*ANYWHERE} <= {word for word, _ in found}


def test_a_banned_word_is_found_in_each_kind_of_name(root: Path) -> None:
    """A rule that finds nothing anywhere holds nothing."""
    code = "UNWANTED = 1\nclass Begun:\n    wish: int\n    def poke(self, llm): self.backend = llm"

    found = {word for name in names_of(ast.parse(code)) for word in words_of(name)}

    assert {"unwanted", "begun", "wish", "poke", "llm", "backend"} <= found & banned_words(root)
