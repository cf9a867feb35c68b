"""The names of properties that a filter may mean."""

from collections.abc import Container, Set
from dataclasses import dataclass, field
from functools import partial

from callslip.ingestion.provided_chunks import ChunkScope
from callslip.retrieval.facets.readable import read_consistently
from callslip.stores.properties.filters import Where


def known_names(scope: ChunkScope, names: Set[str]) -> Container[str]:
    """The properties `names` that the collection ever had; for a reader, those that it may read.

    Whether a name is known decides how a filter is read, which tells of the property. To look up a
    name raises StoreDown while the readers of many documents change.
    """
    return names if scope.ledger.reader is None else _Readable(scope, names)


@dataclass(frozen=True)
class _Readable(Container[str]):
    """The names that a chunk has which the reader may read. Each is read from the store once."""

    scope: ChunkScope
    names: Set[str]
    _known: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name not in self.names:
            return False
        if name not in self._known:
            at, values = self.scope, partial(self._values, name)
            some = read_consistently(at.ledger, at.collection, at.tenant, values, among=None)
            self._known[name] = bool(some)
        return self._known[name]

    def _values(self, name: str, where: Where | None) -> list[object]:
        at = self.scope
        return list(at.store.aggregate_group_by(at.collection, name, where, tenant=at.tenant))
