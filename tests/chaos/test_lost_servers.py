"""The broker or the store dies while documents are on their way."""

import shutil

from outcome import Outcome, essay
from stack import Stack


def test_a_killed_broker_comes_back_with_its_queue(hasty_stack: Stack, outcome: Outcome) -> None:
    texts = [essay(6) for _ in range(12)]
    ids = [outcome.submit(text) for text in texts]
    hasty_stack.kill("valkey")
    hasty_stack.wait_until_back("valkey")
    for document_id, text in zip(ids, texts, strict=True):
        outcome.wait(document_id, "live")
        outcome.assert_whole(document_id, text)


def test_a_killed_store_comes_back_and_upserts_are_done_once(
    hasty_stack: Stack, outcome: Outcome
) -> None:
    texts = [essay(6) for _ in range(6)]
    ids = [outcome.submit(text) for text in texts]
    outcome.wait(ids[0], "live")
    hasty_stack.kill("chroma")
    hasty_stack.wait_until_back("chroma")
    for document_id, text in zip(ids, texts, strict=True):
        outcome.wait(document_id, "live")
        outcome.assert_whole(document_id, text)


def test_a_broker_that_lost_everything_is_rebuilt_from_the_ledger(
    hasty_stack: Stack, outcome: Outcome
) -> None:
    texts = [essay(6) for _ in range(12)]
    ids = [outcome.submit(text) for text in texts]
    hasty_stack.stop()
    assert any(outcome.ledger.documents.get(i).state != "live" for i in ids)
    shutil.rmtree(hasty_stack.data_dir / "valkey")
    hasty_stack.start()
    again = Outcome(hasty_stack)
    for document_id, text in zip(ids, texts, strict=True):
        again.wait(document_id, "live")
        again.assert_whole(document_id, text)
    again.close()
