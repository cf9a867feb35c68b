"""`callslip keys`, and the admin key of the first start."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pydantic import ValidationError

from callslip.api.identity.routes import ROUTES
from callslip.cli.commands.installation import doctor
from callslip.cli.main import main
from callslip.client import Client
from callslip.config import Loaded
from callslip.config.settings import ApiSettings, Settings
from callslip.errors import KeyRefused
from callslip.stores.ledger import AuditEntry, Ledger
from callslip.stores.schemas import CollectionSchema, VectorSpec
from callslip.workers.first_key import login_link, make_first_key
from callslip.workers.local_access import FILE, local_key, read_key, write_key
from callslip.workers.supervision import runfile
from callslip.workers.supervision.runfile import Process, RunFile

URL = "http://127.0.0.1:8765"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    for name in [name for name in os.environ if name.startswith("CALLSLIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["keys", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_key_is_made_listed_rotated_and_revoked(ledger: Ledger) -> None:
    text = run(
        *("create", "website", "-c", "handbook", "--permission", "read", "--permission"),
        *("feedback", "--expires", "90d", "--requests-per-minute", "600", "--user", "kim"),
    ).stdout.strip()
    key = ledger.api_keys.of(text)
    assert key is not None
    assert key.caller.permissions == {"read", "feedback"}
    assert key.caller.collections == {"handbook"}
    assert (key.expires_at or 0) - key.created_at == pytest.approx(90 * 86_400, abs=60)
    run("create", "website", code=1)
    run("create", "website", "--expires", "soon", code=2)
    for never in ("0d", "0m"):
        assert "never be valid" in run("create", "other", "--expires", never, code=2).output
    listed = run("list").stdout
    assert "600 requests per minute" in listed
    assert "read,feedback" in listed
    assert text not in listed
    rotation = run("rotate", "website", "--overlap", "1h", "--json")
    rotated = json.loads(rotation.stdout)
    (earlier,) = (k for k in ledger.api_keys.all() if k.key_id != rotated["key_id"])
    until = datetime.fromtimestamp(earlier.expires_at or 0, UTC)
    assert f"The earlier key is valid until {until:%Y-%m-%d %H:%M:%S}Z." in rotation.stderr
    assert ledger.api_keys.of(rotated["key"]) is not None
    assert run("revoke", "website").stdout == "2 keys revoked.\n"
    run("revoke", "website", code=1)
    assert "revoked" in run("list").stdout


def test_a_key_for_a_collection_that_does_not_exist_yet_is_made_with_a_warning(
    ledger: Ledger,
) -> None:
    schema = CollectionSchema("handbook", VectorSpec(1))
    ledger.collections.create(schema, store="tfidf", embedder="", analyzer="")
    made = run("create", "website", "-c", "handbook", "-c", "handbok")
    assert ledger.api_keys.of(made.stdout.strip()) is not None
    assert (
        "No collection is called 'handbok' yet: the key sees it once it is made.\n" in made.stderr
    )
    assert "'handbook'" not in made.stderr
    assert "No collection" not in run("create", "other", "-c", "handbook").stderr


def test_the_log_is_shown_and_verified(ledger: Ledger) -> None:
    use = AuditEntry(1.8e9, "website", "key", "GET documents.get_document", 200, {"name": "x"})
    ledger.audit_log.append([use, use])
    assert run("audit", "--caller", "website").stdout.count("documents.get_document") == 2
    head = json.loads(run("audit", "--verify", "--json").stdout)["hash"]
    run("audit", "--verify", "--expect", head)
    assert "no row has the hash" in run("audit", "--verify", "--expect", "00", code=1).output


def test_an_id_of_the_log_that_a_client_made_up_stays_in_its_row(ledger: Ledger) -> None:
    ids = {"document_id": "1\n2027-01-15 08:00:00Z  200  admin\x1b[2J\u202e"}
    ledger.audit_log.append([AuditEntry(1.8e9, "web", "key", "GET documents.x", 404, ids)])
    (line,) = run("audit").stdout.splitlines()
    shown = r'"1\n2027-01-15 08:00:00Z  200  admin\u001b[2J\u202e"'
    assert line.endswith(f"404  web  GET documents.x  document_id={shown}")


def test_the_log_shows_what_was_done_without_the_requests_that_follow_it(ledger: Ledger) -> None:
    actions = ("POST documents.submit_document", "DELETE documents.delete_document")
    follow = AuditEntry(1.8e9, "loader", "key", "GET batches.get_batch", 200, {})
    ledger.audit_log.append([replace(follow, action=action) for action in actions])
    ledger.audit_log.append([follow] * 60)
    shown = run("audit").stdout
    assert "get_batch" not in shown
    assert all(action in shown for action in actions)
    assert run("audit", "--all").stdout.count("get_batch") == 50
    assert len(json.loads(run("audit", "--all", "--limit", "99", "--json").stdout)) == 62
    (row,) = json.loads(run("audit", "--action", "delete_", "--json").stdout)
    assert row["action"] == actions[1]
    assert "get_batch" in run("audit", "--action", "get_batch").stdout


def test_the_first_start_makes_a_key_that_only_its_owner_reads(
    ledger: Ledger, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path)
    for other in ({"open": True}, {"key": "a-key-of-settings"}):
        api = ApiSettings.model_validate(other)
        assert make_first_key(settings.model_copy(update={"api": api})) is None
    text = make_first_key(settings)
    assert text is not None
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert read_key(tmp_path) == text
    assert make_first_key(settings) is None
    link = login_link(settings, URL) or ""
    admin = ledger.api_keys.of(text)
    assert admin is not None
    assert ledger.secrets.spend(link.partition("code=")[2]) == admin.key_id
    rotated = run("rotate", "admin").stdout.strip()
    assert read_key(tmp_path) == rotated != text


def test_the_admin_key_goes_to_the_server_of_its_folder_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path)
    text = make_first_key(settings)
    assert local_key(settings, URL) is None
    RunFile(Process.of(os.getpid()), URL, "redis://x", None).write(tmp_path)
    assert runfile.read(tmp_path)
    sent = local_key(settings, f"{URL}/")
    assert sent is not None
    assert sent.get_secret_value() == text
    assert local_key(settings, "http://127.0.0.1:8766") is None
    assert local_key(settings, "http://127.0.0.1:8765.example.org") is None


def test_an_admin_key_is_written_where_the_folder_has_none(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, less in enumerate((["--expires", "1d"], ["--tenant", "acme"], ["-c", "papers"])):
        run("create", f"less-{number}", "--permission", "admin", *less)
    run("create", "reader")
    monkeypatch.setenv("CALLSLIP_API__KEY", "a-key-of-settings")
    run("create", "beside", "--permission", "admin")
    monkeypatch.delenv("CALLSLIP_API__KEY")
    assert read_key(tmp_path) is None
    made = run("create", "boss", "--permission", "admin")
    assert read_key(tmp_path) == made.stdout.strip()
    assert str(tmp_path / FILE) in made.stderr
    assert login_link(Settings(data_dir=tmp_path), URL)
    assert str(tmp_path / FILE) not in run("create", "other", "--permission", "admin").stderr
    assert read_key(tmp_path) == made.stdout.strip()


def test_an_open_server_listens_on_loopback() -> None:
    for wrong in ({"host": "0.0.0.0"}, {"key": "a-key-of-settings"}):  # noqa: S104
        with pytest.raises(ValidationError):
            ApiSettings.model_validate({"open": True, **wrong})


def test_the_page_of_security_has_every_permission() -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    for permission in {route.permission for route in ROUTES.values()} - {None}:
        assert f"| `{permission}` |" in page


def refused(monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints if the server refuses its key."""

    def refuse(*_: object) -> None:
        raise KeyRefused("the request carries no key")

    monkeypatch.setattr(Client, "list_versions", refuse)
    result = CliRunner().invoke(main, ["versions", "x", "--url", URL])
    assert result.exit_code == 1
    return result.output


