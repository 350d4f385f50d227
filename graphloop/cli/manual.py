"""What `--help` says, command by command. A backspace alone on a line keeps those below as is."""

from __future__ import annotations

from typing import Final

__all__ = [
    "APPROVE",
    "CHECK",
    "DIFF",
    "DRAW",
    "FORK",
    "FUZZ",
    "GRAPHLOOP",
    "REPLAY",
    "RESUME",
    "RUN",
    "RUNS",
    "SCHEMA",
]

GRAPHLOOP: Final = """Agents as explicit graphs: run one, see it, prove it, take it up again.

\b
  graphloop run examples/weather      run an agent, or replay its script
  graphloop draw agent -o loop.svg    draw the standard loop
  graphloop check examples/weather    prove what can be proven before it runs
  graphloop fuzz examples/weather     run it in hundreds of hostile worlds
  graphloop runs --store runs.db      see what is kept, and what it waits for

\b
A Python file is executed whenever it is loaded, also to check or to draw it:
name only code that you trust. A topology file is data; nothing of it runs.
"""

RUN: Final = """Run an agent or graph and watch it.

\b
  graphloop run examples/weather
  graphloop run examples/weather "And in Paris?" --model openai:gpt-5
  graphloop run "Why is the sky blue?" --model anthropic:claude-opus-4-8
  graphloop run my_package.desk:build "Refund order 7" --store runs.db
  graphloop run examples/custom_topology --explain

\b
A file defines what is run:
  def build(model: Model) -> Agent: ...   or a ready `agent`, or a `graph`
  PROMPT = "..."     what is asked when no PROMPT is given
  TOOLS = [...]      what a graph's model may call; an agent has its own
  STATE = ...        what a graph that carries a state begins with
In a directory this file is agent.py, topology.py or topology.yaml (a graph as
data: graphloop schema); a script.yaml beside it answers where there is no API
key. What a topology names that is your own, Python registers: --with desk.py.

\b
Without --model, the environment decides: GRAPHLOOP_MODEL, ANTHROPIC_API_KEY,
then OPENAI_API_KEY or OPENAI_BASE_URL.
Ctrl-C ends the run properly, a second one ends the process at once. Where a
call is asked about, Ctrl-D leaves it open if --store keeps the run, else no.
With --store, the run's journal is kept in a database (runs.db) or, as JSON
lines, in a directory: graphloop runs, approve, resume, replay and fork work
on it, with the same --store or with GRAPHLOOP_STORE set.

\b
--explain tells the most that the run can come to (model calls, tool calls,
tokens, cost), and what each follows from or lacks, on stderr; with --json it
is the first line. Then the graph runs. A graph with a cycle that nothing
bounds runs only with --unbounded REASON, or with the reason in its `ignore`.

\b
Exit status: 0 the run ended, 1 it failed, has no whole answer (incomplete,
length, context_window, empty_response) or left a temporal rule broken or
owed, 2 wrong usage, 3 it is parked and waits for an answer, 130 it was
interrupted.
"""

DRAW: Final = """Draw a graph from the table that runs; without -o, print it as Mermaid.

\b
  graphloop draw agent -o loop.svg
  graphloop draw examples/custom_topology -o topology.png
  graphloop draw my_package.desk:graph --text --level phase
  graphloop draw --run 4f2a -o did.svg --store runs.db    what a run did
  graphloop draw --run 4f2a --sequence --text             who told whom what
  graphloop draw my_package.desk:graph --check -o proof.svg

\b
A file's suffix says how it is drawn: svg, png, pdf, mmd (Mermaid), dot, txt,
scxml, xstate.json; a --sequence is mmd or txt only. `-` is stdout; -.txt,
-.dot, -.svg and so on say in which notation.
"""

CHECK: Final = """Prove what can be proven of a graph, and tell what is wrong with it.

\b
  graphloop check examples/custom_topology
  graphloop check my_package.desk:graph --json
  graphloop check my_package.desk:graph --draw proof.svg
  graphloop check desk.yaml --with desk.py --proven GL2,GL3
  graphloop check desk.yaml --rule '{never: deploy, before: review}'

\b
What nobody can decide is unknown, and no error: with --proven these codes
have to be proven; all are GL1 to GL13, but for GL12 (about your rules).

\b
Exit status: 0 nothing is wrong, 1 something is, or is not proven that has to
be, 2 wrong usage.
"""

