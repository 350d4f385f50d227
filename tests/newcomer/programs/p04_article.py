"""Plan an article, research its questions side by side, write, judge, ask a person, publish."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel

from graphloop import END, Agent, Graph, node
from graphloop.outcomes import Accepted, Answered, Outcome, Rejected
from graphloop.own_nodes import Asking, ask_person, map_over, sub_graph
from graphloop.testing import ScriptedModel


class Note(BaseModel):
    """What the researcher found out."""

    fact: str
    sure: bool


class Verdict(BaseModel):
    """What the critic says about a draft."""

    good: bool
    advice: str = ""


@dataclass(frozen=True)
class Article:
    """What the graph works on."""

    topic: str
    questions: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    draft: str = ""
    verdict: Verdict = field(default_factory=lambda: Verdict(good=False))
    url: str = ""


class Again(Outcome):
    """The draft goes back to the writer."""


class Good(Outcome):
    """The draft is good, or was written often enough."""


class Online(Outcome):
    """The article is on the site."""


def final(to: str, **arguments: object) -> dict[str, object]:
    """Return the typed answer that a model gives when the conversation holds a text."""
    return {"to": to, "calls": [{"name": "final_answer", "arguments": arguments}]}


MODEL = ScriptedModel(
    [
        final("Plan", value=["What do owls eat?", "Where do owls sleep?"]),
        final("owls eat?", fact="Mice.", sure=True),
        final("owls sleep?", fact="In barns.", sure=False),
        final("Judge: Owls.", good=False, advice="Say what they eat."),
        final("Judge: Owls eat mice.", good=True),
        {"to": "Say what they eat.", "text": "Owls eat mice."},
        {"to": "Write", "text": "Owls."},
    ]
)

planner = Agent(MODEL, name="planner", output_type=list[str], max_steps=2)
researcher = Agent(MODEL, name="researcher", output_type=Note, max_steps=2)
writer = Agent(MODEL, name="writer", max_steps=2)
critic = Agent(MODEL, name="critic", output_type=Verdict, max_steps=2)


def ask_for_plan(article: Article) -> str:
    """Return what the planner is told."""
    return f"Plan {article.topic}"


def ask_for_verdict(article: Article) -> str:
    """Return what the critic is told."""
    return f"Judge: {article.draft}"


def brief(article: Article) -> str:
    """Return what the writer is told."""
    sure = [note.fact for note in article.notes if note.sure]
    return f"Write about {article.topic}: {' '.join(sure)} {article.verdict.advice}"


@node(cap={Again: 2}, capped=Good, reads={"verdict"})
async def judge(article: Article) -> Again | Good:
    """Follow the critic."""
    return Good() if article.verdict.good else Again()


@node(reads={"draft"}, writes={"draft"}, model_calls=0)
def approve(article: Article) -> Asking[tuple[Accepted | Rejected, Article]]:
    """Ask a person, who may correct the draft."""
    said = yield from ask_person(article.draft)
    draft = said.answer or article.draft
    return (Accepted() if said.approved else Rejected()), replace(article, draft=draft)


@node(kind="act", reads={"topic", "draft"}, writes={"url"})
def publish(article: Article) -> tuple[Online, Article]:
    """Put the draft that a person approved on the site."""
    Path(f"{article.topic}.txt").write_text(article.draft, encoding="utf-8")
    return Online(), replace(article, url=f"https://example.org/{article.topic}")


plan = sub_graph(planner, prompt=ask_for_plan, reads={"topic"}, into="questions")
research = map_over(researcher, max_items=4, items="questions", into="notes")
write = sub_graph(writer, prompt=brief, reads={"topic", "notes", "verdict"}, into="draft")
criticise = sub_graph(critic, prompt=ask_for_verdict, reads={"draft"}, into="verdict")
graph = Graph(
    "article",
    plan,
    {
        plan: {Answered: research, ...: END},
        research: {Answered: write, ...: END},
        write: {Answered: criticise, ...: END},
        criticise: {Answered: judge, ...: END},
        judge: {Again: write, Good: approve, ...: END},
        approve: {Accepted: publish, ...: END},
        publish: {...: END},
    },
    state_type=Article,
)
STATE = Article("owls")


def main() -> None:
    """Run to the person, correct the text, and publish it."""
    print(graph.check().ok, graph.run_bound().model_calls, "model calls at most")
    parked = graph.run_sync(STATE, store="news.db", run_id="owls")
    [question] = parked.pending
    print(parked.end_reason, question.arguments, *(note.fact for note in parked.state.notes))
    edited = question.approve(edit={"answer": "Owls eat mice, at night."})
    result = graph.resume_sync("owls", store="news.db", approvals={question.key: edited})
    print(result.state.url, Path("owls.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
