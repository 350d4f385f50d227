"""`graphloop otel`: the spans of a stored run, printed or sent to a trace backend."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import STORE, graphloop, here, refused, shown
from tests.unit.cli.pay_desk import parked, run_ids
from tests.wire_server import Answer, WireServer

TREE = """\
invoke_agent desk · parked · 10 tokens in, 5 out
├── chat payer · 10 tokens in, 5 out
└── execute_tool payer
    └── invoke_agent payer · parked · 10 tokens in, 5 out
        ├── chat pay · 10 tokens in, 5 out
        └── graphloop.ask
invoke_agent desk · resumed · completed · 30 tokens in, 9 out
├── execute_tool payer
│   └── invoke_agent payer · resumed · completed · 10 tokens in, 3 out
│       ├── graphloop.ask
│       ├── execute_tool pay
│       └── chat pay · 10 tokens in, 3 out
└── chat payer · 10 tokens in, 1 out
"""
JSON_EXPORTER = """
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class Lines(SpanExporter):
    def export(self, spans):
        with open("spans.jsonl", "a") as file:
            file.writelines(span.to_json(indent=None) + "\\n" for span in spans)
        return SpanExportResult.SUCCESS

class Down(SpanExporter):
    def export(self, spans):
        return SpanExportResult.FAILURE
"""
ENTRY_POINTS = """
[opentelemetry_traces_exporter]
lines = json_exporter:Lines
down = json_exporter:Down
"""

pytestmark = pytest.mark.usefixtures("pay_desk")


@pytest.fixture
def exporters(pay_desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package with two exporters, and return the file that one of them writes."""
    about = pay_desk / "site" / "json_exporter-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Name: json_exporter\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (about.parent / "json_exporter.py").write_text(JSON_EXPORTER, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(about.parent), *sys.path])
    return pay_desk / "spans.jsonl"


def test_the_spans_of_a_run_and_its_children_are_printed_as_a_tree() -> None:
    """A person without a trace backend sees where the time and the tokens went."""
    run_id = parked("team")
    shown("resume", run_id, "--approve", "always", *STORE)

    tree = shown("otel", run_id[:8], *STORE, "--print")

    assert TREE == re.sub(r"^ *\d+\.\d\d s  ", "", tree, flags=re.MULTILINE)


def test_the_environment_names_the_exporter_and_a_run_sent_twice_has_the_same_ids(
    exporters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that gets a run twice shows it once, and no sampler drops the run."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "lines")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "desk-service")
    run_id = parked("team")

    sent = shown("otel", run_id, *STORE)
    shown("otel", run_id, *STORE)

    lines = exporters.read_text(encoding="utf-8").splitlines()
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert f"sent {len(first)} spans by lines\n" == sent
    assert first == second
    spans = [json.loads(line) for line in first]
    assert ["invoke_agent desk"] == [span["name"] for span in spans if not span["parent_id"]]
    assert {"desk-service"} == {span["resource"]["attributes"]["service.name"] for span in spans}
    assert {run_id} == {span["attributes"]["gen_ai.conversation.id"] for span in spans}


def test_a_backend_that_takes_nothing_is_a_failure(
    exporters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "down")

    done = here("otel", parked(), *STORE)

    assert (Status.FAILED, "") == (done.returncode, done.stdout)
    assert "the exporter 'down' could not deliver" in done.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in done.stderr


async def test_spans_reach_a_collector_over_http(
    pay_desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter of OpenTelemetry's own package sends them to the endpoint of the environment."""
    reason = "opentelemetry-exporter-otlp-proto-http (extra `dev`) is not installed"
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=reason)
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    asked = await asyncio.to_thread(graphloop, "run", "pay", *STORE, cwd=pay_desk)
    assert Status.PARKED == asked.returncode, asked.stderr
    (run_id,) = await asyncio.to_thread(run_ids, "runs.db")
    async with WireServer([Answer([], 200, {"content-type": "application/x-protobuf"})]) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=desk")
        done = await asyncio.to_thread(graphloop, "otel", run_id, *STORE, cwd=pay_desk)

    assert Status.OK == done.returncode, done.stderr
    assert done.stdout == "sent 3 spans by otlp_proto_http\n"
    (request,) = server.requests
    assert ("/v1/traces", "desk") == (request.path, request.headers["x-team"])
    taken = service.ExportTraceServiceRequest()
    taken.ParseFromString(request.body)
    spans = taken.resource_spans[0].scope_spans[0].spans
    assert {"invoke_agent", "chat", "graphloop.ask"} == {span.name.split()[0] for span in spans}


@pytest.mark.parametrize("part", ["", ".sdk"])
def test_a_missing_package_is_named(part: str) -> None:
    """The help needs no package, because it says how to get one."""
    run_id = parked()

    done = graphloop("otel", run_id, *STORE, cwd=Path.cwd(), missing=f"opentelemetry{part}")

    assert (Status.USAGE, "") == (done.returncode, done.stdout)
    assert "needs opentelemetry.sdk" in done.stderr
    assert "which is not installed. Fix: pip install 'graphloop[otel]' opentele" in done.stderr
    assert Status.OK == graphloop("otel", "--help", missing=f"opentelemetry{part}").returncode


def test_wrong_surroundings_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that says "sent" must have sent something."""
    run_id = parked("team")
    (child,) = set(run_ids("runs.db")) - {run_id}

    assert f"is a part of run '{run_id}'" in refused("otel", child, *STORE)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")
    message = refused("otel", run_id, *STORE)
    assert "expected an installed exporter, found 'smoke'; installed are: console" in message
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert "expected OpenTelemetry to be on" in refused("otel", run_id, *STORE)
