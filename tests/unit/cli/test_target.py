"""What a command works on."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent, Graph
from graphloop.cli.target import load_graph, load_target, names_target, register
from graphloop.errors import ConfigError, GraphError
from graphloop.testing import ScriptedModel
from graphloop.topology import registry
from tests.topology_files import RIGHT

MODEL = ScriptedModel(())
HEAD = (
    "from graphloop import END, Agent, Graph, tool\nfrom graphloop.testing import ScriptedModel\n"
)
BUILD = HEAD + "def build(model):\n    return Agent(model, name='desk')\n"
GRAPH = HEAD + (
    "from graphloop.nodes import PrepareStep\n"
    "prepare = PrepareStep()\n"
    "graph = Graph('g', prepare, {prepare: {...: END}})\n"
)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load_target(text).loop(MODEL)
    return str(raised.value)


@pytest.mark.usefixtures("desk")
def test_a_question_is_no_target() -> None:
    """Only what exists, or is written like a path or a module, is loaded and executed."""
    write(Path("own.py"), BUILD)

    targets = ["own.py", "x/y", "desk:build", "a.b:c"]
    questions = ["Hello", "Why: because?", "note: x", "x" * 5_000, "a\0b"]

    assert [names_target(one) for one in targets] == [True] * 4
    assert [names_target(one) for one in questions] == [False] * 5


def test_a_file_builds_its_agent_around_the_model(desk: Path) -> None:
    """One convention: `build(model)`, and PROMPT for the question."""
    target = load_target(write(desk / "own.py", BUILD + "PROMPT = 'Hi?'\n"))

    loop = target.loop(MODEL)

    assert isinstance(loop, Agent)
    assert (loop.model, loop.graph.name) == (MODEL, "desk")
    assert (target.prompt, target.script) == ("Hi?", None)


@pytest.mark.parametrize("name", ["agent.py", "topology.py"])
def test_a_directory_is_its_agent_or_topology_and_the_script_beside_it(
    name: str, desk: Path
) -> None:
    """So an example is named by its folder."""
    write(desk / "own" / name, BUILD)
    script = write(desk / "own" / "script.yaml", "- text: Hi.\n")

    target = load_target("own")

    assert target.place == f"own/{name}"
    assert target.script is not None
    assert target.script.absolute() == Path(script)


def test_a_graph_stands_for_itself_and_names_its_tools(desk: Path) -> None:
    """A topology needs no function: it is not made around a model."""
    text = GRAPH + "@tool\nasync def f() -> str:\n    '''F.'''\n    return ''\nTOOLS = [f]\n"
    target = load_target(write(desk / "own.py", text))

    loop = target.loop(MODEL)

    assert isinstance(loop, Graph)
    assert loop.name == "g"
    assert [getattr(one, "name", "") for one in target.tools] == ["f"]


def test_a_module_is_found_from_the_current_directory(desk: Path) -> None:
    """As with `python -m`; a function of any name will do."""
    write(desk / "desk_of_mine" / "loops.py", GRAPH + "def make(model):\n    return graph\n")

    assert load_graph("desk_of_mine.loops:graph") == load_graph("desk_of_mine.loops:make")


def test_a_target_imports_what_stands_beside_it(desk: Path) -> None:
    """A file that works in its own directory works from every other."""
    write(desk / "deep" / "beside_it.py", "NAME = 'n'\n")
    write(desk / "deep" / "agent.py", BUILD + "import beside_it\nPROMPT = beside_it.NAME\n")

    assert load_target("deep").prompt == "n"


def test_agent_is_the_standard_loop() -> None:
    """`graphloop draw agent` draws what every Agent runs."""
    assert load_graph("agent") == Agent(MODEL).graph


def test_a_directory_without_agent_says_what_it_has(desk: Path) -> None:
    """The file may just have another name."""
    write(desk / "own" / "loop.py", BUILD)
    (desk / "bare").mkdir()

    found = refusal("own")
    assert "expected agent.py, topology.py or topology.yaml in this directory" in found
    assert "found loop.py." in found
    assert "found no .py file" in refusal("bare")


def test_another_kind_of_file_is_refused(desk: Path) -> None:
    """A script alone is no agent: it goes to --script."""
    write(desk / "script.yaml", "")

    assert "expected a directory, a .py file, or a topology" in refusal("script.yaml")


def test_a_file_without_anything_to_run_says_what_it_has(desk: Path) -> None:
    """`loop = Agent(…)` is reached as module:loop."""
    write(desk / "own.py", GRAPH.replace("graph =", "table ="))
    write(desk / "none.py", "x = 1\n")

    assert "found table. Fix: add one, or name what is there as module:name." in refusal("own.py")
    assert "found no agent, graph or build function" in refusal("none.py")


def test_a_module_without_that_name_lists_what_it_has(desk: Path) -> None:
    """The nearest first: most misses are typing errors."""
    write(desk / "mine_a.py", GRAPH)
    write(desk / "mine_b.py", "x = 1\n")

    message = refusal("mine_a:grahp")

    assert "'grahp' in module 'mine_a', found graph. Did you mean 'graph'?" in message
    assert "found no agent, graph or build function" in refusal("mine_b:graph")


def test_a_module_that_is_not_there_is_named(desk: Path) -> None:
    """And one that is there, but imports what is not, is told apart."""
    write(desk / "mine_c.py", "import no_such_thing\n")

    assert "expected a module 'no_such_mine', found none" in refusal("no_such_mine:graph")
    assert "ModuleNotFoundError: No module named 'no_such_thing'" in refusal("mine_c:graph")


@pytest.mark.parametrize("target", ["own_d.py", "own_d:build"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\ndef build(model:\n", "own_d.py, line 3)"),
        ("x = 1\nx.y\n", "AttributeError: 'int' object has no attribute 'y' ("),
        ("x = 1\nx.y\n", "own_d.py, line 2)"),
        ("PROMPT = 5\ndef build(model): ...\n", "expected PROMPT to be a string, found 5"),
        ("def build(model): ...\n", "to return an Agent or a Graph, found NoneType"),
        ("def build(model):\n    return 1 / 0\n", "ZeroDivisionError: division by zero"),
        ("build = 5\n", "expected 'build' to be an Agent, a Graph, or a function build(model)"),
        (HEAD + "def build(model):\n    return Agent(model, max_steps=0)\n", "max_steps"),
        (HEAD + "Agent('nope:x')\n", "'nope:x'"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(
    text: str, message: str, target: str, desk: Path
) -> None:
    """The user's own mistake, in the user's own file; graphloop's messages pass unchanged."""
    write(desk / "own_d.py", text)

    assert message in refusal(target)


