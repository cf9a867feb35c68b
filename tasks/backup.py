"""Scheduled backups, and restores of the newest one into a temporary folder to verify it.

Both run as commands of their own: their memory goes with them, and a worker that stops need not
wait for them, because the next backup continues.
"""

import logging
import time

from celery import shared_task

from callslip.config.settings import BackupSettings
from callslip.errors import CallslipError
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.tasks.composition import current
from callslip.tasks.shared.children import run
from callslip.tasks.shared.locks import alone

log = logging.getLogger(__name__)

LOOK_SECONDS = 900.0
"""Seconds between two checks whether a backup is due, because a machine may be off for a day."""

VERIFIED = "backup:verified"
"""The broker's key that exists until the next verification is due."""

BACKUP = ("backup",)
VERIFICATION = ("restore", "--verify")

_DAY_SECONDS = 86_400.0


@shared_task(name="maintenance.backup")
def back_up() -> None:
    """Make a backup if one is due, then verify it if that is due."""
    context = current()
    settings = context.settings.backup
    if settings.to is None:
        return
    with alone(context.broker, "backup") as lock:
        if lock is None:
            return
        try:
            if is_due(settings, time.time()):
                run(BACKUP, lock)
        except CallslipError as error:
            log.error("the backup failed: %s", error.detail)
            return
        days = settings.verify_days
        if days and not context.broker.exists(VERIFIED) and run(VERIFICATION, lock):
            context.broker.set(VERIFIED, 1, px=int(days * _DAY_SECONDS * 1000))


def is_due(settings: BackupSettings, now: float) -> bool:
    """Whether the newest backup in `backup.to` is older than `backup.every_hours`."""
    key = settings.key.get_secret_value() if settings.key is not None else None
    destination = Destination(str(settings.to), key, make=True)
    names = destination.names(manifests.FOLDER)
    newest = manifests.day_of(names[-1]).timestamp() if names else 0.0
    return now - newest >= settings.every_hours * 3600
