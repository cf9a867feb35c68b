"""Scheduled backups: when one is due, and when it is verified."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, context_of, working
from memory_store import MemoryStore
from pydantic import SecretStr

from callslip.config.settings import BackupSettings, Settings
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.manifest import FOLDER, time_prefix
from callslip.tasks import backup

HOUR = 3600.0


def add(settings: BackupSettings, at: float) -> None:
    """A backup of this time."""
    key = settings.key.get_secret_value() if settings.key else None
    Destination(str(settings.to), key, make=True).write(FOLDER, f"{time_prefix(at)}-x", {})


def test_a_backup_is_due_when_the_newest_is_old(tmp_path: Path) -> None:
    now = time.time()
    key = SecretStr("correct horse battery")
    settings = BackupSettings(to=str(tmp_path / "to"), every_hours=2, key=key)
    assert backup.is_due(settings, now)
    add(settings, now - 3 * HOUR)
    assert backup.is_due(settings, now)
    add(settings, now - HOUR)
    assert not backup.is_due(settings, now)


class Broker(LoneBroker):
    """A broker with keys."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def exists(self, key: str) -> bool:
        return key in self.keys

    def set(self, key: str, *_: object, **__: object) -> None:
        self.keys.add(key)


def test_a_due_backup_is_made_and_verified_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []
    settings = BackupSettings(to=str(tmp_path / "to"))

    class Child(subprocess.Popen[str]):
        """A command that ends at once."""

        def __init__(self, command: Sequence[str], **more: Any) -> None:
            ran.append(tuple(command)[3:-1])
            super().__init__(("true",), **more)

    monkeypatch.setattr("callslip.tasks.shared.children.subprocess.Popen", Child)
    broker: Any = Broker()
    with working(context_of(Settings(backup=settings), MemoryStore(), broker=broker)):
        backup.back_up()
        assert ran == [backup.BACKUP, backup.VERIFICATION]
        add(settings, time.time())
        backup.back_up()
        assert len(ran) == 2
    with working(context_of(Settings(), MemoryStore(), broker=broker)):
        backup.back_up()
    assert len(ran) == 2