@pytest.mark.parametrize("target", ["own_g.py", "own_g:graph"])
def test_a_wrong_table_keeps_its_report(target: str, desk: Path) -> None:
    """`graphloop check` shows it as findings."""
    write(desk / "own_g.py", GRAPH.replace("{...: END}", "{}"))

    with pytest.raises(GraphError, match="outcome 'ready' leads nowhere"):
        load_graph(target)


def test_what_is_near_a_mistyped_path_is_named(desk: Path) -> None:
    """The whole path, to be typed as it is; a full folder is not listed whole."""
    for number in range(12):
        write(desk / "deep" / f"loop_{number:02}.py", BUILD)

    assert "Did you mean 'agent'?" in refusal("agnet")
    told = refusal("deep/lop_03.py")
    assert "Did you mean 'deep/loop_03.py'?" in told
    assert told.endswith("deep/loop_09.py and 2 more.")
    assert "Did you mean 'deep'?" in refusal("deap/loop_03.py")


def test_a_topology_in_yaml_is_a_target_with_its_own_prompt(desk: Path) -> None:
    """By its name, or in a directory; no Python is needed, and none is executed."""
    for one in (desk / "support.yaml", desk / "data" / "topology.yaml"):
        one.parent.mkdir(exist_ok=True)
        one.write_text(RIGHT + "prompt: Hello?\n", encoding="utf-8")

    for text in ("support.yaml", "data"):
        target = load_target(text)

        assert "support" == load_graph(text).name
        assert "Hello?" == target.prompt


OWN = """
from graphloop import node
from graphloop.topology import registry
from graphloop.outcomes import Outcome

class Gone(Outcome): ...

@registry.node
@node
def leave_{name}(state: None) -> Gone:
    return Gone()
"""
USING = """
graphloop: 1
name: own
start: leave_{name}
prompt: Gone?
nodes: {{leave_{name}: {{use: leave_{name}}}}}
edges: {{leave_{name}: {{else: END}}}}
"""


@pytest.mark.parametrize("name", ["a.py", "folder/b.py", "own_c", "own_d.sub"])
def test_what_a_file_names_is_registered_by_python_that_the_command_names(
    name: str, desk: Path
) -> None:
    """A .py file, or a module as `python -m` finds it."""
    short = name.replace("/", ".").split(".")[
        -1 if name.endswith("sub") else -2 if "." in name else 0
    ]
    path = name if name.endswith(".py") else f"{name.replace('.', '/')}.py"
    write(desk / path, OWN.format(name=short))
    write(desk / "own.yaml", USING.format(name=short))

    with registry.set_back():
        with pytest.raises(GraphError, match="no kind of node") as refused:
            load_graph("own.yaml")
        register([name])

        assert "own" == load_graph("own.yaml").name
    assert "on the command line: --with FILE.py" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_e.py", "Did you mean"),
        ("no_such_module", "expected a module 'no_such_module'"),
        ("a b", "--with: expected a .py file, or a module"),
        ("own_ee.py", "own_ee.py, line 1)"),
    ],
)
def test_what_registers_nothing_is_told(name: str, said: str, desk: Path) -> None:
    """As a target that cannot be loaded."""
    write(desk / "own_ee.py", "x.y\n")

    with pytest.raises(ConfigError) as refused:
        register([name])

    assert said in str(refused.value)


def test_a_file_that_loads_another_has_its_prompt(desk: Path) -> None:
    """`prompt:` is what is asked where PROMPT says nothing."""
    write(desk / "own.yaml", RIGHT + "prompt: Hello?\n")
    write(desk / "own_h.py", "from graphloop.topology import load\ngraph = load('own.yaml')\n")
    write(
        desk / "own_i.py",
        "from graphloop.topology import load\ngraph = load('own.yaml')\nPROMPT='Hi'\n",
    )

    assert "Hello?" == load_target("own_h.py").prompt
    assert "Hi" == load_target("own_i.py").prompt
