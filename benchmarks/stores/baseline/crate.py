"""CrateDB's client and SQL, used directly without Callslip."""

from collections.abc import Sequence
from typing import Any

from crate import client

from benchmarks.stores.baseline.base import FIELDS, KIND, Baseline
from callslip.config.settings import Settings
from callslip.stores.records import ChunkRecord, Vector

TABLE = '"doc"."bare_chunk"'
_TEXTS = ("document_id", "parent_id", "section", "heading", "title", "filename", "lang")
COLUMNS = ("chunk_id", "body", "terms", "xs", "metadata", *FIELDS)


class BaselineCrate(Baseline):
    """One table; a batch is one bulk insert and a refresh."""

    def __init__(self, settings: Settings) -> None:
        self._connection: Any = client.connect(settings.crate.url, username=settings.crate.user)
        self._cursor: Any = self._connection.cursor()

    def create(self, dimension: int) -> None:
        self._cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        typed = (f'"{name}" {"TEXT" if name in _TEXTS else "BIGINT"}' for name in FIELDS)
        self._cursor.execute(
            f'CREATE TABLE {TABLE} ("chunk_id" TEXT PRIMARY KEY,'
            " \"body\" TEXT INDEX USING FULLTEXT WITH (analyzer = 'standard'),"
            " \"terms\" TEXT INDEX USING FULLTEXT WITH (analyzer = 'whitespace'),"
            f' "xs" FLOAT_VECTOR({dimension}), "metadata" OBJECT(DYNAMIC), {", ".join(typed)})'
            " CLUSTERED INTO 1 SHARDS WITH (number_of_replicas = 0)"
        )

    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        marks = ", ".join("?" for _ in COLUMNS)
        new = ", ".join(f'"{name}" = excluded."{name}"' for name in COLUMNS[1:])
        statement = (
            f"INSERT INTO {TABLE} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own
            f' ON CONFLICT ("chunk_id") DO UPDATE SET {new}'
        )
        rows = [
            (
                *(c.chunk_id, c.body, c.terms, c.vector.tolist(), dict(c.properties)),
                *(getattr(c, name) for name in FIELDS),
            )
            for c in chunks
        ]
        results = self._cursor.executemany(statement, rows)
        if any(result["rowcount"] < 0 for result in results):
            raise RuntimeError("a row was refused")
        self._cursor.execute(f"REFRESH TABLE {TABLE}")

    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        wanted = limit * (10 if kind else 1)  # the index ignores the filter
        return self._ids(f'KNN_MATCH("xs", ?, {wanted})', vector.tolist(), limit, kind)

    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        return self._ids('MATCH("terms", ?)', terms, limit, kind)

    def _ids(self, match: str, value: object, limit: int, kind: str | None) -> list[str]:
        only = f" AND \"metadata\"['{KIND}'] = ?" if kind else ""
        self._cursor.execute(
            f'SELECT "chunk_id", _score FROM {TABLE} WHERE {match}{only}'  # noqa: S608
            " ORDER BY _score DESC LIMIT ?",
            [value, *([kind] if kind else []), limit],
        )
        return [row[0] for row in self._cursor.fetchall()]

    def drop(self) -> None:
        self._cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self._connection.close()
