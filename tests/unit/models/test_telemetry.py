"""Spans of answers: what a collector is told, and that nobody else is, whatever it does."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_store import MemoryStore
from openai_server import OpenAIServer, Scripted, fails, reply
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from otlp_receiver import Kept, OtlpReceiver
from pydantic import ValidationError
from search_parts import ingest, made_of, make

from callslip.agent.agent import Agent
from callslip.agent.budget import Budgeted
from callslip.agent.conversations import Threads, make_saver
from callslip.agent.graph import NODES
from callslip.agent.messages import Answer, AnswerRequest
from callslip.agent.reports import NodeReport
from callslip.config.sections.agent import AgentSettings
from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import LlmSettings, Settings, TelemetrySettings
from callslip.errors import QueryTooLong
from callslip.models.language_models.client import LanguageModel
from callslip.models.registry import make_spans
from callslip.models.telemetry import MOST_IN_A_BATCH, Spans
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger
from callslip.stores.records import Vector

pytest_plugins = ["openai_fixtures"]

QUESTION = "where is the zanzibar kept"

WRITTEN = {"answerable": True, "sentences": [{"text": "text of c1", "citations": [1]}]}

DECLINED = {"answerable": False, "sentences": []}

REPHRASED = {"query": "quokka kept"}

PRIVATE = (
    b"zanzibar",
    b"Zanzibar",
    b"quokka",
    b"text of",
    b"Passages stand",
    b"holiday",
    b"wilhelmina",
)
"""What no span may hold: of question, passage, title, prompt, answer, thread and tenant."""


class East:
    """Every text lies in the east."""

    model, dimension, lexical_only = "tiny", 2, False

    def query(self, _text: str) -> Vector:
        return np.array((1.0, 0.0), np.float32)

    def passages(self, texts: list[str]) -> Any:
        return np.array([(1.0, 0.0)] * len(texts), np.float32)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as server:
        yield server


@contextmanager
def answers(
    ledger: Ledger, tmp_path: Path, spans: Spans | None, server: OpenAIServer | None = None
) -> Iterator[Agent]:
    """An agent that approves whatever it found, over a passage of a tenant."""
    engine = made_of(
        ledger, MemoryStore(), SearchSettings(), agent=AgentSettings(confidence_threshold=0.0)
    )
    engine.embedder = East()  # type: ignore[assignment]
    make(engine, "flats", tenants=("wilhelmina",))
    ingest(
        engine, "Zanzibar", ["c1"], collection="flats", tenant="wilhelmina", words="zanzibar kept"
    )
    threads = Threads(make_saver("sqlite://", tmp_path), ledger.conversations)
    learning = Learning(ledger, engine.settings.memory, engine.settings.traces)

    def budgeted(collection: str, tenant: str) -> Budgeted | None:
        if server is None:
            return None
        llm = LlmSettings(base_url=server.url, model="small", timeout_seconds=2)
        usage = ledger.model_usage
        return Budgeted(LanguageModel(llm), usage, llm, collection, tenant, spans=spans)

    yield Agent(engine.settings, engine, learning, threads, budgeted, spans)
    threads.saver.conn.close()  # type: ignore[attr-defined]


def ask(agent: Agent, question: str = QUESTION, **more: Any) -> Answer:
    given = {"collection": "flats", "tenant": "wilhelmina", "question": question} | more
    return agent.answer(AnswerRequest.model_validate(given))


@contextmanager
def sending(url: str, **more: Any) -> Iterator[Spans]:
    made = make_spans(Settings(telemetry=TelemetrySettings(otlp_endpoint=url, **more)))
    assert made is not None
    with closing(made):
        yield made


def output(ledger: Ledger, answer: Answer) -> Any:
    """What the stored trace says of the answer."""
    return ledger.searches.trace(answer.trace_id, keep_seconds=60).body["answer"]


def names(spans: list[Kept], within: Kept) -> list[str]:
    return [span.name for span in spans if span.parent == within.span_id]


def test_an_answer_is_a_trace_of_its_nodes_and_calls(
    ledger: Ledger, tmp_path: Path, collector: OtlpReceiver, openai_server: OpenAIServer
) -> None:
    openai_server.script.append(reply(WRITTEN, usage=(31, 7)))
    with (
        sending(collector.url) as spans,
        answers(ledger, tmp_path, spans, openai_server) as agent,
    ):
        answer = ask(agent, thread_id="holiday")
    kept = collector.spans
    root = kept[0]
    assert (root.name, root.parent, root.kind) == ("invoke_agent callslip", "", 1)
    assert {span.trace_id for span in kept} == {root.trace_id}
    assert names(kept, root) == list(NODES)
    chat = next(span for span in kept if span.name == "chat small")
    assert chat.parent == next(span.span_id for span in kept if span.name == "answerer")
    assert len(kept) == len(NODES) + 2
    (conversation,) = ledger.conversations.stale(time.time() + 10)
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "callslip",
        "gen_ai.conversation.id": conversation,
        "gen_ai.data_source.id": "flats",
        "gen_ai.usage.input_tokens": 31,
        "gen_ai.usage.output_tokens": 7,
        "callslip.answer.trace_id": answer.trace_id,
        "callslip.answer.answered": True,
        "callslip.answer.reason": "supported",
        "callslip.answer.confidence": answer.verdict.confidence,
        "callslip.answer.written_by": "model",
        "callslip.answer.attempts": 1,
    }
    assert chat.kind == 3
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.request.max_tokens": 800,
        "gen_ai.response.model": "small-2026",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 31,
        "gen_ai.usage.output_tokens": 7,
    }
    by_name = {span.name: span.attributes for span in kept}
    assert by_name["candidate_search"] == {
        "callslip.node.name": "candidate_search",
        "callslip.node.attempt": 0,
        "callslip.node.candidates": 1,
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "flats",
    }
    assert by_name["rerank_diversify"]["callslip.node.scores"]
    assert "callslip.node.weights" not in by_name["facet_planner"]
    assert root.service["service.name"] == "callslip"
    assert set(collector.paths) == {"/v1/traces"}
    assert output(ledger, answer)["w3c_trace_id"] == root.trace_id


def test_names_are_those_of_the_conventions() -> None:
    known = {
        value
        for module in (gen_ai_attributes, error_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    answer_text = (Path(__file__).parents[3] / "agent" / "spans.py").read_text()
    used = set(re.findall(r'"(gen_ai\.[a-z_.]+)"', answer_text))
    assert len(used) > 15
    assert used <= known


@pytest.mark.parametrize("thread", [None, "holiday"])
def test_no_text_is_told_unless_it_is_asked_for(
    thread: str | None,
    ledger: Ledger,
    tmp_path: Path,
    collector: OtlpReceiver,
    openai_server: OpenAIServer,
) -> None:
    openai_server.script += [reply(DECLINED), reply(REPHRASED), fails(400), reply(WRITTEN)]
    with (
        sending(collector.url) as spans,
        answers(ledger, tmp_path, spans, openai_server) as agent,
    ):
        ask(agent, thread_id=thread)
        ask(agent, thread_id=thread)
        with pytest.raises(QueryTooLong):
            ask(agent, "zanzibar " * 500, thread_id=thread)
    sent = b"".join(collector.bodies)
    assert len(openai_server.requests) >= 3
    assert [s.attributes["callslip.node.attempt"] for s in collector.spans if s.name == "planner"][
        :2
    ] == [0, 1]
    assert [word for word in PRIVATE if word in sent] == []


def test_text_is_told_where_it_is_asked_for(
    ledger: Ledger, tmp_path: Path, collector: OtlpReceiver, openai_server: OpenAIServer
) -> None:
    openai_server.script.append(reply(WRITTEN))
    with (
        sending(collector.url, text=True, service_name="desk 7") as spans,
        answers(ledger, tmp_path, spans, openai_server) as agent,
    ):
        ask(agent)
    by_name = {span.name: span.attributes for span in collector.spans}
    root, chat = by_name["invoke_agent callslip"], by_name["chat small"]
    assert QUESTION in root["gen_ai.input.messages"]
    assert "text of" in root["gen_ai.output.messages"]
    assert "text of c1" in chat["gen_ai.input.messages"]
    assert "passages" in chat["gen_ai.system_instructions"].lower()
    assert "text of c1" in chat["gen_ai.output.messages"]
    assert by_name["rerank_diversify"]["gen_ai.retrieval.query.text"] == QUESTION
    assert "text of c1" in by_name["rerank_diversify"]["gen_ai.retrieval.documents"]
    assert collector.spans[0].service["service.name"] == "desk 7"


@pytest.mark.parametrize(
    ("sent", "error", "tokens"),
    [
        (fails(500), "language-model-down", None),
        (fails(401), "settings-error", None),
        (reply("no JSON", usage=(31, 7)), "bad-reply", 31),
    ],
)
def test_a_call_that_failed_is_named_by_its_error(
    sent: Scripted,
    error: str,
    tokens: int | None,
    ledger: Ledger,
    tmp_path: Path,
    collector: OtlpReceiver,
    openai_server: OpenAIServer,
) -> None:
    openai_server.always = sent
    with (
        sending(collector.url) as spans,
        answers(ledger, tmp_path, spans, openai_server) as agent,
    ):
        assert ask(agent).written_by == "extracts"
    by_name = {span.name: span for span in collector.spans}
    chat = by_name["chat small"]
    assert (chat.status, chat.attributes["error.type"]) == (2, error)
    assert chat.attributes.get("gen_ai.usage.input_tokens") == tokens
    assert by_name["invoke_agent callslip"].status == 0


def test_a_question_that_is_refused_is_a_trace_of_its_own(
    ledger: Ledger, tmp_path: Path, collector: OtlpReceiver
) -> None:
    with sending(collector.url) as spans, answers(ledger, tmp_path, spans) as agent:
        for _ in range(2):
            with pytest.raises(QueryTooLong):
                ask(agent, "zanzibar " * 500)
    assert [span.name for span in collector.spans] == ["invoke_agent callslip", "listener"] * 2
    assert {span.attributes["error.type"] for span in collector.spans} == {QueryTooLong.slug}
    assert len({span.trace_id for span in collector.spans}) == 2


def test_spans_come_by_themselves_and_at_the_end(collector: OtlpReceiver) -> None:
    with sending(collector.url) as spans:
        with spans.span("first", {}):
            pass
        assert [span.name for span in collector.eventually(1)] == ["first"]
        with spans.span("last", {}):
            pass
    assert [span.name for span in collector.spans] == ["first", "last"]


@pytest.mark.long
@pytest.mark.parametrize("collector_is", ["gone", "hanging", "refusing"])
def test_a_collector_that_takes_nothing_costs_an_answer_nothing(
    collector_is: str, ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with OtlpReceiver(503, wait=30 if collector_is == "hanging" else 0) as server:
        if collector_is == "gone":
            server.server_close()
        with answers(ledger, tmp_path, None) as plain:
            ask(plain)
            began = time.perf_counter()
            for _ in range(5):
                ask(plain)
            without = time.perf_counter() - began
        spans = make_spans(Settings(telemetry=TelemetrySettings(otlp_endpoint=server.url)))
        assert spans is not None
        plain._spans = spans
        began = time.perf_counter()
        for _ in range(5):
            assert ask(plain).answered
        assert time.perf_counter() - began < without + 1.0
        with spans.span("full", {}):
            for _ in range(3 * MOST_IN_A_BATCH):
                with spans.span("many", {}):
                    pass
        began = time.perf_counter()
        spans.close()
        assert time.perf_counter() - began < 6.0
    lost = [record for record in caplog.records if record.name == "callslip.models.telemetry"]
    assert len(lost) == 1
    assert "are lost until" in lost[0].getMessage()


def test_a_redirect_is_not_followed(collector: OtlpReceiver) -> None:
    with OtlpReceiver(307) as other:
        other.answer_headers["Location"] = f"{collector.url}/v1/traces"
        with sending(other.url) as spans, spans.span("one", {}):
            pass
    assert (len(other.bodies), collector.bodies) == (1, [])


def test_what_the_environment_says_of_other_collectors_is_not_heard(
    collector: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OtlpReceiver() as other:
        for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{other.url}/v1/traces")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of-another")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere")
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "another")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=secret")
        assert make_spans(Settings()) is None
        with sending(f"{collector.url}/v1/traces/") as spans, spans.span("one", {}):
            pass
    assert other.bodies == []
    (one,) = collector.spans
    assert one.service == {
        "service.name": "callslip",
        "service.version": one.service["service.version"],
    }
    assert collector.paths == ["/v1/traces"]
    assert "api-key" not in {name.lower() for name in collector.headers[0]}


@pytest.mark.long
def test_without_a_collector_nothing_is_made_or_loaded(ledger: Ledger, tmp_path: Path) -> None:
    code = (
        "import sys, callslip.agent.agent, callslip.agent.budget\n"
        "from callslip.config.settings import Settings\n"
        "from callslip.models.registry import make_spans\n"
        "assert make_spans(Settings()) is None\n"
        "made = ('callslip.models.telemetry', 'opentelemetry.exporter.otlp')\n"
        "sys.exit(any(m.startswith(made) for m in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with answers(ledger, tmp_path, None) as agent:
        reports: list[NodeReport] = []
        request = AnswerRequest(collection="flats", tenant="wilhelmina", question=QUESTION)
        answer = agent.answer(request, reports.append)
    assert "w3c_trace_id" not in output(ledger, answer)
    assert [report.node for report in reports] == list(NODES)


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://x", "http://", "grpc://127.0.0.1:4317"])
def test_an_endpoint_that_is_none_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ValidationError, match="is no http or https address"):
        TelemetrySettings(otlp_endpoint=url)
