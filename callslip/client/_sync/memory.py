"""What a collection has learned."""

from collections.abc import Generator, Iterable

from callslip.client import models
from callslip.client._sync.transport import Transport
from callslip.client.wire import LINES, given, line_of, path_of, understood_line


class Memory(Transport):
    """What is done with memory."""

    def show_memory(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> models.MemoryMessage:
        """What it has learned, the most useful chunks first."""
        path = path_of("/v1/collections/{collection}/memory", collection=collection)
        params = given(tenant=tenant, limit=limit, after=after)
        return self._asked(models.MemoryMessage, "GET", path, params=params)

    def reset_memory(self, collection: str, *, tenant: str | None = None) -> models.Forgotten:
        """Forget all of it."""
        path = path_of("/v1/collections/{collection}/memory/reset", collection=collection)
        return self._asked(models.Forgotten, "POST", path, json=given(tenant=tenant))

    def export_memory(
        self, collection: str, *, tenant: str | None = None
    ) -> Generator[models.MemoryLine, None]:
        """All of it, chunk by chunk, as `import_memory` takes it."""
        path = path_of("/v1/collections/{collection}/memory/export", collection=collection)
        for line in self.request_lines(path, params=given(tenant=tenant)):
            yield understood_line(models.MemoryLine, line, f"GET {path}")

    def import_memory(
        self,
        collection: str,
        lines: Iterable[models.MemoryLine | str],
        *,
        tenant: str | None = None,
    ) -> models.TakenIn:
        """Take in an export, each line in the place of what is remembered of its chunk."""
        path = path_of("/v1/collections/{collection}/memory/import", collection=collection)
        return self._asked(
            models.TakenIn,
            "POST",
            path,
            params=given(tenant=tenant),
            content="".join(map(line_of, lines)).encode(),
            content_type=LINES,
            repeatable=True,
        )

    def list_examples(
        self, collection: str, *, limit: int | None = None
    ) -> Generator[models.JudgedSearchLine, None]:
        """Searches of which hits helped, newest first, without their text."""
        path = path_of("/v1/collections/{collection}/ranking/examples", collection=collection)
        for line in self.request_lines(path, params=given(limit=limit)):
            yield understood_line(models.JudgedSearchLine, line, f"GET {path}")
