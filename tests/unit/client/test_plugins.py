"""Retrievers of frameworks before a server that answers as it is told to."""

import asyncio
import copy
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from client_parts import FOUND, HIT, problem
from loopback import LoopbackServer

from callslip.errors import CollectionNotFound, InvalidFilter, InvalidRequest
from callslip.plugins.conditions import Condition, Group, having


class Handler(BaseHTTPRequestHandler):
    """Keeps what is asked, answers FOUND or a problem."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((body, self.headers.get("Authorization")))  # type: ignore[attr-defined]
        wrong = body["collection"] == "none"
        answer = problem(CollectionNotFound).content if wrong else json.dumps(FOUND).encode()
        self.send_response(404 if wrong else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class FakeServer(LoopbackServer):
    """Answers FOUND to every search."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.requests: list[tuple[dict[str, Any], str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def backend() -> Iterator[FakeServer]:
    with FakeServer() as served:
        yield served


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "callslip.plugins.haystack")
    for name in ("CALLSLIP_API__URL", "CALLSLIP_API__KEY"):
        monkeypatch.delenv(name, raising=False)


ALL = {
    **{"tenant": "north", "alpha": 0.5, "fusion": "rrf", "method": "cosine", "vector_name": "v"},
    **{"horizon": 0.5, "operation_level": "every", "parent_strategy": "include"},
    **{"ranking": {"rerank": False}, "explain": True, "as_of": "2020-01-01"},
}
SENT = {**ALL, "ranking": {"rerank": False, "exploration_ratio": 0.0}}
"""A plug-in's search does not explore."""

HAVING = {"having_all": {"year >=": 2024}, "having_any": {"lang in": ["en", "ko"]}}


def assert_known(metadata: dict[str, Any]) -> None:
    for name in ("document_id", "chunk_id", "title", "filename", "heading", "span", "score"):
        assert metadata[name] == HIT[name]
    assert metadata["legs"]["keyword"] == {"rank": 1, "score": 2.0}
    assert metadata["trace_id"] == "t"


def test_langchain(backend: FakeServer) -> None:
    pytest.importorskip("langchain_core")
    from callslip.plugins.langchain import CallslipRetriever

    made = CallslipRetriever(collection="main", url=backend.url, key="sesame", k=3, **ALL | HAVING)
    [document] = made.invoke("leave?")
    assert (document.page_content, document.id) == (HIT["text"], "c")
    assert document.metadata["source"] == "leave.md"
    assert_known(document.metadata)
    [again] = asyncio.run(made.ainvoke("leave?", k=1, as_of="now"))
    assert again == document
    sent = {"collection": "main", "query": "leave?", "top": 3, **SENT, **HAVING}
    assert backend.requests[0] == (sent, "Bearer sesame")
    assert backend.requests[1][0] == sent | {"top": 1, "as_of": "now"}
    assert "sesame" not in repr(made) + str(made.to_json())
    assert copy.deepcopy(made) == made
    assert len(made.batch(["a", "b", "c"])) == 3
    with pytest.raises(InvalidRequest, match="no option 'colour'"):
        made.invoke("leave?", colour="blue")
    with pytest.raises(CollectionNotFound):
        CallslipRetriever(collection="none", url=backend.url).invoke("leave?")
    with pytest.raises(InvalidRequest, match="no address"):
        CallslipRetriever(collection="main", url="notes").invoke("leave?")


@pytest.mark.long
def test_llama_index(backend: FakeServer) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
    from llama_index.core.schema import MetadataMode, QueryBundle
    from llama_index.core.vector_stores import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
    )

    from callslip.plugins.llama_index import CallslipRetriever

    filters = MetadataFilters(
        filters=[
            MetadataFilter(key="year", value=2024, operator=FilterOperator.GTE),
            MetadataFilters(
                filters=[MetadataFilter(key="lang", value=word) for word in ("en", "ko")],
                condition=FilterCondition.OR,
            ),
        ]
    )
    made = CallslipRetriever(
        "main", url=backend.url, key="sesame", similarity_top_k=3, filters=filters, **ALL
    )
    [found] = made.retrieve("leave?")
    assert (found.score, found.node.node_id, found.node.get_content()) == (0.5, "c", HIT["text"])
    assert_known(found.node.metadata)
    assert found.node.ref_doc_id == "d"
    assert found.node.get_content(MetadataMode.LLM).count(": ") == 3
    [again] = asyncio.run(made.aretrieve(QueryBundle("leave?")))
    assert again == found
    sent = {"collection": "main", "query": "leave?", "top": 3, **SENT, **HAVING}
    assert backend.requests == [(sent, "Bearer sesame")] * 2
    synthesizer = get_response_synthesizer(llm=MockLLM(), response_mode=ResponseMode.COMPACT)
    answer = RetrieverQueryEngine(made, response_synthesizer=synthesizer).query("leave?")
    assert HIT["text"] in str(answer)
    assert answer.source_nodes[0].node.node_id == "c"
    with pytest.raises(InvalidRequest, match="no option 'colour'"):
        CallslipRetriever("main", colour="blue")
    wrong = [
        MetadataFilters(filters=[MetadataFilter(key="a", value=1, operator="text_match")]),
        MetadataFilters(filters=[filters], condition="not"),
        MetadataFilters(filters=[filters, filters.filters[1]]),
    ]
    for each in wrong:
        with pytest.raises(InvalidFilter, match="no words for"):
            CallslipRetriever("main", filters=each)


