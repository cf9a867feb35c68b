"""Answers of a running stack: over HTTP and the command line, as a stream, in conversations."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api_calls import Api, assert_problem
from click.testing import CliRunner
from openai_server import OpenAIServer, reply, slow
from stack import MakeStack, Stack

from callslip.cli.main import main

NOTES = {
    "leave": "# Parental leave\n\nEach parent may take parental leave of up to three years for each"
    " child. For twins the leave is five years.\n\nThe division approves the leave.\n",
    "library": "# Library\n\nBooks are lent for two weeks. Films are lent for three days.\n",
    "grant": "# 출산 장려금\n\n출산 장려금은 첫째 아이 100만 원입니다. 쌍둥이는 50만 원을 더"
    " 받습니다.\n",
    "waste": "# Bulky waste\n\nA sofa costs 8,000 won. It is collected on Thursday.\n",
}
pytest_plugins = ["openai_fixtures"]

QUESTION = "how long is parental leave?"


@pytest.fixture(scope="module")
def filled(stack: Stack) -> Iterator[Api]:
    with Api(stack) as api:
        dated = {"properties": {"valid_from": "2026-01-01"}}
        api.all_live({"name": f"{name}.md", "text": text} | dated for name, text in NOTES.items())
        yield api


def ask(api: Api, question: str, **more: Any) -> httpx.Response:
    return api.http.post(
        "/v1/answer", json={"collection": api.collection, "question": question} | more
    )


def answered(api: Api, question: str, **more: Any) -> dict[str, Any]:
    answer = ask(api, question, **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.long
def test_an_answer_cites_what_the_document_says_word_for_word(filled: Api) -> None:
    answer = answered(filled, QUESTION)
    assert answer["answered"], answer["verdict"]
    assert "up to three years" in answer["text"]
    assert "(in force since 2026-01-01) [1]" in answer["text"]
    for citation in answer["citations"]:
        path = f"/v1/documents/{citation['document_id']}/text"
        text = filled.http.get(path, params=citation["span"]).json()["text"]
        assert (text, citation["version"]) == (citation["quote"], 1)
        assert filled.http.get(citation["url"]).status_code == 200
    korean = answered(filled, "출산 장려금은 얼마인가요?")
    assert "100만 원" in korean["text"]
    assert "(2026-01-01부터 시행)" in korean["text"]


def test_what_the_documents_do_not_say_is_not_answered(filled: Api) -> None:
    answer = answered(filled, "What is the speed of light in glass?")
    assert not answer["answered"]
    assert answer["text"].startswith("No sure answer in these documents.")
    assert (answer["citations"], answer["sentences"]) == ([], [])
    assert answer["nearest"]
    assert 1 <= len(answer["attempts"]) <= 3
    before = answered(filled, QUESTION, as_of="2020-01-01")
    assert not before["answered"], "it was not in force then"
    assert before["verdict"]["reason"] == "no-passages"


def test_a_stream_tells_each_node_and_then_the_answer(filled: Api) -> None:
    kinds, nodes = [], []
    body = {"collection": filled.collection, "question": QUESTION}
    with filled.http.stream(
        "POST", "/v1/answer", json=body, headers={"Accept": "text/event-stream"}
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
            elif line.startswith("data: ") and kinds[-1] == "node":
                nodes.append(json.loads(line.removeprefix("data: ")))
    assert [kind for kind in kinds if kind != "sentence"] == ["node"] * 10 + ["answer"]
    assert "sentence" in kinds
    assert [node["node"] for node in nodes][:2] == ["listener", "planner"]
    assert nodes[-1]["node"] == "memory_updater"
    assert "leave" not in json.dumps([node["facts"] for node in nodes])


def test_a_conversation_is_followed_shown_and_forgotten(filled: Api) -> None:
    path = f"/v1/collections/{filled.collection}/conversations/mine"
    assert_problem(filled.http.get(path), 404, "thread-not-found")
    answered(filled, QUESTION, thread_id="mine")
    twins = answered(filled, "and for twins?", thread_id="mine")
    assert twins["understood"] == "how long is parental leave for twins?"
    assert "five years" in twins["text"]
    turns = filled.http.get(path).json()["turns"]
    assert [turn["question"] for turn in turns] == [QUESTION, "and for twins?"]
    assert filled.http.delete(path).status_code == 200
    assert_problem(filled.http.get(path), 404, "thread-not-found")
    alone = answered(filled, "and for twins?", thread_id="mine")
    assert alone["understood"] == "and for twins?"


def test_feedback_is_about_citations_and_the_trace_has_every_node(filled: Api) -> None:
    answer = answered(filled, "how long are films lent?")
    assert answer["answered"]
    cited = [citation["chunk_id"] for citation in answer["citations"]]
    given = {"trace_id": answer["trace_id"], "verdict": "helpful"}
    answer_text = filled.http.post("/v1/feedback", json=given | {"citations": [1]})
    assert answer_text.status_code == 201, answer_text.text
    assert answer_text.json()["chunk_ids"] == cited[:1]
    wrong = filled.http.post("/v1/feedback", json=given | {"citations": [len(cited) + 1]})
    assert_problem(wrong, 400, "invalid-request")
    trace = filled.http.get(f"/debug/trace/{answer['trace_id']}").json()
    nodes = [node["node"] for node in trace["trace"]["answer"]["nodes"]]
    assert nodes[0] == "listener"
    assert nodes[-1] == "validator"
    validated = [report for report in trace["outcomes"] if report["verdict"] == "validated"]
    assert [report["chunk_ids"] for report in validated] == [sorted(set(cited))]
    withdrawn = filled.http.delete(f"/v1/feedback/{answer_text.json()['feedback_id']}")
    assert withdrawn.json()["withdrawn_at"] is not None
    search = filled.search("how long are films lent?", top=1).json()
    bare = {"trace_id": search["trace_id"], "verdict": "helpful"}
    assert_problem(filled.http.post("/v1/feedback", json=bare), 400, "invalid-request")


def test_the_command_asks_in_a_conversation_and_shows_what_it_rests_on(filled: Api) -> None:
    def run(*arguments: str) -> str:
        given = [*arguments, "-c", filled.collection, "--url", str(filled.http.base_url)]
        shown = CliRunner().invoke(main, given)
        assert shown.exit_code == 0, shown.output
        return shown.output

    assert "up to three years" in run("ask", QUESTION, "--thread", "typed")
    found = run("ask", "and for twins?", "--thread", "typed")
    assert "Understood as: how long is parental leave for twins?" in found
    assert "[1] Parental leave" in found
    assert json.loads(run("ask", QUESTION, "--json"))["answered"]
    found = run("conversation", "typed", "--delete")
    assert "and for twins?\n  Understood as: how long is parental leave for twins?\n" in found
    assert found.count("Understood as") == 1


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({"question": "?!"}, "invalid-request"),
        ({"question": "x" * 5000}, "query-too-long"),
        ({"question": "x", "thread_id": "../x"}, "invalid-request"),
        ({"question": "x", "thread_id": ".."}, "invalid-request"),
        ({"question": "x", "as_of": "yesterday"}, "invalid-request"),
        ({"question": "x", "having_all": {"nonsense >": 1}}, "invalid-filter"),
        ({"question": "x", "tenant": "nobody"}, "invalid-request"),
        ({"question": "x", "filters": {}}, "invalid-request"),
        ({"question": 7}, "invalid-request"),
        ({"question": "\ud800"}, "invalid-request"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    filled: Api, body: dict[str, Any], slug: str
) -> None:
    content = json.dumps({"collection": filled.collection} | body)
    sent = filled.http.post(
        "/v1/answer", content=content, headers={"Content-Type": "application/json"}
    )
    assert_problem(sent, 400, slug)


@pytest.mark.long
def test_a_slow_model_holds_up_no_search_and_one_that_lies_is_left_out(
    make_stack: MakeStack, openai_server: OpenAIServer
) -> None:
    settings = {
        "CALLSLIP_LLM__BASE_URL": openai_server.url,
        "CALLSLIP_LLM__MODEL": "scripted",
        "CALLSLIP_LLM__TIMEOUT_SECONDS": "8",
    }
    written = {"text": "Leave is up to three years for each child.", "citations": [1]}
    with Api(make_stack(settings).start()) as api:
        api.all_live({"name": name, "text": text} for name, text in NOTES.items())
        openai_server.always = reply({"answerable": True, "sentences": [written]})
        by_model = answered(api, QUESTION)
        assert by_model["written_by"] == "model", by_model
        assert by_model["usage"]["calls"] == 1
        lie = {"text": "Leave is 99 years.", "citations": [1]}
        openai_server.always = reply({"answerable": True, "sentences": [lie]})
        assert "99" not in answered(api, QUESTION)["text"]
        openai_server.always = slow(6, reply({"answerable": True, "sentences": [written]}))
        threads = [threading.Thread(target=ask, args=(api, QUESTION)) for _ in range(4)]
        for thread in threads:
            thread.start()
        searched = [api.search("books").status_code for _ in range(10)]
        assert set(searched) == {200}
        assert any(thread.is_alive() for thread in threads), "the answers were still waited for"
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/answer", "application/json"),
        ("/v1/feedback", "application/json"),
        ("/page/answer", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_in_broken_chunks_is_refused_by_name(stack: Stack, path: str, kind: str) -> None:
    position = httpx.URL(stack.url)
    head = f"POST {path} HTTP/1.1\r\nHost: {position.host}:{position.port}\r\n"
    head += f"Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((position.host, position.port or 0), timeout=20) as connection:
        connection.sendall(f"{head}zz\r\n{{}}\r\n0\r\n\r\n".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_conversation_of_such_a_name_leads_nowhere_else(filled: Api, name: str) -> None:
    given = ["conversation", name, "--delete", "-c", filled.collection]
    shown = CliRunner().invoke(main, [*given, "--url", str(filled.http.base_url)])
    assert shown.exit_code != 0
    assert "is '.' or '..'" in shown.output
    assert filled.search("books").status_code == 200, "the collection is there"
