"""The Python client: files on their way, waiting for them, streams, lines and pages."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from client_parts import (
    BATCH,
    LOST,
    NODE,
    SOON,
    SUBMITTED,
    Pipe,
    client_of,
    document,
    problem,
    stream,
)

from callslip.client import NO_RETRIES, FolderProgress, Sent, models
from callslip.errors import (
    BacklogFull,
    BrokenFile,
    InvalidRequest,
    PermanentError,
    SearchTimeout,
    ServerDown,
)


def test_a_file_is_sent_part_by_part_and_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "설명서.bin"
    path.write_bytes(b"x" * 300_000)
    output: list[Sent] = []
    client, sent_request = client_of(LOST[0], httpx.Response(202, json=SUBMITTED))
    made = client.upload(
        "main", path, title="Manual", properties={"year": 2024}, on_progress=output.append
    )
    assert made.document_id == "d"
    assert len(sent_request) == 2
    assert (
        sent_request[0].content.count(b"x" * 300_000)
        == sent_request[1].content.count(b"x" * 300_000)
        == 1
    )
    assert b'{"year": 2024}' in sent_request[1].content
    assert "설명서.bin".encode() in sent_request[1].content
    half = len(output) // 2
    assert half > 3
    assert output[:half] == output[half:]
    assert [part.bytes_sent for part in output[:half]] == sorted({p.bytes_sent for p in output})
    assert output[-1] == Sent("설명서.bin", 300_000, 300_000)


def test_a_stream_without_end_is_sent_in_chunks() -> None:
    client, sent_request = client_of(httpx.Response(202, json=SUBMITTED))
    output: list[Sent] = []
    client.upload("main", Pipe(b"text"), filename="a.txt", on_progress=output.append)
    assert sent_request[0].headers["Transfer-Encoding"] == "chunked"
    assert output == [Sent("a.txt", 4, None)]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"text", {}),
        (io.BytesIO(b"text"), {}),
        (io.StringIO("text"), {"filename": "a.txt"}),
        (None, {}),
        (7, {"filename": "a.txt"}),
    ],
)
def test_what_is_no_file_is_refused(content: Any, names: dict[str, str]) -> None:
    client, sent_request = client_of(httpx.Response(202, json=SUBMITTED))
    with pytest.raises(InvalidRequest) as raised:
        client.upload("main", content, **names)
    assert raised.value.advice
    assert sent_request == []


def test_a_file_that_cannot_be_read_says_which(tmp_path: Path) -> None:
    client, _ = client_of(httpx.Response(202, json=SUBMITTED))
    with pytest.raises(PermanentError, match=r"none\.txt"):
        client.upload("main", tmp_path / "none.txt")
    with pytest.raises(PermanentError, match="directory"):
        client.upload("main", str(tmp_path))


def test_a_folder_waits_while_the_server_takes_no_more_and_goes_on_past_what_is_refused(
    tmp_path: Path,
) -> None:
    for name in ("a.txt", "below/b.txt", "c.bin", ".hidden/x.txt", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    full = [3]
    expected: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/batches":
            expected.append(json.loads(request.content)["expected"])
            return httpx.Response(200, json=BATCH)
        if b'filename="c.bin"' in request.content:
            return problem(BrokenFile)
        if b"below/b.txt" in request.content and full[0]:
            full[0] -= 1
            return problem(BacklogFull, **{"Retry-After": "0.01"})
        return httpx.Response(202, json=SUBMITTED)

    client, _ = client_of(answer, retries=NO_RETRIES)
    output: list[FolderProgress] = []
    sent = client.upload_folder("main", tmp_path, on_progress=output.append)
    assert len(sent.submitted) == 3
    assert [(each.name, type(each.error)) for each in sent.refused] == [("c.bin", BrokenFile)]
    assert expected == [4, 3]
    assert [(t.done, t.name) for t in output if t.waiting_seconds] == [(1, "below/b.txt")] * 3
    assert output[-1] == FolderProgress(4, 4, "d.txt")
    with pytest.raises(InvalidRequest, match="no file that fits"):
        client.upload_folder("main", tmp_path, pattern="*.pdf")
    with pytest.raises(InvalidRequest, match=r"known as 'a\.txt'"):
        client.upload_folder("main", [tmp_path / "a.txt", tmp_path / "below" / ".." / "a.txt"])


def test_waiting_ends_when_it_is_live_or_says_why_not() -> None:
    output: list[str] = []
    client, _ = client_of(document("waiting"), document("working"), document("live"))
    live = client.wait_until_live("d", on_progress=lambda at: output.append(at.state))
    assert live.state == "live"
    assert output == ["waiting", "working", "live"]
    failed = {"type": "broken-file", "title": "Broken", "detail": "it is cut", "advice": "save it"}
    client, _ = client_of(document("failed", error=failed))
    with pytest.raises(BrokenFile, match="it is cut"):
        client.wait_until_live(models.Submitted.model_validate(SUBMITTED))
    client, _ = client_of(document("deleted"))
    with pytest.raises(PermanentError, match="was deleted"):
        client.wait_until_live("d")
    client, _ = client_of(document("stalled"))
    with pytest.raises(ServerDown, match="stalled after 0 s"):
        client.wait_until_live("d", seconds=0)


def test_a_batch_is_waited_for() -> None:
    left: list[int] = []
    client, _ = client_of(*(httpx.Response(200, json=BATCH | {"left": n}) for n in (2, 1, 0)))
    client.wait_for_batch("b", on_progress=lambda batch: left.append(batch.left))
    assert left == [2, 1, 0]
    client, _ = client_of(httpx.Response(200, json=BATCH | {"left": 2}))
    with pytest.raises(ServerDown, match="2 documents of 'b' are left"):
        client.wait_for_batch("b", seconds=0)


def test_an_answer_comes_as_a_stream_and_an_error_in_it_is_raised() -> None:
    error = json.dumps(json.loads(problem(SearchTimeout).content))
    sentence = json.dumps({"text": "It lasts 20 weeks.", "citations": []})
    client, sent_request = client_of(
        stream(
            f"event: node\ndata: {NODE}\n\nevent: sentence\ndata: {sentence}\n\n"
            f"event: unknown\ndata: 1\n\nevent: error\ndata: {error}\n\n"
        )
    )
    events = client.answer_stream("main", "leave?")
    first = next(events)
    assert isinstance(first, models.NodeMessage)
    assert first.node == "planner"
    assert next(events) == models.SentenceMessage(text="It lasts 20 weeks.", citations=[])
    with pytest.raises(SearchTimeout):
        next(events)
    assert sent_request[0].headers["Accept"] == "text/event-stream"
    client, _ = client_of(stream(f"event: node\ndata: {NODE}\n\n"))
    with pytest.raises(PermanentError, match="ended before the answer"):
        list(client.answer_stream("main", "leave?"))


def event(number: int) -> str:
    output = {
        **{"event_id": number, "kind": "step.started", "document_id": "d", "collection": "main"},
        **{"tenant": "", "version": 1, "step": "extract", "at": 0, "data": None},
    }
    return f"id: {number}\nevent: step.started\ndata: {json.dumps(output)}\n\n"


def test_a_stream_that_breaks_off_goes_on_after_the_last_event() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        def parts() -> Iterator[bytes]:
            yield f"retry: 10\n\n: nothing new\n\n{event(7)}".encode()
            raise httpx.ReadError("broke off")

        return httpx.Response(200, content=parts())

    answers = (
        broken,
        stream(f"retry: 10\n\n{event(8)}id: 9\nevent: step"),
        stream(f"retry: 10\r\n\r\n{event(9)}event: end\ndata: {{}}\n\n"),
    )
    client, sent_request = client_of(*answers)
    assert [each.event_id for each in client.follow("d")] == [7, 8, 9]
    last = [request.headers.get("Last-Event-ID") for request in sent_request]
    assert last == [None, "7", "8"]
    client, sent_request = client_of(httpx.Response(204))
    assert list(client.follow("d", after=9)) == []
    assert sent_request[0].headers["Last-Event-ID"] == "9"
    client, sent_request = client_of(LOST[0])
    with pytest.raises(ServerDown):
        next(client.follow("d"))
    assert len(sent_request) == 1 + SOON.most


def test_lines_come_one_by_one_and_pages_one_after_the_other() -> None:
    client, _ = client_of(httpx.Response(200, text='{"chunk_id": 1}\n'))
    with pytest.raises(PermanentError, match="not understood"):
        list(client.export_memory("main"))
    pages = [
        {"documents": [json.loads(document("live").content)], "states": {}, "next_before": 5.5},
        {"documents": [json.loads(document("live").content)], "states": {}, "next_before": None},
    ]
    client, sent_request = client_of(*(httpx.Response(200, json=page) for page in pages))
    assert len(list(client.documents("main", tenant="a"))) == 2
    assert [request.url.params.get("before") for request in sent_request] == [None, "5.5"]
