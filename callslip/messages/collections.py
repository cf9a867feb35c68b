"""Collections, tenants, and receipts of their deletions."""

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.messages.options import Options
from callslip.vocabulary import Metric, Vectors


class AttachedTable(Message):
    """The existing table, or collection in Chroma, of an attached collection."""

    table: str = Field(description="SCHEMA.TABLE, or DATABASE/COLLECTION in Chroma")
    vectors: Word[Vectors] = Field(
        description="`ours`: made by this installation's embedder; `previous`: by its previous"
        " embedder; `none`: by an unknown embedder"
    )
    server: str | None = Field(
        None,
        description="address of the Chroma server, shown to keys with the permission `admin`; null:"
        " it is a table in CrateDB, or the key lacks the permission",
    )


class NamedVector(Message):
    """A vector that the chunks of a collection have beside the default one."""

    embedder: str | None = Field(
        description="the model that makes it of every chunk; null: clients provide the vectors"
    )
    dimension: int
    metric: Word[Metric]


class Collection(Message):
    """Documents that are searched together."""

    name: str
    store: str
    embedder: str
    dimension: int
    metric: Word[Metric]
    vector_names: list[str] = Field(description="names of the vectors other than the default one")
    vectors: dict[str, NamedVector] = Field(
        default_factory=dict, description="the vectors other than the default one, by name"
    )
    tenants: bool
    analyzer: str
    options: Options
    created_at: float
    documents: int = Field(
        description="number of live documents; rows of an attached table do not count"
    )
    attached: AttachedTable | None = Field(
        None,
        description="the table, if it is an attached one (docs/cratedb-hybrid-search.md,"
        " docs/compat-chroma.md)",
    )


class Collections(Message):
    """Every collection, by name."""

    collections: list[Collection]


class Tenants(Message):
    """Every tenant of a collection, by name."""

    tenants: list[str]


class CollectionDeleted(Message):
    """A deleted collection: hidden already, removed soon."""

    collection: str


class Receipt(Message):
    """The counts of a deleted collection's or tenant's objects before and after its removal."""

    collection: str
    tenant: str = Field(description="empty: the whole collection")
    deleted_at: float
    removed_at: float | None = Field(description="null until the removal is complete")
    before: dict[str, int] = Field(description="objects in each part of each store, and files")
    after: dict[str, int] | None = Field(description="the same counts after the removal")


class Receipts(Message):
    """Receipts of every deletion under a collection's name, newest first."""

    receipts: list[Receipt]


class Tenant(Message):
    """A tenant of a collection."""

    tenant: str = Field(description="any name")
