"""Conversations: whose they are, what is written down of them, and that they are forgotten."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_parts import FACTS, Setup, make_setup
from ledger_moves import publish
from sqlalchemy import create_engine, make_url, text

from callslip.agent.conversations import Threads, make_saver
from callslip.agent.graph import make_graph
from callslip.agent.state import MOST_TURNS, Turn
from callslip.errors import CollectionNotFound, StoreDown, ThreadNotFound
from callslip.models.embedders.none import LexicalEmbedder
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

DAY = 86_400.0
QUERIES = "What does lunch in the canteen cost?"


@pytest.fixture
def threads(ledger: Ledger, ledger_url: str, tmp_path: Path) -> Iterator[Threads]:
    """Beside the ledger of each kind; the collection `notes` has the tenants ann and bob."""
    make(ledger, "notes", tenants=("ann", "bob"))
    saver: Any = make_saver(ledger_url, tmp_path)
    with closing(saver.conn):
        yield Threads(saver, ledger.conversations)


def make(ledger: Ledger, name: str, tenants: tuple[str, ...] = ()) -> None:
    schema = CollectionSchema(name, VectorSpec(4), tenants=bool(tenants))
    ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    for tenant in tenants:
        ledger.tenants.create(name, tenant)


def turn(question: str) -> Turn:
    return Turn(
        question=question,
        base=question,
        tails=[],
        text=f"answer to {question}",
        answered=True,
        trace_id="t",
        at=1.0,
    )


def say(threads: Threads, question: str, *scope: str) -> str:
    """Remember a turn as the graph does; what the conversation is known by."""
    key = threads.open(*scope)
    config: Any = {"configurable": {"thread_id": key}}
    make_graph(threads.saver).update_state(config, {"turns": [turn(question)]}, "memory_updater")
    return key


def reply(threads: Threads, *scope: str) -> list[str]:
    return [each["question"] for each in threads.turns(*scope)[1]]


def test_one_name_is_another_conversation_in_every_place(threads: Threads) -> None:
    scopes = [
        ("papers", "", "t"),
        ("notes", "ann", "t"),
        ("notes", "bob", "t"),
        ("papers", "", "u"),
    ]
    keys = [say(threads, f"of {n}?", *scope) for n, scope in enumerate(scopes)]
    assert len(set(keys)) == 4
    assert [reply(threads, *scope) for scope in scopes] == [[f"of {n}?"] for n in range(4)]
    assert keys == [threads.open(*scope) for scope in scopes]
    for scope in (("notes", "ann", "u"), ("notes", "", "t"), ("papers", "ann", "t")):
        with pytest.raises(ThreadNotFound):
            threads.turns(*scope)


def test_names_that_run_together_are_not_the_same(ledger: Ledger, threads: Threads) -> None:
    make(ledger, "a", tenants=("bc",))
    make(ledger, "ab", tenants=("c",))
    assert threads.open("a", "bc", "t") != threads.open("ab", "c", "t")


def test_a_conversation_needs_its_collection(threads: Threads) -> None:
    with pytest.raises(CollectionNotFound):
        threads.open("gone", "", "t")


def test_the_newest_turns_are_kept_in_their_order(threads: Threads) -> None:
    for n in range(MOST_TURNS + 5):
        say(threads, f"q{n}?", "papers", "", "t")
    assert reply(threads, "papers", "", "t") == [f"q{n}?" for n in range(5, MOST_TURNS + 5)]
    record, _ = threads.turns("papers", "", "t")
    assert record.created_at <= record.asked_at


def test_a_collection_made_anew_knows_nothing_of_the_old_one(
    ledger: Ledger, threads: Threads
) -> None:
    before = say(threads, "old?", "papers", "", "t")
    ledger.collections.delete("papers")
    with pytest.raises(ThreadNotFound):
        threads.turns("papers", "", "t")
    ledger.collections.forget("papers")
    make(ledger, "papers")
    with pytest.raises(ThreadNotFound):
        threads.turns("papers", "", "t")
    assert say(threads, "new?", "papers", "", "t") != before
    assert reply(threads, "papers", "", "t") == ["new?"]
    assert threads.trim(0.0) == 1
    assert reply(threads, "papers", "", "t") == ["new?"]


def test_a_tenant_made_anew_knows_nothing_of_the_old_one(ledger: Ledger, threads: Threads) -> None:
    before = say(threads, "old?", "notes", "ann", "t")
    say(threads, "bob's?", "notes", "bob", "t")
    ledger.tenants.delete("notes", "ann")
    with pytest.raises(ThreadNotFound):
        threads.turns("notes", "ann", "t")
    ledger.tenants.forget("notes", "ann")
    ledger.tenants.create("notes", "ann")
    with pytest.raises(ThreadNotFound):
        threads.turns("notes", "ann", "t")
    assert say(threads, "new?", "notes", "ann", "t") != before
    assert reply(threads, "notes", "ann", "t") == ["new?"]
    assert threads.trim(0.0) == 1
    assert reply(threads, "notes", "bob", "t") == ["bob's?"]


def test_only_the_newest_state_of_a_conversation_is_kept(
    ledger_url: str, threads: Threads, tmp_path: Path
) -> None:
    for n in range(MOST_TURNS + 1):
        key = say(threads, f"SECRET-{n}?", "papers", "", "t")
        say(threads, "other?", "notes", "ann", "t")
        threads.settle("papers", "", "t", key)
    assert reply(threads, "papers", "", "t") == [f"SECRET-{n}?" for n in range(1, MOST_TURNS + 1)]
    assert reply(threads, "notes", "ann", "t") == ["other?"] * MOST_TURNS
    left = rows(ledger_url, tmp_path)
    assert "SECRET-0" not in left
    assert left.count("answer to SECRET-1?") <= 2
    threads.forget("papers", "", "t")
    say_again = say(threads, "again?", "papers", "", "t")
    threads.forget("papers", "", "t")
    threads.settle("papers", "", "t", say_again)
    assert "SECRET" not in rows(ledger_url, tmp_path)


def test_a_conversation_is_forgotten_with_all_that_was_said(
    ledger_url: str, threads: Threads, tmp_path: Path
) -> None:
    say(threads, "SECRET-A?", "papers", "", "t")
    say(threads, "SECRET-B?", "papers", "", "u")
    threads.forget("papers", "", "t")
    with pytest.raises(ThreadNotFound):
        threads.turns("papers", "", "t")
    with pytest.raises(ThreadNotFound):
        threads.forget("papers", "", "t")
    left = rows(ledger_url, tmp_path)
    assert "SECRET-A" not in left
    assert "SECRET-B" in left


def rows(ledger_url: str, folder: Path) -> str:
    """All that the checkpointer's tables hold, as text."""
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    if ledger_url.startswith("sqlite"):
        ledger_url, tables = f"sqlite:///{folder / 'conversations.db'}", ("checkpoints", "writes")
    engine = create_engine(make_url(ledger_url))
    with engine.connect() as connection:
        found = [list(connection.execute(text(f"SELECT * FROM {name}"))) for name in tables]
    engine.dispose()
    return repr(
        [[bytes(v) if isinstance(v, memoryview) else v for v in r] for t in found for r in t]
    )


