"""Facet values and their vectors in the ledger: a soft prior compares them with the question."""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import CollectionNotFound, TenantNotFound
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.records import Failure
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT
from callslip.stores.records import Vector

LONGEST_VALUE = 256
"""The maximum length of a value in characters; a longer text is not a name."""

_B, _V = schema.facets.c, schema.facet_values.c


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet.

    `vector` embeds its description, aliases and sample sentences, shape (d,). `probes` are other
    sentences of the value, embedded as questions, shape (k, d), which calibrate the weights;
    `probes_apart` says that they come from other documents than the samples. `fingerprint` is a
    hash of the inputs.
    """

    facet: str
    value: str
    aliases: tuple[str, ...]
    description: str
    fingerprint: str
    model: str
    vector: Vector
    probes: Vector
    probes_apart: bool
    chunks: int
    updated_at: float = 0.0


@dataclass(frozen=True)
class FacetBuild:
    """The last build of a facet; `ended_at` is None while it is running.

    `calibration` is that of `retrieval.facets.weights`; None if the values cannot be told apart.
    """

    facet: str
    stamp: str
    calibration: Mapping[str, float] | None
    run: str
    began_at: float
    ended_at: float | None
    counts: Mapping[str, int]
    failure: Failure | None


@dataclass(frozen=True)
class FacetScope:
    """A collection, or one tenant of it."""

    collection: str
    tenant: str = ""


class FacetValues:
    """The facets of each scope, which is a collection or a tenant of one.

    Methods that write raise CollectionNotFound or TenantNotFound if the scope was deleted, so that
    a late build leaves no rows after a deletion.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, at: FacetScope, facet: str, run: str = "") -> None:
        """Record that a build of a facet began; `run` identifies the request."""
        began = {"run": run, "began_at": time.time(), "ended_at": None, "counts": {}, "error": None}
        with self._database.writing() as connection:
            _check(connection, at)
            updated = connection.execute(
                update(schema.facets).where(_of(at, facet)).values(**began)
            )
            if not updated.rowcount:
                connection.execute(
                    insert(schema.facets).values(**_key(at, facet), stamp=_token(), **began)
                )

    def count(self, at: FacetScope, facet: str, counts: Mapping[str, int]) -> None:
        """Update the progress counts of the build."""
        self._update(at, facet, counts=dict(counts))

    def finish(
        self,
        at: FacetScope,
        facet: str,
        counts: Mapping[str, int],
        calibration: Mapping[str, float] | None,
    ) -> None:
        """End a build."""
        new = None if calibration is None else dict(calibration)
        with self._database.writing() as connection:
            old = connection.execute(select(_B.calibration).where(_of(at, facet))).scalar()
            connection.execute(
                update(schema.facets)
                .where(_of(at, facet))
                .values(
                    counts=dict(counts),
                    calibration=new,
                    ended_at=time.time(),
                    **({} if old == new else {"stamp": _token()}),
                )
            )

    def fail(self, at: FacetScope, facet: str, failure: Failure) -> None:
        """End a build with a failure."""
        self._update(at, facet, ended_at=time.time(), error=failure.as_json())

    def fingerprints(self, at: FacetScope, facet: str) -> dict[str, str]:
        """The fingerprint of each value that has a vector."""
        query = select(_V.value, _V.fingerprint).where(_values(at, facet))
        with self._database.reading() as connection:
            return {row.value: row.fingerprint for row in connection.execute(query)}

    def put(self, at: FacetScope, facet: str, values: Sequence[FacetValue]) -> None:
        """Store values of a facet; an existing value is replaced."""
        dialect = sqlite if self._database.is_sqlite else postgresql
        rows = [_row(at, value) for value in values]
        put = dialect.insert(schema.facet_values)
        new = {c.name: put.excluded[c.name] for c in schema.facet_values.c if not c.primary_key}
        keys = [c.name for c in schema.facet_values.primary_key]
        with self._database.writing() as connection:
            _check(connection, at)
            if rows:
                connection.execute(put.on_conflict_do_update(index_elements=keys, set_=new), rows)
            _restamp(connection, at, facet)

    def recount(self, at: FacetScope, facet: str, chunks: Mapping[str, int]) -> None:
        """Update the number of chunks of each value, without a change of the facet's stamp."""
        with self._database.writing() as connection:
            for value, number in chunks.items():
                connection.execute(
                    update(schema.facet_values)
                    .where(_values(at, facet), _V.value == value, _V.chunks != number)
                    .values(chunks=number)
                )

    def drop(self, at: FacetScope, facet: str, values: Iterable[str]) -> None:
        """Delete values of a facet."""
        gone = list(values)
        with self._database.writing() as connection:
            for start in range(0, len(gone), IDS_PER_STATEMENT):
                some = gone[start : start + IDS_PER_STATEMENT]
                connection.execute(
                    delete(schema.facet_values).where(_values(at, facet), _V.value.in_(some))
                )
            _restamp(connection, at, facet)

    def keep_only(self, at: FacetScope, facets: Iterable[str]) -> None:
        """Delete every facet of the scope except these."""
        current = list(facets)
        with self._database.writing() as connection:
            for table in (schema.facet_values, schema.facets):
                of = table.c
                connection.execute(
                    delete(table).where(
                        of.collection == at.collection,
                        of.tenant == at.tenant,
                        of.facet.not_in(current),
                    )
                )

    def builds(self, at: FacetScope) -> list[FacetBuild]:
        """The last build of each facet, by name."""
        query = (
            select(schema.facets)
            .where(_B.collection == at.collection, _B.tenant == at.tenant)
            .order_by(_B.facet)
        )
        with self._database.reading() as connection:
            return [_build(row) for row in connection.execute(query)]

    def stamps(self, at: FacetScope) -> dict[str, str]:
        """The stamp of each facet, which changes with every change of the facet's values."""
        query = select(_B.facet, _B.stamp).where(
            _B.collection == at.collection, _B.tenant == at.tenant
        )
        with self._database.reading() as connection:
            return {row.facet: row.stamp for row in connection.execute(query)}

    def values(self, at: FacetScope, facet: str) -> list[FacetValue]:
        """The values of a facet, the most frequent first, then by name."""
        query = (
            select(schema.facet_values)
            .where(_values(at, facet))
            .order_by(_V.chunks.desc(), _V.value)
        )
        with self._database.reading() as connection:
            return [_value(row) for row in connection.execute(query)]

    def _update(self, at: FacetScope, facet: str, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(update(schema.facets).where(_of(at, facet)).values(**values))


def _key(at: FacetScope, facet: str) -> dict[str, str]:
    return {"collection": at.collection, "tenant": at.tenant, "facet": facet}


def _of(at: FacetScope, facet: str) -> Any:
    return (_B.collection == at.collection) & (_B.tenant == at.tenant) & (_B.facet == facet)


def _values(at: FacetScope, facet: str) -> Any:
    return (_V.collection == at.collection) & (_V.tenant == at.tenant) & (_V.facet == facet)


def _restamp(connection: Connection, at: FacetScope, facet: str) -> None:
    connection.execute(update(schema.facets).where(_of(at, facet)).values(stamp=_token()))


def _token() -> str:
    return uuid.uuid4().hex


def _check(connection: Connection, at: FacetScope) -> None:
    """Lock the scope's row, so that the scope cannot be deleted before this transaction ends."""
    of, tenants = schema.collections.c, schema.tenants.c
    there = select(of.name).where(of.name == at.collection, of.deleted_at.is_(None))
    if connection.scalar(there.with_for_update(read=True)) is None:
        raise CollectionNotFound(f"collection {at.collection!r} does not exist")
    if not at.tenant:
        return
    mine = (tenants.collection == at.collection) & (tenants.name == at.tenant)
    open_ = select(tenants.name).where(mine, tenants.deleted_at.is_(None))
    if connection.scalar(open_.with_for_update(read=True)) is None:
        raise TenantNotFound(f"Collection {at.collection} has no tenant {at.tenant!r}.")


def _row(at: FacetScope, value: FacetValue) -> dict[str, Any]:
    return {
        **value.__dict__,
        "collection": at.collection,
        "tenant": at.tenant,
        "aliases": list(value.aliases),
        "vector": value.vector.astype("<f4").tobytes(),
        "probes": value.probes.astype("<f4").tobytes(),
        "updated_at": time.time(),
    }


def _value(row: Any) -> FacetValue:
    vector = np.frombuffer(row.vector, "<f4").astype(np.float32)
    return FacetValue(
        facet=row.facet,
        value=row.value,
        aliases=tuple(row.aliases),
        description=row.description,
        fingerprint=row.fingerprint,
        model=row.model,
        vector=vector,
        probes=np.frombuffer(row.probes, "<f4").astype(np.float32).reshape(-1, len(vector)),
        probes_apart=row.probes_apart,
        chunks=row.chunks,
        updated_at=row.updated_at,
    )


def _build(row: Any) -> FacetBuild:
    return FacetBuild(
        facet=row.facet,
        stamp=row.stamp,
        calibration=row.calibration,
        run=row.run,
        began_at=row.began_at,
        ended_at=row.ended_at,
        counts=row.counts,
        failure=Failure(**row.error) if row.error else None,
    )
