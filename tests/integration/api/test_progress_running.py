"""Streams, webhooks and batches over running stacks, also when these are stopped in the middle."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from api_calls import Api
from receiver import Receiver, hang, status
from stack import WITHOUT_MODEL, MakeStack, Stack

TEXT = "Parental leave lasts fourteen months. The request is made eight weeks before it begins."
STEPS = ("extract", "sectionize", "chunk", "enrich", "embed", "upsert")


@pytest.fixture
def api(stack: Stack) -> Iterator[Api]:
    api = Api(stack)
    yield api
    api.http.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver()) as made:
        yield made


def follow(api: Api, document_id: str, last: str | None = None) -> list[tuple[str, str, str]]:
    """The id, kind and data of each event until the stream ends."""
    headers = {} if last is None else {"Last-Event-ID": last}
    with api.http.stream("GET", f"/v1/documents/{document_id}/events", headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        frames = "".join(answer.iter_text()).rstrip("\n").split("\n\n")
    parsed = [dict(line.split(": ", 1) for line in f.splitlines()) for f in frames if f[0] != ":"]
    return [(f.get("id", ""), f["event"], f["data"]) for f in parsed if "event" in f]


def test_a_document_is_followed_until_it_is_live_and_until_it_is_gone(api: Api) -> None:
    document_id = api.send(text=TEXT, name="leave.txt").json()["document_id"]
    output = follow(api, document_id)
    steps = [
        f"{json.loads(data)['kind']} {json.loads(data)['step']}"
        for _, kind, data in output
        if kind.startswith("step")
    ]
    assert steps == [f"step.{what} {step}" for step in STEPS for what in ("started", "finished")]
    assert [kind for _, kind, _ in output[-2:]] == ["document.live", "end"]
    assert [id_ for id_, *_ in follow(api, document_id, output[3][0])] == [
        i for i, *_ in output[4:]
    ]
    api.http.delete(f"/v1/documents/{document_id}")
    gone = follow(api, document_id, output[-2][0])
    assert [kind for _, kind, _ in gone] == ["document.deleted", "document.removed", "end"]


@pytest.mark.long
def test_streams_take_no_place_from_others_and_end_with_the_server(make_stack: MakeStack) -> None:
    """No embedder answers, so the document waits and its streams stay open."""
    embedder = {"KIND": "openai", "BASE_URL": "http://127.0.0.1:9/v1", "DIMENSION": "4"}
    settings = {f"CALLSLIP_EMBEDDER__{key}": value for key, value in embedder.items()}
    settings |= {"CALLSLIP_EMBEDDER__MODEL": "none", "CALLSLIP_EMBEDDER__API_KEY": "none"}
    settings |= {"CALLSLIP_API__PROCESSES": "1", "CALLSLIP_API__STREAMS": "2"}
    stack = make_stack(settings).start()
    with Api(stack) as api:
        path = f"/v1/documents/{api.send(text=TEXT).json()['document_id']}/events"
    url = f"{stack.url}{path}"
    with (
        httpx.stream("GET", url, trust_env=False, timeout=60) as first,
        httpx.stream("GET", url, trust_env=False, timeout=60) as second,
    ):
        assert first.status_code == second.status_code == 200
        refused = httpx.get(url, trust_env=False)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        assert httpx.get(f"{stack.url}/healthz", trust_env=False).status_code == 200
        lines = first.iter_lines()
        next(line for line in lines if line == "event: step.retrying")
        assert stack.stop() == 0
        left = list(lines)  # raises where the connection was cut instead of ended
    assert "event: end" not in left, "it is not over: the caller comes back"
    stack.start()
    with httpx.stream("GET", f"{stack.url}{path}", trust_env=False, timeout=60) as whole:
        ids = [line for line, _ in zip(_ids(whole), range(4), strict=False)]
    headers = {"Last-Event-ID": ids[1]}
    url = f"{stack.url}{path}"
    with httpx.stream("GET", url, headers=headers, trust_env=False, timeout=60) as rest:
        assert next(_ids(rest)) == ids[2], "it goes on where it was"


def _ids(answer: httpx.Response) -> Iterator[str]:
    return (line[4:] for line in answer.iter_lines() if line.startswith("id: "))


@pytest.mark.long
def test_a_receiver_that_was_away_gets_every_event_also_after_a_restart(
    make_stack: MakeStack, receiver: Receiver
) -> None:
    settings = {"ALLOW_NETWORKS": "127.0.0.0/8", "TIMEOUT_SECONDS": "1"}
    settings = {f"CALLSLIP_WEBHOOKS__{key}": value for key, value in settings.items()}
    stack = make_stack(WITHOUT_MODEL | settings).start()
    with Api(stack) as api:
        made = api.http.post(
            "/v1/webhooks", json={"url": receiver.url, "collection": api.collection}
        )
        assert made.status_code == 201, made.text
        receiver.answer = hang
        first = api.live(text=TEXT, name="a.txt")
        receiver.wait_for(1)
        receiver.answer = status(503)
        second = api.live(text=f"{TEXT} More.", name="b.txt")
        receiver.wait_for(2)
        assert api.http.delete(f"/v1/documents/{first}").status_code == 202
        url = f"/v1/webhooks/{made.json()['webhook_id']}/deliveries"
        stack.stop()
    stack.start()
    receiver.answer = status(200)
    with closing(httpx.Client(base_url=stack.url, timeout=60, trust_env=False)) as http:
        until = time.monotonic() + 150
        while time.monotonic() < until:
            log = http.get(url).json()["deliveries"]
            if len(log) == 3 and all(d["state"] == "delivered" for d in log):
                break
            time.sleep(0.5)
    assert {(d["document_id"], d["type"]) for d in log} == {
        (first, "document.live"),
        (second, "document.live"),
        (first, "document.deleted"),
    }, log
    assert all(d["state"] == "delivered" for d in log), log
    assert {h["webhook-id"] for h, _ in receiver.got} == {d["delivery_id"] for d in log}


@pytest.mark.long
def test_a_folder_is_a_batch_that_the_command_line_follows(stack: Stack, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for n in range(4):
        (folder / f"{n}.txt").write_text(f"{TEXT} Number {n}.")
    (folder / "copy.txt").write_text(f"{TEXT} Number 1.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 no pages at all")

    def callslip(*arguments: str) -> "subprocess.CompletedProcess[str]":
        program = (str(Path(sys.executable).with_name("callslip")), *arguments)
        return subprocess.run(
            (*program, "--url", stack.url),
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )

    name = f"folder-{time.time_ns()}"
    done = callslip("ingest", str(folder), "-c", name, "--json")
    report = json.loads(done.stdout)
    assert sorted(report["live"]) == ["0.txt", "1.txt", "2.txt", "3.txt"]
    assert {f["name"]: f["type"] for f in report["failed"]} == {
        "broken.pdf": "broken-file",
        "copy.txt": "duplicate-content",
    }
    batch = json.loads(callslip("status", "--batch", report["batch_id"], "--json").stdout)
    assert batch["states"] == {"live": 4, "failed": 1}
    assert (batch["expected"], batch["submitted"], batch["left"]) == (5, 5, 0)
    shown = callslip("status", "--batch", report["batch_id"]).stdout
    assert "5 of 5 done" in shown
    assert "broken.pdf: " in shown
    again = json.loads(callslip("ingest", str(folder), "-c", name, "--json").stdout)
    assert sorted(again["unchanged"]) == ["0.txt", "1.txt", "2.txt", "3.txt"]
    assert again["live"] == []
