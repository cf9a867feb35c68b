"""Methods for the memory of a collection: statistics of feedback and judged searches."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from callslip.client import models
from callslip.client._sync.transport import Transport
from callslip.client.requests import JSON_LINES, line_of, path_of, without_none
from callslip.client.responses import parse_line


class Memory(Transport):
    """The endpoints for memory."""

    def show_memory(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> models.MemoryMessage:
        """Get a page of the memory, the most useful chunks first."""
        path = path_of("/v1/collections/{collection}/memory", collection=collection)
        params = without_none(tenant=tenant, limit=limit, after=after)
        return self._request_model(models.MemoryMessage, "GET", path, params=params)

    def reset_memory(self, collection: str, *, tenant: str | None = None) -> models.Forgotten:
        """Delete the memory of a collection or tenant."""
        path = path_of("/v1/collections/{collection}/memory/reset", collection=collection)
        return self._request_model(models.Forgotten, "POST", path, json=without_none(tenant=tenant))

    def export_memory(
        self, collection: str, *, tenant: str | None = None
    ) -> Generator[models.MemoryLine, None]:
        """Export the memory, a line for each chunk; `import_memory` takes these lines."""
        path = path_of("/v1/collections/{collection}/memory/export", collection=collection)
        for line in self.request_lines(path, params=without_none(tenant=tenant)):
            yield parse_line(models.MemoryLine, line, f"GET {path}")

    def import_memory(
        self,
        collection: str,
        lines: Iterable[models.MemoryLine | str],
        *,
        tenant: str | None = None,
    ) -> models.TakenIn:
        """Import an export; each line replaces the memory of its chunk."""
        path = path_of("/v1/collections/{collection}/memory/import", collection=collection)
        return self._request_model(
            models.TakenIn,
            "POST",
            path,
            params=without_none(tenant=tenant),
            content="".join(map(line_of, lines)).encode(),
            content_type=JSON_LINES,
            repeatable=True,
        )

    def list_examples(
        self, collection: str, *, limit: int | None = None
    ) -> Generator[models.JudgedSearchLine, None]:
        """Iterate over searches with judged hits, newest first, without their text."""
        path = path_of("/v1/collections/{collection}/ranking/examples", collection=collection)
        for line in self.request_lines(path, params=without_none(limit=limit)):
            yield parse_line(models.JudgedSearchLine, line, f"GET {path}")
