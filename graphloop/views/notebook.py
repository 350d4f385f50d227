"""notebook: graphs, proofs and runs as a notebook shows them: a picture, and words.

IPython calls `_repr_mimebundle_` of a value and shows the richest form that its screen can show: a
terminal shows the text, a notebook the picture. Without a program that draws, the words remain.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any, Final, TypeAlias

from ..errors import ConfigError
from ..events import Event
from ..graph import NodeGraph
from ..proofs import Bound, Comparison, Report
from ..stores import Store
from .comparison import changes_picture
from .levels import picture
from .marks import Marks, Tone
from .pictures import Picture
from .proof import proof_marks
from .render import rendered
from .trace import Typed, run_trace, trace_marks

__all__ = ["notebook_bundle", "run_bundle"]

MimeBundle: TypeAlias = Mapping[str, str]

_TEXT, _HTML, _SVG = "text/plain", "text/html", "image/svg+xml"
_LOAD_TIMEOUT_S: Final = 5.0


def notebook_bundle(value: NodeGraph[Any] | Report | Bound | Comparison) -> MimeBundle:
    """Return a graph, or a result of the proofs, as text and as a picture, by MIME type.

    A graph gives its picture. A result of the proofs gives its text as well; a copied or unpickled
    result holds no graph, so it gives its text only.
    """
    if isinstance(value, NodeGraph):
        return {_TEXT: repr(value), **_draw_svg(lambda: picture(value))}
    graphs = value.subject.graphs
    return _words_and_picture(
        str(value), _draw_svg(lambda: _proof_picture(value, graphs)) if graphs else {}
    )


def run_bundle(
    words: str, graph: NodeGraph[Any] | None, store: Store, run_id: str, typed: Typed
) -> MimeBundle:
    """Return words about a run, and the picture of its graph with the run laid over it.

    Args:
        words: the text to show.
        graph: the graph of the run; None shows the words alone.
        store: the store of the run.
        run_id: the run's id.
        typed: converts the user's state in the journal's events to the graph's state type.
    """
    if graph is None:
        return _words_and_picture(words, {})
    try:
        events = _load_journal(store, run_id)
        marks = trace_marks(graph, [run_trace(graph, events, typed=typed)])
    except Exception:  # noqa: BLE001 - a store that cannot be read must not hide the result
        marks = Marks(title="its journal cannot be read here")
    return _words_and_picture(words, _draw_svg(lambda: picture(graph, marks)))


def _load_journal(store: Store, run_id: str) -> Sequence[Event]:
    """Load a journal from a synchronous caller, in a thread, because a notebook's loop runs."""

    async def load() -> Sequence[Event]:
        async with asyncio.timeout(_LOAD_TIMEOUT_S):
            return await store.load(run_id)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, load()).result()


def _proof_picture(value: Report | Bound | Comparison, graphs: Sequence[NodeGraph[Any]]) -> Picture:
    match value:
        case Report():
            return picture(graphs[0], proof_marks(graphs[0], value.findings))
        case Bound():
            return picture(graphs[0], _bound_marks(value))
        case Comparison():
            return changes_picture(graphs[0], graphs[1], value)


def _bound_marks(bound: Bound) -> Marks:
    """Return marks that show at each node how often one run visits it at most."""
    alarms: dict[str, Tone] = {
        name: "alarm" for name, visits in bound.visits.items() if visits is None
    }
    calls = "unknown" if bound.model_calls is None else f"{bound.model_calls:,}"
    return Marks(
        title=f"model calls at most: {calls}",
        nodes={
            name: "no bound" if visits is None else f"at most {visits:,}x"
            for name, visits in bound.visits.items()
        },
        node_tones=alarms,
    )


def _draw_svg(draw: Callable[[], Picture]) -> MimeBundle:
    """Return a picture as SVG, in a mapping that is empty if no program can draw it."""
    try:
        return {_SVG: rendered(draw(), ".svg")}
    except ConfigError:
        return {}


def _words_and_picture(words: str, drawn: MimeBundle) -> MimeBundle:
    """Return words and a picture, also together as HTML.

    The picture is an image in the HTML, since a notebook that is not trusted shows no inline SVG.
    """
    html = f"<pre>{escape(words)}</pre>"
    if _SVG in drawn:
        data = b64encode(drawn[_SVG].encode()).decode()
        html += (
            f'<img alt="{escape(words.partition(chr(10))[0])}" style="max-width:100%" '
            f'src="data:image/svg+xml;base64,{data}">'
        )
    return {_TEXT: words, _HTML: html, **drawn}