def test_old_conversations_are_trimmed(ledger: Ledger, threads: Threads) -> None:
    for n in range(3):
        say(threads, f"q{n}?", "papers", "", f"t{n}")
    ledger.conversations.open("papers", "", "t1", now=5 * DAY)
    ledger.conversations.open("papers", "", "t2", now=9 * DAY)
    assert threads.trim(7 * DAY) == 1
    assert reply(threads, "papers", "", "t0") == ["q0?"]
    with pytest.raises(ThreadNotFound):
        threads.turns("papers", "", "t1")
    assert threads.trim(7 * DAY) == 0


def test_turns_said_at_once_in_many_conversations_are_kept(threads: Threads) -> None:
    asking = [
        threading.Thread(target=say, args=(threads, f"q{n}?", "papers", "", f"t{n}"))
        for n in range(6)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert [reply(threads, "papers", "", f"t{n}") for n in range(6)] == [
        [f"q{n}?"] for n in range(6)
    ]


def test_documents_that_come_and_go_leave_conversations_alone(
    ledger: Ledger, threads: Threads
) -> None:
    say(threads, "q?", "papers", "", "t")
    item = publish(ledger, "one", ["c1"])
    ledger.documents.delete(item.document_id)
    assert reply(threads, "papers", "", "t") == ["q?"]


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    with make_setup(tmp_path, LexicalEmbedder()) as made:
        made.furnish()
        made.put("more.txt", "The PASSWORD of the safe is on the wall.", title="A TITLE")
        yield made


def bytes_of(folder: Path) -> bytes:
    """What the files of conversations hold."""
    with closing(sqlite3.connect(folder / "conversations.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return b"".join(path.read_bytes() for path in folder.glob("conversations.db*"))


def test_what_is_written_down_is_the_turns_and_nothing_of_passages(
    setup: Setup, tmp_path: Path
) -> None:
    first = setup.ask(QUERIES, thread_id="t", having_all={"filename !=": "a secret name"})
    setup.ask("Who won the world cup?", thread_id="t")
    written = bytes_of(tmp_path)
    for kept in (QUERIES, "Who won the world cup?", first.text, first.trace_id):
        assert kept.encode() in written
    for fact in (*FACTS[1:], "PASSWORD", "A TITLE", "more.txt", "a secret name", "document_id"):
        assert fact.encode() not in written


def test_what_was_forgotten_is_in_no_file(setup: Setup, tmp_path: Path) -> None:
    setup.ask(QUERIES, thread_id="t")
    setup.threads.forget("papers", "", "t")
    written = bytes_of(tmp_path)
    assert b"canteen" not in written
    assert b"6 euros" not in written


def test_a_run_that_breaks_off_leaves_the_turns_before_it(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.ask(QUERIES, thread_id="t")

    def down(*_: Any, **__: Any) -> Any:
        raise StoreDown("the store does not answer")

    for name in ("retrieve", "terms", "get_chunks"):
        with monkeypatch.context() as patch:
            patch.setattr(setup.store, name, down)
            with pytest.raises(StoreDown):
                setup.ask("Is the PASSWORD of the safe on the wall?", thread_id="t")
    assert len(setup.threads.turns("papers", "", "t")[1]) == 1
    answer = setup.ask("And for guests?", thread_id="t")
    assert answer.understood == "What does lunch in the canteen cost for guests?"
    assert len(setup.threads.turns("papers", "", "t")[1]) == 2
    written = bytes_of(tmp_path)
    assert b"safe is on the wall" not in written
    assert b"PASSWORD" not in written


def test_a_follow_up_leans_on_what_was_answered(setup: Setup) -> None:
    refused = "Who won the world cup in 1990?"
    for thread in ("t", "u"):
        setup.ask(refused, thread_id=thread)
        assert setup.ask("And for guests?", thread_id=thread).understood == "And for guests?"
    assert setup.ask(QUERIES, thread_id="u").answered
    assert not setup.ask(refused, thread_id="u").answered
    answer = setup.ask("And for guests?", thread_id="u")
    assert answer.understood == "What does lunch in the canteen cost for guests?"
    stored = setup.threads.turns("papers", "", "u")[1][-1]
    assert (stored["base"], stored["tails"]) == (QUERIES, ["for guests"])


def test_a_question_that_is_answered_again_is_as_it_was_and_the_conversation_too(
    setup: Setup,
) -> None:
    questions = (QUERIES, "And for guests?", "And for staff?")
    first = [setup.ask(question, thread_id="t") for question in questions]
    turns = setup.threads.turns("papers", "", "t")[1]
    for question, before in zip(questions, first, strict=True):
        request = setup.request(f" {question.replace(' ', '  ')}", thread_id="t")
        again = setup.agent.answer(request, again=True)
        assert (again.understood, again.text) == (before.understood, before.text)
        assert again.verdict == before.verdict
    assert setup.threads.turns("papers", "", "t")[1] == turns
    other = setup.agent.answer(setup.request("And on Sundays?", thread_id="t"), again=True)
    assert other.understood.endswith("on Sundays?")
    assert other.understood != "And on Sundays?"
    nowhere = setup.agent.answer(setup.request("And for guests?", thread_id="none"), again=True)
    assert nowhere.understood == "And for guests?"
    with pytest.raises(ThreadNotFound):
        setup.threads.turns("papers", "", "none")


def test_a_database_that_somebody_holds_is_said_to_be_down_and_nothing_is_lost(
    setup: Setup, tmp_path: Path
) -> None:
    setup.ask(QUERIES, thread_id="t")
    saver: Any = setup.threads.saver
    saver.conn.execute("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(tmp_path / "conversations.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        for act in (
            lambda: setup.ask("And for guests?", thread_id="t"),
            lambda: setup.threads.forget("papers", "", "t"),
        ):
            with pytest.raises(StoreDown, match="database of conversations"):
                act()
    assert setup.ask("And for guests?", thread_id="t").understood.endswith("for guests?")
    assert len(setup.threads.turns("papers", "", "t")[1]) == 2


def test_a_conversation_that_is_forgotten_while_it_is_answered_stays_so(
    setup: Setup, tmp_path: Path
) -> None:
    def forget(report: Any) -> None:
        if report.node == "answerer":
            setup.threads.forget("papers", "", "t")

    setup.ask(QUERIES, thread_id="t")
    setup.agent.answer(setup.request(QUERIES, thread_id="t"), forget)
    with pytest.raises(ThreadNotFound):
        setup.threads.turns("papers", "", "t")
    assert b"canteen" not in bytes_of(tmp_path)


def test_a_long_conversation_stays_small(setup: Setup, tmp_path: Path) -> None:
    for n in range(MOST_TURNS):
        setup.ask(f"And for guest number {n}?", thread_id="t")
    size = len(bytes_of(tmp_path))
    for n in range(MOST_TURNS):
        setup.ask(f"And for guest number {n}?", thread_id="t")
    assert len(bytes_of(tmp_path)) <= size + 8192
    assert len(setup.threads.turns("papers", "", "t")[1]) == MOST_TURNS
    setup.ask(QUERIES, thread_id="t")
    assert b"guest number 0" not in bytes_of(tmp_path).replace(
        b"base\xb7And for guest number 0", b""
    )
