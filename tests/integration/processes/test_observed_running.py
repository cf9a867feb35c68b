"""A request, its messages, tasks and store calls as one trace; logs; metrics of the rules."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_calls import Api
from otlp_receiver import Kept, OtlpReceiver
from processes import waits_until
from prometheus_client.parser import text_string_to_metric_families
from stack import Stack

DEPLOY = Path(__file__).parents[3] / "deploy"

STEPS = ("extract", "sectionize", "chunk", "enrich", "embed", "upsert")

TEXT = "The zanzibar office opens at nine."


def header(trace_id: str) -> dict[str, str]:
    return {"traceparent": f"00-{trace_id}-{'1' * 16}-01"}


def trace_of(collector: OtlpReceiver, trace_id: str, *names: str) -> dict[str, Kept]:
    """The spans of one trace by name, once it has these names."""

    def spans() -> dict[str, Kept]:
        return {span.name: span for span in collector.spans if span.trace_id == trace_id}

    assert waits_until(lambda: spans().keys() >= set(names), 15), spans().keys()
    return spans()


def path_of(collector: OtlpReceiver, last: Kept) -> list[str]:
    """The names from a span up to the first of its trace."""
    by_id = {span.span_id: span for span in collector.spans}
    names: list[str] = []
    span: Kept | None = last
    while span is not None:
        names.append(span.name)
        span = by_id.get(span.parent)
    return names


def events(stack: Stack, part: str, name: str) -> list[dict[str, Any]]:
    lines = (stack.data_dir / "logs" / f"{part}.log").read_text().splitlines()
    parsed = [json.loads(line) for line in lines if line.startswith("{")]
    return [line for line in parsed if line.get("event") == name]


def test_an_ingestion_and_a_search_are_one_trace_each_and_lines_of_the_log(
    stack: Stack, collector: OtlpReceiver
) -> None:
    ingestion, search = "a" * 31 + "1", "b" * 31 + "2"
    with Api(stack) as api:
        api.http.headers.update(header(ingestion))
        document_id = api.live(text=TEXT, name="hours")
        api.http.headers.update(header(search))
        assert api.search("when does the zanzibar office open?").json()["hits"]

        route = "POST /v1/collections/<string:name>/documents"
        tasks = [f"ingest.{step}" for step in STEPS]
        spans = trace_of(collector, ingestion, route, *tasks, "chroma batch_upsert_chunks")
        path = path_of(collector, spans["chroma batch_upsert_chunks"])
        assert path[:3] == ["chroma batch_upsert_chunks", "ingest.upsert", "queue upsert"]
        assert path[-3:] == ["ingest.extract", "queue ingest", route]
        for step in STEPS:
            assert spans[f"ingest.{step}"].attributes["callslip.document_id"] == document_id
        above = ("search.query", "queue search", "POST /v1/search")
        store_calls = ("chroma nearest", "chroma keyword_query")
        spans = trace_of(collector, search, *store_calls, *above)
        for store_call in store_calls:
            assert path_of(collector, spans[store_call]) == [store_call, *above]

        steps = [e for e in events(stack, "ingest", "step") if e["document_id"] == document_id]
        assert [e["step"] for e in steps if e["outcome"] == "done"] == list(STEPS)
        (ended,) = (
            e
            for e in events(stack, "ingest", "document")
            if e["version"] == 1 and e["document_id"] == document_id
        )
        assert (ended["outcome"], ended["w3c_trace_id"]) == ("live", ingestion)
        (searched,) = (
            e for e in events(stack, "search", "search") if e.get("w3c_trace_id") == search
        )
        assert (searched["outcome"], searched["hits"]) == ("answered", 1)
        (requested,) = (
            e
            for e in events(stack, "api", "request")
            if e.get("w3c_trace_id") == search and e["route"] == "/v1/search"
        )
        assert requested["status"] == 200
        assert requested["ms"] >= searched["ms"]
        for log in (stack.data_dir / "logs").iterdir():
            assert "zanzibar" not in log.read_text()
            assert "\x1b[" not in log.read_text() or log.name == "chroma.log"
    assert b"zanzibar" not in b"".join(collector.bodies)


def expressions() -> list[str]:
    """Every expression of the alert rules and of the dashboard."""
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    panels = json.loads((DEPLOY / "grafana" / "callslip.json").read_text())["panels"]
    return [rule["expr"] for rule in rules] + [t["expr"] for p in panels for t in p["targets"]]


def test_every_metric_of_the_rules_and_the_dashboard_is_exported(stack: Stack) -> None:
    with Api(stack) as api:
        text = api.http.get("/metrics").text
    names = set()
    for family in text_string_to_metric_families(text):
        ends = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
        names |= {family.name + end for end in ends.get(family.type, ("",))}
    for expression in expressions():
        metrics = set(re.findall(r"\bcallslip_\w+", expression))
        assert metrics, expression
        assert metrics <= names, (expression, metrics - names)


FUNCTIONS = {"sum", "rate", "increase", "histogram_quantile", "by"}


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_is_sane(expression: str) -> None:
    open_brackets: list[str] = []
    for sign in re.sub(r'"[^"]*"', "", expression):
        if sign in "([{":
            open_brackets.append({"(": ")", "[": "]", "{": "}"}[sign])
        elif sign in ")]}":
            assert open_brackets.pop() == sign
    assert not open_brackets
    assert set(re.findall(r"\b([a-z_]+) ?\(", expression)) <= FUNCTIONS
    counters = re.findall(r"callslip_\w+_(?:total|bucket|sum|count)\b(?:{[^}]*})?(.?)", expression)
    assert all(after == "[" for after in counters), "a counter is read without its range"


def test_every_alert_has_a_severity_a_summary_and_advice() -> None:
    for rule in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "advice"}
