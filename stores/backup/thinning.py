"""Removes backups that are no longer retained, and objects that no backup refers to."""

from dataclasses import dataclass

from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.manifest import BLOBS, FOLDER
from callslip.stores.backup.parts import NameSet, rows


@dataclass(frozen=True)
class Thinned:
    """The numbers of removed backups and objects."""

    backups: int
    objects: int


def thin(destination: Destination, keep: int) -> Thinned:
    """Remove the backups that `keep` does not retain, and the objects that only they have."""
    names = destination.names(FOLDER)
    old = set(names) - manifests.retained(names, keep)
    if not old:
        return Thinned(0, 0)
    for name in old:
        destination.remove(FOLDER, name)
    return Thinned(len(old), remove_unused(destination))


def remove_unused(destination: Destination) -> int:
    """Remove the objects that no backup refers to; return their number.

    Raises BackupError, before anything is removed, if a manifest cannot be read.
    """
    with NameSet() as used, NameSet() as unused:
        for name in destination.names(FOLDER):
            manifest = manifests.read(destination, name)
            for part in manifest.parts.values():
                new = [each for each in part.objects if used.add(destination.name(each))]
                if part is manifest.parts[BLOBS]:
                    of = part.columns.index("sha256")
                    lines = manifests.Part(part.columns, 0, new)
                    for row in rows(destination, lines):
                        used.add(destination.name(row[of]))
        removed = 0
        for name in destination.objects():
            if name not in used and unused.add(name):
                removed += 1
                destination.remove_object(name)
    destination.sweep()
    return removed
