"""Exports collections to files, imports them, and moves them from one store to another.

docs/moving.md explains the contents of an archive and the guarantees of a move.
"""

from callslip.stores.transfer.exporting import export_collection
from callslip.stores.transfer.importing import import_archive
from callslip.stores.transfer.migration import Rebuild, migrate, rebuild
from callslip.stores.transfer.reports import Progress, Report

__all__ = [
    "Progress",
    "Rebuild",
    "Report",
    "export_collection",
    "import_archive",
    "migrate",
    "rebuild",
]
