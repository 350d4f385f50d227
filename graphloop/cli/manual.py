"""What `--help` says, command by command. A backspace alone on a line keeps those below as is."""

from __future__ import annotations

from typing import Final

__all__ = ["CHECK", "DRAW", "GRAPHLOOP", "RUN"]

GRAPHLOOP: Final = """Agents as explicit graphs: run one, see it, prove it.

\b
  graphloop run examples/weather      run an agent, or replay its script
  graphloop draw agent -o loop.svg    draw the standard loop
  graphloop check examples/weather    prove what can be proven before it runs
"""

RUN: Final = """Run an agent or graph and watch it.

\b
  graphloop run examples/weather
  graphloop run examples/weather "And in Paris?" --model openai:gpt-5
  graphloop run "Why is the sky blue?" --model anthropic:claude-opus-4-8
  graphloop run my_package.desk:build "Refund order 7" --store runs

\b
A file defines what is run:
  def build(model: Model) -> Agent: ...   or a ready `agent`, or a `graph`
  PROMPT = "..."     what is asked when no PROMPT is given
  TOOLS = [...]      what a graph's model may call; an agent has its own
In a directory this file is agent.py or topology.py; a script.yaml beside it
answers where there is no API key.

\b
Without --model, the environment decides: GRAPHLOOP_MODEL, ANTHROPIC_API_KEY,
then OPENAI_API_KEY or OPENAI_BASE_URL.
Ctrl-C ends the run properly, a second one ends the process at once.

\b
Exit status: 0 the run ended, 1 it failed, 2 wrong usage, 3 it is parked and
waits for an answer, 130 it was interrupted.
"""

DRAW: Final = """Draw a graph from the table that runs; without -o, print it as Mermaid.

\b
  graphloop draw agent -o loop.svg
  graphloop draw examples/custom_topology -o topology.png
  graphloop draw my_package.desk:graph
"""

CHECK: Final = """Prove what can be proven of a graph; exit status 1 if something is wrong.

\b
  graphloop check examples/custom_topology
  graphloop check my_package.desk:graph --json
"""
