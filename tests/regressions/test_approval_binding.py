"""An approval is good for one call, with these arguments, once, until its time is over."""

from __future__ import annotations

from graphloop import Agent, Approval, Pending, RunResult, approve
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import call, calls, counting, results_of

SECRET = "a secret of the server's"  # noqa: S105 - of this test


class Till:
    """An agent that pays on approval, and the time at its till."""

    def __init__(self, x: int = 1) -> None:
        self.ran: list[str] = []
        self.now = 0.0
        self.agent = Agent(
            ScriptedModel([calls(call("pay", x)), "ok"]),
            tools=[counting(self.ran, needs_approval=True)],
            approval_secret=SECRET,
            approval_ttl_s=60,
            clock=lambda: self.now,
        )

    def asked(self, run_id: str = "run") -> tuple[RunResult, Pending]:
        """Return a run that waits, and what it waits for."""
        parked = self.agent.generate_sync("go", run_id=run_id)
        (one,) = parked.pending
        return parked, one

    def answered(self, parked: RunResult, answer: bool | Approval) -> str:
        """Return what the model read, once the run was answered."""
        key = parked.pending[0].key
        result = self.agent.resume_sync(parked, approvals={key: answer})
        return results_of(result.messages)[0]


def test_langgraph_8026_an_approval_binds_to_its_arguments() -> None:
    """langchain-ai/langgraph#8026: an id said where in the graph, not what was to be done."""
    cheap, dear = Till(1), Till(1_000_000)
    parked, _ = dear.asked()

    told = dear.answered(parked, approve(token=cheap.asked()[1].token))

    assert [] == dear.ran
    assert "for other arguments" in told


def test_adk_python_5545_another_run_s_approval_approves_nothing() -> None:
    """google/adk-python#5545: a confirmation was not bound to what it confirmed."""
    till, other = Till(), Till()
    parked, _ = till.asked("run")

    told = till.answered(parked, approve(token=other.asked("another run")[1].token))

    assert [] == till.ran
    assert "of another run" in told


def test_pydantic_ai_6862_an_invented_approval_approves_nothing() -> None:
    """pydantic/pydantic-ai#6862: that a client could forge approvals was left to a recipe."""
    till = Till()
    parked, one = till.asked()
    version, payload, mac = one.token.split(".")

    told = till.answered(parked, approve(token=f"{version}.{payload}.{mac[::-1]}"))

    assert [] == till.ran
    assert "forged" in told


def test_pydantic_ai_3350_no_call_runs_without_its_approval() -> None:
    """pydantic/pydantic-ai#3350: a history that ended in a call counted as its approval."""
    till = Till()
    parked = till.agent.generate_sync("go")

    result = till.agent.generate_sync(
        messages=[{"role": "user", "content": "go"}, *parked.messages], approvals={}
    )

    assert [] == till.ran
    assert "denied" in results_of(result.messages)[0]


def test_adk_python_5545_an_approval_after_its_time_is_too_late() -> None:
    """google/adk-python#5545, the other half: an approval was good for ever."""
    till = Till()
    parked, one = till.asked()
    till.now = 61.0

    told = till.answered(parked, one.approve())

    assert [] == till.ran
    assert "expired" in told


def test_mastra_20470_a_denial_outlives_a_change_of_the_policy() -> None:
    """mastra-ai/mastra#20470: with the policy lost on resume, declining let the tool run."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay")), "ok"])
    agent = Agent(model, tools=[counting(ran, needs_approval=True)])
    parked = agent.generate_sync("go")

    lax = agent.with_options(tools=[counting(ran)])
    lax.resume_sync(parked, approvals={parked.pending[0].key: False})

    assert [] == ran
