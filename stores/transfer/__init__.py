"""Moving collections: into a file and out of it, and from one store to another.

docs/moving.md says what an archive holds and what a move promises.
"""

from stores.transfer.arrival import import_archive
from stores.transfer.departure import export_collection
from stores.transfer.house import House, Progress, Report
from stores.transfer.migration import migrate

__all__ = ["House", "Progress", "Report", "export_collection", "import_archive", "migrate"]
