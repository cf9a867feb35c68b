"""`callslip purge` checks its target, asks about it by name, and says what it found."""

from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from backup_parts import Installation, installation
from click.testing import CliRunner, Result
from learned import say, trace

from callslip.cli.commands.documents import purge
from callslip.cli.main import main
from callslip.config.settings import MemorySettings, Settings, TracesSettings
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.tfidf.store import TfidfStore


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    """An installation with a document, which the command opens."""
    store = TfidfStore(tmp_path / "tfidf")
    with installation(tmp_path / "here", store) as made, closing(store):
        made.collection()
        context = SimpleNamespace(backend=made.backend, conversations=made.threads)
        monkeypatch.setattr(purge, "placed_settings", lambda: Settings(data_dir=tmp_path / "here"))
        monkeypatch.setattr(purge, "open_context", lambda _: nullcontext(context))
        yield made


def run(*arguments: str, answer: str = "", code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["purge", *arguments], input=answer)
    assert result.exit_code == code, result.output
    return result


def test_the_question_names_the_document_and_its_collection(here: Installation) -> None:
    item = here.publish("leave.md", "alpha")
    text = run("--document", item.document_id, answer="n\n", code=1).output
    assert "Purge document 'leave.md' in collection 'papers'? This cannot be undone. [y/N]" in text
    assert here.ledger.documents.get(item.document_id).name == "leave.md"
    output = run("--document", item.document_id, answer="y\n").output
    assert "Purged; receipt " in output
    assert "Backups may still have it;" in output
    assert here.ledger.documents.get(item.document_id).name == "purged"


def test_the_question_names_the_tenant(here: Installation) -> None:
    here.collection("shared", tenants=True)
    here.ledger.tenants.create("shared", "acme")
    here.publish("a.txt", "beta", collection="shared", tenant="acme")
    text = run("--collection", "shared", "--tenant", "acme", answer="n\n", code=1).output
    assert "Purge tenant 'acme' of collection 'shared' with 1 document? This" in text


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        ([], "Name one of --document", 1),
        (["--document", "x", "--user", "ann"], "Name one of --document", 1),
        (["--tenant", "acme"], "Name one of --document", 1),
        (["--user", ""], "'--user': the text is empty", 2),
        (["--document", ""], "'--document': the text is empty", 2),
        (["--document", "x"], "document 'x' does not exist", 1),
        (["-c", "none", "--tenant", "acme"], "collection 'none' does not exist", 1),
        (["-c", "papers", "--tenant", "acme"], "collection 'papers' has no tenants", 1),
        (["--user", "ann", "--backups", "nothing"], "there are no backups in nothing", 1),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_target_that_is_wrong_is_refused_without_a_question(
    arguments: list[str], words: str, code: int
) -> None:
    output = run(*arguments, answer="y\n", code=code).output
    assert words in output
    assert "[y/N]" not in output


@pytest.mark.parametrize("option", ["--document", "--user"])
def test_a_name_that_is_not_unicode_is_refused(option: str) -> None:
    output = run(option, "\udcff", "--yes", code=1).output
    assert "'\\udcff' is not valid Unicode" in output


def test_a_user_without_records_is_unknown(here: Installation) -> None:
    item = here.publish("leave.md", "alpha")
    chunks = sorted(here.ledger.purge.chunk_ids([item.document_id]))
    one = trace("a question", chunks)
    Learning(here.ledger, MemorySettings(), TracesSettings()).record([one])
    say(here.ledger, one.trace_id, chunks[:1], user="ann")
    nobody = run("--user", "nobody", "--yes").output
    assert "Nothing is known of this user; receipt " in nobody
    assert "Backups may still have it;" in nobody, "what is forgotten here may be in one"
    text = run("--user", "ann", answer="y\n").output
    assert "Purge the feedback, searches and conversations of user 'ann'? This" in text
    assert "Purged; receipt " in text
