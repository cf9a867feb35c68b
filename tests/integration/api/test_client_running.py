"""The Python client and the retrievers of frameworks before the API of a running stack."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from api_calls import Api
from stack import Stack

from callslip.client import AsyncClient, Client, FolderProgress, models
from callslip.errors import DocumentError, NotFound

TEXTS = {
    "leave.md": "# Parental leave\n\nParental leave lasts fourteen months for each parent.\n",
    "below/travel.md": "# Travel\n\nTrain tickets are paid back within ten days of a journey.\n",
    "출산.md": "# 출산 장려금\n\n출산 장려금은 첫째 아이에게 200만 원을 지급한다.\n",
    "desk.md": "# The desk\n\nA reader reserves a desk on the second floor.\n",
}

SURE: dict[str, Any] = {"top": 1, "ranking": {"exploration_ratio": 0.0}}
"""The best passage, and none that is tried out."""


@pytest.fixture(scope="module")
def collection(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A collection with four texts, sent as a folder."""
    folder = tmp_path_factory.mktemp("folder")
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with Api(stack) as api, Client(stack.url) as client:
        output: list[FolderProgress] = []
        left: list[int] = []
        sent = client.upload_folder(api.collection, folder, on_progress=output.append)
        batch = client.wait_for_batch(
            sent.batch_id, seconds=120, on_progress=lambda at: left.append(at.left)
        )
        assert batch.states == {"live": 4}
        assert [at.done for at in output] == [0, 1, 2, 3, 4]
        assert left[-1] == 0
        yield api.collection


def test_what_is_sent_is_found_answered_followed_and_deleted(
    stack: Stack, collection: str, tmp_path: Path
) -> None:
    with Client(stack.url) as client:
        assert {each.name for each in client.documents(collection)} == set(TEXTS)
        found = client.search(collection, "how long is parental leave?", explain=True, **SURE)
        assert "fourteen months" in found.hits[0].text
        assert found.hits[0].reasons is not None
        *nodes, answer = client.answer_stream(collection, "출산 장려금은 얼마인가요?")
        assert isinstance(answer, models.Answer)
        assert "200만" in answer.text
        assert {type(node) for node in nodes} == {models.NodeMessage, models.SentenceMessage}
        reply = client.give_feedback(found.trace_id, "helpful", chunk_ids=[found.hits[0].chunk_id])
        again = client.give_feedback(found.trace_id, "helpful", chunk_ids=[found.hits[0].chunk_id])
        assert reply.feedback_id == again.feedback_id
        lines = list(client.export_memory(collection))
        assert client.import_memory(collection, lines).chunks == len(lines)
        assert client.readyz().ready
        assert "callslip_" in client.metrics()

        made = client.upload(collection, b"\x00\x01 no text", filename="broken.pdf")
        with pytest.raises(DocumentError):
            client.wait_until_live(made, seconds=60)
        kinds = [event.kind for event in client.follow(made.document_id)]
        assert kinds[0] == "document.queued"
        assert kinds[-1] == "document.failed"
        last = [event.event_id for event in client.follow(made.document_id)][-1]
        assert list(client.follow(made.document_id, after=last)) == []
        client.delete_document(made.document_id)
        with pytest.raises(NotFound):
            client.get_conversation(collection, "none")


def test_the_client_that_awaits_asks_many_at_a_time(stack: Stack, collection: str) -> None:
    found: list[str] = []

    async def ask(client: AsyncClient, query: str) -> None:
        found.append((await client.search(collection, query, **SURE)).hits[0].filename)

    async def use() -> None:
        async with AsyncClient(stack.url) as client, anyio.create_task_group() as group:
            for query in ("parental leave", "train tickets", "출산 장려금") * 4:
                group.start_soon(ask, client, query)

    anyio.run(use)
    assert len(found) == 12
    assert set(found) == {"leave.md", "travel.md", "출산.md"}