DIFF: Final = """Tell how a graph differs from an earlier one, and what that means.

\b
  graphloop diff old.yaml new.yaml
  graphloop diff old/desk.py desk.py -o changes.svg
  graphloop diff old.yaml new.yaml --rule '{never: pay, before: review}'

\b
Told are rows and parameters, and what the later graph promises less: a guard
that can be passed by, a gate that lets through more, a bound that grew, a rule
that is gone or can be broken, an act, a tool or an agent that is new.
A renamed node is another node; what two functions do is not compared.

\b
Exit status: 0 nothing got weaker, 1 something did, 2 wrong usage.
"""

FUZZ: Final = """Run a graph in hundreds of hostile worlds; tell the simplest it fails in.

\b
  graphloop fuzz examples/custom_topology
  graphloop fuzz my_package.desk:graph --seeds 5000 --draw coverage.svg
  graphloop fuzz desk/topology.py --rule '{never: tool:pay, before: review}'
  graphloop fuzz my_package.desk:graph --replay f1-TLgpcAAAAAAAAAEB

\b
The model, the tools, the people, the child runs and your own functions are
played by an adversary; processes die and runs are stopped at any moment.
Nothing real is called. A seed always makes the same world; so does a token,
as long as the graph and its tools are the same.
TOOLS and STATE of the file are used as by graphloop run. Ctrl-C prints what
was found so far.

\b
Exit status: 0 nothing was found, 1 a run did what it must not, 2 wrong usage,
130 it was interrupted.
"""

RUNS: Final = """List the runs of a store that are not over, and what they wait for.

\b
  graphloop runs --store runs.db
  graphloop runs --store runs.db --all
  graphloop runs --store runs.db --status interrupted --json

\b
ready        kept, and never driven (a fork)
running      somebody drives it now
interrupted  whoever drove it is gone: graphloop resume takes it up
suspended    it waits: graphloop approve answers, graphloop resume goes on
done, failed, cancelled   it is over
seems ...    JSON lines note no status: how the journal ends; - if its end
             does not show how the run stands (replay tells)
A child run stands below its parent, and goes on with it. Other commands take
a run's id or its beginning, as it stands here.
"""

APPROVE: Final = """Answer a call that a run waits for; graphloop resume then goes on with it.

\b
  graphloop approve 1f3a2b4c c0.0 --store runs.db
  graphloop approve 1f3a2b4c pay --edit '{"amount": 4}' --store runs.db
  graphloop approve 1f3a c0.1/c0.0 --deny --reason "too much" --store runs.db

\b
CALL is the call's key, or its beginning, or the name of its tool, if that
says which one. The first answer counts. --edit gives all the arguments; they
have to fit what the run noted of its tool. The run's code is not loaded here:
its gates see them when the run goes on. A call that may have run already
takes no --edit: it runs again as it was, or not.
"""

RESUME: Final = """Take a run up again where its journal stops, and watch it.

\b
  graphloop resume 1f3a2b4c --store runs.db
  graphloop resume 1f3a2b4c --target examples/approval --store runs.db
  graphloop resume 1f3a2b4c --approve always --store runs

\b
Answers that were left with graphloop approve are taken; what is still open is
asked here, if this is a terminal. The target and the model are those that the
run was started with; what has finished never runs again.

\b
Exit status: as for graphloop run.
"""

REPLAY: Final = """Print what happened in a run, event by event; nothing is performed.

\b
  graphloop replay 1f3a2b4c --store runs.db
  graphloop replay 1f3a2b4c --upto 4 --store runs.db
  graphloop replay 1f3a2b4c --target examples/approval --json --store runs

\b
With its target (noted in a database, else --target) the calls are named, and
the run's state is printed as it stood after the last event shown.
"""

FORK: Final = """Copy a run up to one of its events, to go on differently; print the copy's id.

\b
  graphloop replay 1f3a2b4c --store runs.db     numbers the events
  graphloop fork 1f3a2b4c --at 4 --store runs.db
  graphloop fork 1f3a2b4c --at 4 --as second-try --store runs.db

\b
The original stays as it is. Answers that were not taken up by event N stay
behind; child runs that began later do, too. A copy that would act on what a
person approved before N is refused: fork before it, or say --share-approvals.
"""

SCHEMA: Final = """Print the JSON Schema of topology files, for editors.

\b
  graphloop schema -o topology.schema.json
  graphloop schema --with desk.py -o topology.schema.json
  # yaml-language-server: $schema=topology.schema.json  (a first line)

\b
Nodes of your own are taken as they are; with --with, those that it registers
are known, and all others are marked.
"""
