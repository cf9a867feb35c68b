"""`callslip run keyword` as a process: its start, its health, a kill in the middle of writes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import long_forms
import pytest
from chroma_server import free_port
from processes import waits_until
from pydantic import SecretStr

from callslip.cli.commands.installation import doctor
from callslip.config.settings import KeywordSettings, Settings
from callslip.errors import CallslipError, CollectionNotFound, KeywordsDown
from callslip.stores.fulltext.contract import Entry
from callslip.stores.fulltext.service import KeywordService
from callslip.workers.health import keyword_fault

KEY = "a-secret-of-the-service"


def environment(folder: Path, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALLSLIP_")}
    return {**kept, "CALLSLIP_DATA_DIR": str(folder), **variables}


@contextmanager
def running(folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The service, with its key from a file."""
    key = folder / "key"
    key.write_text(KEY)
    variables = {"CALLSLIP_KEYWORD__PORT": str(port), "CALLSLIP_KEYWORD__KEY_FILE": str(key)}
    command = [sys.executable, "-m", "callslip.cli", "run", "keyword"]
    with subprocess.Popen(command, env=environment(folder, **variables)) as process:
        try:
            assert waits_until(lambda: not keyword_fault(settings_at(port)), 180), process.poll()
            yield process
        finally:
            process.terminate()
            process.wait(60)


def settings_at(port: int) -> KeywordSettings:
    return KeywordSettings(url=f"http://127.0.0.1:{port}", port=port, key=SecretStr(KEY))


def missing() -> CollectionNotFound:
    return CollectionNotFound("lost")


@pytest.mark.skipif(not long_forms.ALL, reason="`make test-all` starts the service twice")
def test_a_killed_service_has_all_that_it_acknowledged_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    settings = Settings(keyword=settings_at(port))
    with closing(KeywordService(settings.keyword)) as service:
        index = service.of("papers", "papers", missing)
        acknowledged: list[str] = []
        ended = threading.Event()

        def write() -> None:
            while not ended.wait(0.01):
                chunk_id = f"{len(acknowledged)}"
                with suppress(KeywordsDown):
                    index.upsert([Entry(chunk_id, "every", {})])
                    acknowledged.append(chunk_id)

        with running(tmp_path, port) as process:
            assert doctor._keyword_service(settings).endswith("takes keyword.key")
            index.create()
            writer = threading.Thread(target=write, daemon=True)
            writer.start()
            assert waits_until(lambda: len(acknowledged) > 5)
            process.kill()
            process.wait()
        # The worker of the killed server ends once it has noticed.
        assert waits_until(lambda: "does not answer" in keyword_fault(settings.keyword))
        with pytest.raises(CallslipError):
            doctor._keyword_service(settings)
        before = len(acknowledged)
        with running(tmp_path, port):
            assert waits_until(lambda: len(acknowledged) > before + 5)
            ended.set()
            writer.join()
            assert set(acknowledged) <= set(index.ids(None))