def test_a_refused_command_says_where_its_key_came_from_or_where_it_looked(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = refused(monkeypatch)
    assert f"no server runs at {URL} on the data folder {tmp_path}" in output
    assert "CALLSLIP_DATA_DIR" in output
    RunFile(Process.of(os.getpid()), URL, "redis://", None).write(tmp_path)
    output = refused(monkeypatch)
    assert f"The server at {URL} runs on the data folder {tmp_path}, which has no admin" in output
    assert "callslip keys create NAME --permission admin" in output
    write_key(tmp_path, "callslip_1")
    assert f"The key came from {tmp_path / FILE}" in refused(monkeypatch)
    monkeypatch.setenv("CALLSLIP_API__KEY", "a-key-of-another-server")
    assert "The key came from CALLSLIP_API__KEY:" in refused(monkeypatch)


def test_the_doctor_creates_nothing_in_a_folder_without_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "var"

    def build(settings: Settings) -> str:
        settings.models_dir.mkdir(parents=True)
        return "built"

    monkeypatch.setattr(doctor, "_embedder", build)
    settings = Settings(data_dir=folder)
    findings = {
        each.part: each for each in doctor.examine(Loaded(settings, {}), "http://127.0.0.1:9")
    }
    assert not folder.exists()
    assert findings["embedder"].detail == "built"
    assert findings["data_dir"].detail == f"{folder} does not exist yet"
    assert findings["data_dir"].warns
