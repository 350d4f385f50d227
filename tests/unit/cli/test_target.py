"""The targets of commands, and the errors of wrong targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.modules import register
from graphloop.cli.target import load_graph, load_target, names_target
from graphloop.errors import ConfigError, GraphError
from graphloop.testing import ScriptedModel
from graphloop.topology import registry
from tests.topology_files import RIGHT
from tests.unit.cli.command_line import write

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


def refusal(text: str) -> str:
    """Return the error of a target that cannot be loaded."""
    with pytest.raises(ConfigError) as raised:
        load_target(text).loop(MODEL)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "is_target"),
    [
        ("own.py", True),
        ("x/y", True),
        ("desk:build", True),
        ("a.b:c", True),
        ("no/such.py:graph", True),
        ("Hello", False),
        ("Why: because?", False),
        ("note: x", False),
        ("x" * 5_000, False),
        ("a\0b", False),
    ],
)
@pytest.mark.usefixtures("desk")
def test_a_path_or_python_name_is_no_question(text: str, is_target: bool) -> None:
    write({"own.py": BUILD})

    assert names_target(text) is is_target


@pytest.mark.usefixtures("desk")
def test_a_file_builds_its_agent_with_the_model() -> None:
    write({"own.py": BUILD + "PROMPT = 'Hi?'\n"})
    target = load_target("own.py")

    loop = target.loop(MODEL)

    assert isinstance(loop, Agent)
    assert (loop.model, loop.graph.name) == (MODEL, "desk")
    assert (target.prompt, target.script) == ("Hi?", None)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("name", ["agent.py", "topology.py"])
def test_a_directory_is_its_agent_or_topology(name: str) -> None:
    """The file can import its neighbours; a script beside it gives the replies."""
    beside = "import beside_it\nPROMPT = beside_it.NAME\n"
    files = {name: BUILD + beside, "beside_it.py": "NAME = 'n'\n", "script.yaml": "- text: Hi.\n"}
    write({f"own/{file}": text for file, text in files.items()})

    target = load_target("own")

    assert (target.place, target.script, target.prompt) == (
        f"own/{name}",
        Path("own/script.yaml"),
        "n",
    )


@pytest.mark.usefixtures("desk")
def test_a_graph_has_the_tools_of_its_file() -> None:
    tools = "@tool\nasync def f() -> str:\n    '''F.'''\n    return ''\nTOOLS = [f]\n"
    write({"own.py": GRAPH + tools})
    target = load_target("own.py")

    assert load_graph("own.py").name == "g"
    assert [getattr(tool, "name", "") for tool in target.tools] == ["f"]


@pytest.mark.usefixtures("desk")
def test_a_module_is_found_from_the_current_directory() -> None:
    write({"desk_of_mine/loops.py": GRAPH + "def make(model):\n    return graph\n"})

    assert load_graph("desk_of_mine.loops:graph") == load_graph("desk_of_mine.loops:make")


@pytest.mark.usefixtures("desk")
def test_a_name_in_a_file_is_a_target() -> None:
    write({"own/slow.py": GRAPH + "other = graph\n", "own/script.yaml": "- text: Hi.\n"})

    target = load_target("own/slow.py:other")

    assert names_target("own/slow.py:other")
    assert target.loop(MODEL) == load_graph("own/slow.py")
    assert (target.place, target.script) == ("own/slow.py:other", Path("own/script.yaml"))


def test_agent_is_the_standard_loop() -> None:
    assert load_graph("agent") == Agent(MODEL).graph


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("files", "target", "message"),
    [
        (
            {"own/loop.py": BUILD},
            "own",
            "expected agent.py, topology.py or topology.yaml in this directory, found loop.py.",
        ),
        ({"bare/x": ""}, "bare", "found no .py file"),
        ({"script.yaml": ""}, "script.yaml", "expected a directory, a .py file, or a topology"),
        (
            {"own.py": GRAPH.replace("graph =", "table =")},
            "own.py",
            "found table. Fix: add one, or name what is there: own.py:NAME.",
        ),
        ({"none.py": "x = 1\n"}, "none.py", "found no agent, graph or build function"),
        (
            {"mine_a.py": GRAPH},
            "mine_a:grahp",
            "'grahp' in mine_a, found graph. Did you mean 'graph'?",
        ),
        ({"mine_b.py": "x = 1\n"}, "mine_b:graph", "found no agent, graph or build function"),
        ({}, "no_such_mine:graph", "expected a module 'no_such_mine', found none"),
        (
            {"mine_c.py": "import no_such_thing\n"},
            "mine_c:graph",
            "ModuleNotFoundError: No module named 'no_such_thing'",
        ),
        ({}, "agnet", "Did you mean 'agent'?"),
        ({"slow.py": GRAPH}, "slow.py:grahp", "slow.py:grahp: expected 'grahp' in slow.py, found"),
        ({"slow.py": GRAPH}, "slow.py:grahp", "found graph. Did you mean 'graph'?"),
        ({"slow.py": GRAPH}, "slwo.py:graph", "slwo.py: expected a directory, a .py file"),
        ({"slow.py": GRAPH}, "slwo.py:graph", "Did you mean 'slow.py'?"),
        ({"deep/x.py": ""}, "deap/x.py", "Did you mean 'deep'?"),
        (
            {f"deep/loop_{number:02}.py": BUILD for number in range(12)},
            "deep/lop_03.py",
            "Did you mean 'deep/loop_03.py'?",
        ),
    ],
)
def test_an_error_names_what_is_near_a_missing_target(
    files: dict[str, str], target: str, message: str
) -> None:
    write(files)

    assert message in refusal(target)


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
@pytest.mark.usefixtures("desk")
def test_an_error_in_a_file_has_its_line(text: str, message: str, target: str) -> None:
    """Messages of graphloop are not changed."""
    write({"own_d.py": text})

    assert message in refusal(target)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("target", ["own_g.py", "own_g:graph"])
def test_a_wrong_table_is_a_graph_error(target: str) -> None:
    """`graphloop check` prints it as findings."""
    write({"own_g.py": GRAPH.replace("{...: END}", "{}")})

    with pytest.raises(GraphError, match="outcome 'ready' leads nowhere"):
        load_graph(target)


@pytest.mark.usefixtures("desk")
def test_a_topology_has_its_own_prompt() -> None:
    """PROMPT of a Python file comes before it."""
    asked = RIGHT + "prompt: Hello?\n"
    loads = "from graphloop.topology import load\ngraph = load('support.yaml')\n"
    write({"support.yaml": asked, "data/topology.yaml": asked, "own_h.py": loads})
    write({"own_i.py": loads + "PROMPT = 'Hi'\n"})

    prompts = [load_target(text).prompt for text in ("support.yaml", "data", "own_h.py")]

    assert ["Hello?"] * 3 == prompts
    assert "Hi" == load_target("own_i.py").prompt
    assert load_graph("data") == load_graph("support.yaml")


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


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("a.py", "a.py"),
        ("folder/b.py", "folder/b.py"),
        ("own_c", "own_c.py"),
        ("own_d.sub", "own_d/sub.py"),
    ],
)
def test_with_registers_the_names_of_a_topology(given: str, file: str) -> None:
    name = Path(file).stem
    write({file: OWN.format(name=name), "own.yaml": USING.format(name=name)})

    with registry.set_back():
        with pytest.raises(GraphError, match="no kind of node") as error:
            load_graph("own.yaml")
        register([given])

        assert "own" == load_graph("own.yaml").name
    assert "on the command line: --with FILE.py" in str(error.value)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_e.py", "Did you mean"),
        ("no_such_module", "expected a module 'no_such_module'"),
        ("a b", "--with: expected a .py file, or a module"),
        ("own_ee.py", "own_ee.py, line 1)"),
    ],
)
def test_a_wrong_file_of_with_is_refused(name: str, said: str) -> None:
    write({"own_ee.py": "x.y\n"})

    with pytest.raises(ConfigError) as refused:
        register([name])

    assert said in str(refused.value)