def test_haystack(backend: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("haystack")
    from haystack import Pipeline
    from haystack.components.builders import PromptBuilder
    from haystack.utils import Secret

    from callslip.plugins.haystack import CallslipRetriever

    monkeypatch.setenv("SERVER_KEY", "sesame")
    filters = {
        "operator": "AND",
        "conditions": [
            {"field": "meta.year", "operator": ">=", "value": 2024},
            {
                "operator": "OR",
                "conditions": [
                    {"field": "lang", "operator": "==", "value": word} for word in ("en", "ko")
                ],
            },
        ],
    }
    key = Secret.from_env_var("SERVER_KEY")
    made = CallslipRetriever("main", url=backend.url, key=key, top_k=3, filters=filters, **ALL)
    [document] = made.run("leave?")["documents"]
    assert (document.content, document.id, document.score) == (HIT["text"], "c", 0.5)
    assert_known(document.meta)
    sent = {"collection": "main", "query": "leave?", "top": 3, **SENT, **HAVING}
    assert backend.requests[-1] == (sent, "Bearer sesame")

    template = "{% for each in documents %}{{ each.content }}{% endfor %}{{ question }}"
    pipeline = Pipeline()
    pipeline.add_component("retriever", made)
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    written = pipeline.dumps()
    assert "sesame" not in written
    output = Pipeline.loads(written).run(
        {
            "retriever": {"query": "leave?", "top_k": 1, "as_of": "now", "filters": {}},
            "prompt": {"question": "leave?"},
        }
    )
    assert output["prompt"]["prompt"] == f"{HIT['text']}leave?"
    plain = {name: at for name, at in sent.items() if name not in HAVING}
    assert backend.requests[-1] == (plain | {"top": 1, "as_of": "now"}, "Bearer sesame")

    awaited: Any = asynchronous()
    awaited.add_component("retriever", CallslipRetriever("main", url=backend.url))
    found = asyncio.run(awaited.run_async({"retriever": {"query": "leave?"}}))
    assert found["retriever"]["documents"][0].content == HIT["text"]

    wrong: Any
    for wrong in (
        {"operator": "NOT", "conditions": []},
        {"operator": "AND"},
        {"field": "a"},
        {"field": "a", "operator": "like", "value": 1},
        {"operator": "AND", "conditions": ["lang == en"]},
        "lang == en",
    ):
        with pytest.raises(InvalidFilter, match="no words for"):
            CallslipRetriever("main", filters=wrong)
    with pytest.raises(CollectionNotFound):
        CallslipRetriever("none", url=backend.url).run("leave?")


def asynchronous() -> Any:
    """A pipeline that can be awaited: Haystack 2 has a class of its own for it."""
    import haystack

    return getattr(haystack, "AsyncPipeline", haystack.Pipeline)()


def test_conditions_become_two_groups_or_are_refused() -> None:
    a, b = Condition("a", ">", 1), Condition("b", "==", 2)
    assert having(a) == ({"a >": 1}, None)
    assert having(Group(False, (a, Group(False, (b,))))) == ({"a >": 1, "b ==": 2}, None)
    assert having(Group(True, (a, Group(True, (b, b))))) == (None, {"a >": 1, "b in": [2, 2]})
    assert having(Group(True, (Group(False, (a,)),))) == ({"a >": 1}, None)
    assert having(Group(False, ())) == (None, None)
    not_two = Group(False, (Condition("a", "!=", 1), Condition("a", "not-in", [2, 3])))
    assert having(not_two) == ({"a not-in": [1, 2, 3]}, None)
    either = Group(True, (a, b))
    for tree in (
        Group(False, (either, either)),
        Group(True, (a, Group(False, (a, b)))),
        Group(False, (a, Condition("a", ">", 2))),
        Group(False, (b, Condition("b", "==", 3))),
    ):
        with pytest.raises(InvalidFilter, match="no words for"):
            having(tree)
