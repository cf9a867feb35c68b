"""What Weaviate does with classes and objects, as the suite's own server does it: in memory, every
object looked at. What Weaviate refuses is refused, with its words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from weaviate_filters import Refused, passes, tokens

Json = dict[str, Any]
Vector = npt.NDArray[np.float32]

MOST_RESULTS = 10_000
DEFAULT_LIMIT = 10
HYBRID_RESULTS = 100

_CLASS = re.compile(r"[A-Z][_0-9A-Za-z]{0,254}")
_PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}")
_VECTOR = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,229}")
_TENANT = re.compile(r"[A-Za-z0-9\-_]{1,64}")
_HNSW: Json = {
    **{"cleanupIntervalSeconds": 300, "distance": "cosine", "dynamicEfFactor": 8},
    **{"dynamicEfMax": 500, "dynamicEfMin": 100, "ef": -1, "efConstruction": 128},
    **{"filterStrategy": "acorn", "flatSearchCutoff": 40_000, "maxConnections": 32},
    **{"skip": False, "vectorCacheMaxObjects": 10**12, "skipDefaultQuantization": False},
    **{quantizer: {"enabled": False} for quantizer in ("bq", "pq", "rq", "sq", "multivector")},
}
_RESERVED = ("_additional", "_id", "id")


@dataclass
class Thing:
    """One object."""

    uuid: str
    properties: Json
    references: dict[str, list[str]]
    vectors: dict[str, Vector]
    terms: dict[str, Counter[str]]


@dataclass
class Shard:
    """The objects of a class or of one of its tenants, in the order in which they came."""

    things: dict[str, Thing] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)
    lengths: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    read_only: bool = False


class Class:
    """A class: its definition as it was sent, with what the server adds, and its shards."""

    def __init__(self, definition: Json) -> None:
        self.definition = definition
        self.name = str(definition["class"])
        self.tenants = bool(definition["multiTenancyConfig"]["enabled"])
        self.shards: dict[str, Shard] = {} if self.tenants else {"": Shard()}

    @property
    def properties(self) -> dict[str, Json]:
        return {each["name"]: each for each in self.definition["properties"]}

    @property
    def vectors(self) -> dict[str, str]:
        """The distance of each vector."""
        configs = self.definition["vectorConfig"]
        return {name: c["vectorIndexConfig"]["distance"] for name, c in configs.items()}

    def shard(self, tenant: str) -> Shard:
        if tenant and not self.tenants:
            raise Refused(
                f"class {self.name} has multi-tenancy disabled, but request was with tenant"
            )
        if self.tenants and not tenant:
            raise Refused(
                f"class {self.name} has multi-tenancy enabled, but request was without tenant"
            )
        if tenant not in self.shards:
            raise Refused(f"tenant not found: {tenant!r}")
        return self.shards[tenant]


class Engine:
    """All classes."""

    def __init__(self) -> None:
        self.classes: dict[str, Class] = {}

    def find(self, name: str) -> Class:
        if name not in self.classes:
            raise Refused(f"could not find class {name} in schema")
        return self.classes[name]

    def create(self, sent: Json) -> None:
        name = str(sent["class"])
        if not _CLASS.fullmatch(name):
            raise Refused(f"'{name}' is not a valid class name")
        for known in self.classes:
            if known == name:
                raise Refused(f"class name {name} already exists")
            if known.lower() == name.lower():
                raise Refused(f'class already exists: found similar class "{known}"')
        tenants = {"autoTenantActivation": False, "autoTenantCreation": False, "enabled": False}
        tenants |= sent.get("multiTenancyConfig", {})
        if tenants["autoTenantActivation"] and not tenants["enabled"]:
            raise Refused("can't enable autoTenantActivation on a non-multi-tenant class")
        vectors = {
            vector: {
                "vectorIndexType": "hnsw",
                **each,
                "vectorIndexConfig": {**_HNSW, **each.get("vectorIndexConfig", {})},
            }
            for vector, each in sent["vectorConfig"].items()
        }
        made = Class(
            {**sent, "multiTenancyConfig": tenants, "properties": [], "vectorConfig": vectors}
        )
        if wrong := [v for v in made.vectors if not _VECTOR.fullmatch(v)]:
            raise Refused(f"'{wrong[0]}' is not a valid vector name")
        self.classes[name] = made
        try:
            for each in sent.get("properties", []):
                self.add_property(name, each)
        except Refused:
            del self.classes[name]
            raise

    def add_property(self, class_: str, sent: Json) -> None:
        name, (type_,) = str(sent["name"]), sent["dataType"]
        if name in _RESERVED:
            raise Refused(f"'{name}' is a reserved property name")
        if not _PROPERTY.fullmatch(name):
            raise Refused(f"'{name}' is not a valid property name.")
        if type_[0].isupper() and type_ not in self.classes:
            raise Refused(f"property '{name}': reference to the unknown class {type_}")
        at = self.find(class_)
        if name.lower() in (known.lower() for known in at.properties):
            raise Refused(
                f'class "{class_}": conflict for property "{name}":'
                " already in use or provided multiple times"
            )
        text = type_ in ("text", "text[]")
        if sent.get("indexSearchable") and not text:
            raise Refused(f"`indexSearchable` is allowed only for text properties, not {name}")
        given = {key: value for key, value in sent.items() if value is not None}
        defaults = {"indexFilterable": True, "indexSearchable": text, "indexRangeFilters": False}
        at.definition["properties"].append({**defaults, **given})

    def put(
        self, class_: str, tenant: str, uuid: str, sent: Json, vectors: Mapping[str, Vector]
    ) -> None:
        """Store an object whole. Where the real server would guess a property, this one refuses."""
        at = self.find(class_)
        shard = at.shard(tenant)
        if shard.read_only:
            raise Refused("store is read-only due to: manually set by user")
        properties, references = {}, {}
        for name, value in sent.items():
            definition = at.properties.get(name)
            if definition is None:
                raise Refused(f"no such prop with name '{name}' found in class '{class_}'")
            (type_,) = definition["dataType"]
            if type_[0].isupper():
                references[name] = self._checked_references(at, name, type_, tenant, value)
            else:
                properties[name] = _checked(class_, name, type_, value)
        for name, vector in vectors.items():
            if name not in at.vectors:
                raise Refused(f"collection {class_} does not have configuration for vector {name}")
            length = shard.dimensions.setdefault(name, len(vector))
            if length != len(vector):
                raise Refused(
                    f"new node has a vector with length {len(vector)}."
                    f" Existing nodes have vectors with length {length}"
                )
        terms = {}
        for name, definition in at.properties.items():
            if definition["indexSearchable"] and name in properties:
                terms[name] = Counter(tokens(definition["tokenization"], properties[name]))
                if length := terms[name].total():  # what goes is not taken off again
                    shard.lengths[name] += length
                    shard.counted[name] += 1
        shard.things.pop(uuid, None)
        shard.things[uuid] = Thing(uuid, properties, references, dict(vectors), terms)

    def _checked_references(
        self, at: Class, name: str, target: str, tenant: str, uuids: Sequence[str]
    ) -> list[str]:
        to = self.find(target)
        for uuid in uuids:
            if uuid not in to.shard(tenant if to.tenants else "").things:
                raise Refused(
                    f"invalid cref: 'cref' {at.name}:{name}: no object with id {uuid} found"
                )
        return list(uuids)


def listed(things: Iterable[Thing], limit: int, offset: int, after: str) -> list[Thing]:
    """A page of objects: by id behind `after`, else in the order in which they came."""
    check_limit(limit, offset)
    found = list(things)
    if after:
        found = sorted((t for t in found if t.uuid > after), key=lambda t: t.uuid)
    return found[offset : offset + limit]


def check_limit(limit: int, offset: int = 0) -> None:
    """Refuse what Weaviate refuses by default."""
    if limit + offset > MOST_RESULTS:
        raise Refused(
            "query maximum results exceeded: the total limit calculated from the provided offset"
            f" '{offset}' and limit '{limit}' exceeds the configured value for"
            f" QUERY_MAXIMUM_RESULTS '{MOST_RESULTS}'"
        )


def nearest(
    at: Class, shard: Shard, things: Iterable[Thing], name: str, query: Vector, limit: int
) -> list[tuple[Thing, float]]:
    """The nearest objects with their distances."""
    check_limit(limit)
    if name not in at.vectors:
        raise Refused(f"class {at.name} does not have named vector {name or '(none)'} configured")
    having = [thing for thing in things if name in thing.vectors]
    if not shard.dimensions.get(name):
        return []
    if len(query) != shard.dimensions[name]:
        raise Refused(
            f"distance between entrypoint and query node: {len(query)} vs"
            f" {shard.dimensions[name]}: vector lengths don't match"
        )
    if not having:
        return []
    distances = _distances(at.vectors[name], query, np.stack([t.vectors[name] for t in having]))
    order = np.argsort(distances, kind="stable")[:limit]
    return [(having[i], float(distances[i])) for i in order]


def by_terms(
    at: Class, shard: Shard, things: Iterable[Thing], names: Sequence[str], query: str, limit: int
) -> list[tuple[Thing, float]]:
    """The best objects by BM25 over one property, without the factor k1 + 1, as Weaviate has it."""
    check_limit(limit)
    (name,) = names
    definition = at.properties.get(name)
    if definition is None or not definition["indexSearchable"]:
        raise Refused(f"Searching by property '{name}' requires inverted index.")
    config = at.definition["invertedIndexConfig"]["bm25"]
    k1, b = config["k1"], config["b"]
    mean = shard.lengths[name] / max(shard.counted[name], 1)
    wanted = Counter(tokens(definition["tokenization"], query))
    idf = {}
    for term in wanted:
        n = sum(term in t.terms.get(name, ()) for t in shard.things.values())
        idf[term] = np.log(1 + (len(shard.things) - n + 0.5) / (n + 0.5))
    hits = []
    for thing in things:
        held = thing.terms.get(name, Counter())
        norm = k1 * (1 - b + b * held.total() / mean) if mean else 1.0
        score = sum(
            times * idf[term] * held[term] / (held[term] + norm)
            for term, times in wanted.items()
            if term in held
        )
        if score:
            hits.append((thing, float(np.float32(score))))
    return sorted(hits, key=lambda hit: -hit[1])[:limit]


def fused(
    keywords: Sequence[tuple[Thing, float]], vectors: Sequence[tuple[Thing, float]], alpha: float
) -> list[tuple[Thing, float, str]]:
    """Relative score fusion, with the explanation."""
    legs = (
        ("keyword,bm25", 1 - alpha, [(t, score) for t, score in keywords]),
        ("vector,nearVector", alpha, [(t, 1 - distance) for t, distance in vectors]),
    )
    total: dict[str, tuple[Thing, float, str]] = {}
    for retriever, weight, hits in legs:
        values = [value for _, value in hits]
        for thing, value in hits:
            spread = max(values) - min(values)
            score = weight * ((value - min(values)) / spread if spread else 1.0)
            reply = (
                f"\nHybrid (Result Set {retriever}) Document {thing.uuid}: original score {value},"
                f" normalized score: {score}"
            )
            _, before, output = total.get(thing.uuid, (thing, 0.0, ""))
            total[thing.uuid] = (thing, before + score, f"{reply} - {output}" if output else reply)
    return sorted(total.values(), key=lambda each: (-each[1], each[0].uuid))


def filtered(at: Class, shard: Shard, filters: Any) -> list[Thing]:
    """The objects that pass."""
    things = list(shard.things.values())
    if filters is None:
        return things
    return [t for t in things if passes(filters, at.name, at.properties, t.uuid, t.properties)]


def check_tenant_name(name: str) -> None:
    """Refuse a tenant's name that Weaviate refuses."""
    if not _TENANT.fullmatch(name):
        raise Refused(f"tenant name {name!r} is invalid")


def _distances(metric: str, query: Vector, rows: npt.NDArray[np.float32]) -> Vector:
    match metric:
        case "cosine":
            lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
            found = 1 - rows @ query / np.where(lengths > 0, lengths, np.inf)
        case "dot":
            found = -(rows @ query)
        case "l2-squared":
            found = np.square(rows - query).sum(axis=1)
        case "hamming":
            found = (rows != query).sum(axis=1)
        case "manhattan":
            found = np.abs(rows - query).sum(axis=1)
        case _:
            raise Refused(f"unknown distance {metric}")
    return np.asarray(found, np.float32)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "date": (str,),
    "number": (float,),
    "boolean": (bool,),
}


def _checked(class_: str, name: str, type_: str, value: object) -> object:
    members = value if isinstance(value, list) else [value]
    plain = type_.removesuffix("[]")
    if isinstance(value, list) != type_.endswith("[]") or not all(
        isinstance(member, _TYPES[plain]) for member in members
    ):
        raise Refused(f"invalid {type_} property '{name}' on class '{class_}'")
    return value
