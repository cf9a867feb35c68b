"""The calls of Weaviate's gRPC interface that its client makes, over the engine."""

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import numpy as np
from weaviate.proto.v1 import (
    aggregate_pb2,
    base_search_pb2,
    batch_delete_pb2,
    batch_pb2,
    properties_pb2,
    search_get_pb2,
    tenants_pb2,
)
from weaviate_engine import (
    DEFAULT_LIMIT,
    HYBRID_RESULTS,
    MOST_RESULTS,
    Class,
    Engine,
    Shard,
    Thing,
    Vector,
    by_terms,
    check_limit,
    filtered,
    fused,
    listed,
    nearest,
)
from weaviate_filters import Refused

Hit = tuple[Thing, dict[str, Any]]
"""An object and what is said of it beside."""


def search(engine: Engine, request: Any) -> Any:
    """`Search`: a list, a leg or both."""
    at, shard, things = _among(engine, request)
    limit = request.limit or DEFAULT_LIMIT
    hits: list[Hit]
    if request.HasField("hybrid_search"):
        hits = _hybrid(at, shard, things, request.hybrid_search, limit)
    elif request.HasField("near_vector"):
        sent = request.near_vector
        (name,) = sent.targets.target_vectors or [""]
        query = _vector(sent.vectors[0].vector_bytes if sent.vectors else sent.vector_bytes)
        found = nearest(at, shard, things, name, query, limit)
        hits = [(thing, {"distance": distance}) for thing, distance in found]
    elif request.HasField("bm25_search"):
        sent = request.bm25_search
        scored = by_terms(at, shard, things, sent.properties, sent.query, limit)
        hits = [(thing, {"score": score}) for thing, score in scored]
    else:
        if request.after and request.HasField("filters"):
            raise Refused("where cannot be set with after and limit parameters")
        hits = [(thing, {}) for thing in listed(things, limit, request.offset, request.after)]
    reply = search_get_pb2.SearchReply()
    reply.results.extend(_result(at, request, thing, answer_text) for thing, answer_text in hits)
    return reply


def batch_objects(engine: Engine, request: Any) -> Any:
    """`BatchObjects`: each alone; of those that a read-only shard refuses the first."""
    errors: list[tuple[int, str]] = []
    for i, sent in enumerate(request.objects):
        vectors = {each.name: _vector(each.vector_bytes) for each in sent.vectors}
        try:
            engine.put(sent.collection, sent.tenant, sent.uuid, _properties(sent), vectors)
        except Refused as error:
            if "read-only" not in str(error) or not errors:
                errors.append((i, str(error)))
    reply = batch_pb2.BatchObjectsReply()
    reply.errors.extend(
        batch_pb2.BatchObjectsReply.BatchError(index=i, error=error) for i, error in errors
    )
    return reply


def batch_delete(engine: Engine, request: Any) -> Any:
    """`BatchDelete`: at most the most results of a query."""
    _, shard, things = _among(engine, request)
    found = things[:MOST_RESULTS]
    if shard.read_only and found:
        return batch_delete_pb2.BatchDeleteReply(failed=1, matches=len(found), successful=0)
    for thing in found:
        del shard.things[thing.uuid]
    return batch_delete_pb2.BatchDeleteReply(matches=len(found), successful=len(found))


def tenants_get(engine: Engine, request: Any) -> Any:
    """`TenantsGet`."""
    at = engine.find(request.collection)
    if not at.tenants:
        raise Refused(f"multi-tenancy is not enabled for class {at.name!r}")
    wanted = request.names.values if request.HasField("names") else at.shards
    hot = tenants_pb2.TENANT_ACTIVITY_STATUS_HOT
    reply = tenants_pb2.TenantsGetReply()
    reply.tenants.extend(
        tenants_pb2.Tenant(name=name, activity_status=hot) for name in wanted if name in at.shards
    )
    return reply


def aggregate(engine: Engine, request: Any) -> Any:
    """`Aggregate`: counts, groups, and of numbers their extremes."""
    at, _, things = _among(engine, request)
    reply = aggregate_pb2.AggregateReply()
    if not request.HasField("group_by"):
        reply.single_result.objects_count = len(things)
        for sent in request.aggregations:
            made = reply.single_result.aggregations.aggregations.add(property=sent.property)
            _aggregate_one(at, sent, made, things)
        return reply
    name = request.group_by.property
    if name not in at.properties:
        raise Refused(f"no such prop with name '{name}' found in class '{at.name}' in the schema")
    counted: Counter[Any] = Counter()
    for thing in things:
        held = thing.properties.get(name, [])
        counted.update(dict.fromkeys(held if isinstance(held, list) else [held], 1))
    reply.grouped_results.SetInParent()
    for value, count in counted.most_common(request.limit or 100):
        group = reply.grouped_results.groups.add(objects_count=count)
        group.grouped_by.path.append(name)
        kind = {bool: "boolean", float: "number", str: "text"}[type(value)]
        setattr(group.grouped_by, kind, value)
    return reply


def _aggregate_one(at: Class, sent: Any, made: Any, things: list[Thing]) -> None:
    kind = sent.WhichOneof("aggregation")
    if sent.property not in at.properties:
        raise Refused(f"no such prop with name '{sent.property}' found in class '{at.name}'")
    held = [t.properties[sent.property] for t in things if sent.property in t.properties]
    getattr(made, kind).SetInParent()
    if kind == "number" and held:
        made.number.maximum, made.number.minimum = max(held), min(held)
    elif kind == "text":
        made.text.count = len(held)
        for value, count in Counter(held).most_common(sent.text.top_occurences_limit or 5):
            made.text.top_occurences.items.add(value=value, occurs=count)
    elif kind == "date":
        made.date.count = len(held)


def _hybrid(at: Class, shard: Shard, things: list[Thing], sent: Any, limit: int) -> list[Hit]:
    check_limit(limit)
    depth = max(limit, HYBRID_RESULTS)
    alpha = sent.alpha_param if sent.use_alpha_param else sent.alpha
    (name,) = sent.targets.target_vectors or sent.target_vectors
    if sent.fusion_type != base_search_pb2.Hybrid.FUSION_TYPE_RELATIVE_SCORE:
        raise Refused("only the relative score fusion is known here")
    query = _vector(_hybrid_vector(sent))
    keywords = by_terms(at, shard, things, sent.properties, sent.query, depth)
    vectors = nearest(at, shard, things, name, query, depth)
    hits = fused(keywords, vectors, alpha)[:limit]
    return [(thing, {"score": score, "explain_score": output}) for thing, score, output in hits]


def _hybrid_vector(sent: Any) -> bytes:
    for vectors in (
        sent.vectors,
        sent.near_vector.vectors,
        [v for each in sent.near_vector.vector_for_targets for v in each.vectors],
    ):
        if vectors:
            return bytes(vectors[0].vector_bytes)
    return bytes(sent.vector_bytes or sent.near_vector.vector_bytes)


def _among(engine: Engine, request: Any) -> tuple[Class, Shard, list[Thing]]:
    at = engine.find(request.collection)
    shard = at.shard(request.tenant)
    filters = request.filters if request.HasField("filters") else None
    return at, shard, filtered(at, shard, filters)


def _result(at: Class, request: Any, thing: Thing, answer_text: Mapping[str, Any]) -> Any:
    result = search_get_pb2.SearchResult()
    metadata = result.metadata
    metadata.id, metadata.id_as_bytes = thing.uuid, UUID(thing.uuid).bytes
    for name, value in answer_text.items():
        if getattr(request.metadata, name):
            setattr(metadata, name, value)
            setattr(metadata, f"{name}_present", True)
    wanted = thing.vectors if request.metadata.vector else request.metadata.vectors
    for name in wanted:
        if name in thing.vectors:
            packed = np.asarray(thing.vectors[name], "<f4").tobytes()
            metadata.vectors.add(name=name, vector_bytes=packed, type=1)
    sent_request = request.properties
    for name in (
        thing.properties
        if sent_request.return_all_nonref_properties
        else sent_request.non_ref_properties
    ):
        if name not in at.properties:
            raise Refused(f"no such prop with name '{name}' found in class '{at.name}'")
        result.properties.non_ref_props.fields[name].CopyFrom(
            _value(at.properties[name]["dataType"][0], thing.properties.get(name))
        )
    for ref in sent_request.ref_properties:
        made = result.properties.ref_props.add(prop_name=ref.reference_property)
        for uuid in thing.references.get(ref.reference_property, []):
            metadata = made.properties.add().metadata
            metadata.id, metadata.id_as_bytes = uuid, UUID(uuid).bytes
    return result


def _value(type_: str, value: Any) -> Any:
    made = properties_pb2.Value()
    if value is None:
        made.null_value = 0
        return made
    match type_:
        case "text":
            made.text_value = value
        case "number":
            made.number_value = value
        case "boolean":
            made.bool_value = value
        case "date":
            made.date_value = value
        case "text[]":
            made.list_value.text_values.values.extend(value)
        case "boolean[]":
            made.list_value.bool_values.values.extend(value)
        case "number[]":
            made.list_value.number_values.values = struct.pack(f"<{len(value)}d", *value)
        case _:
            raise Refused(f"type {type_} is not known here")
    return made


def _properties(sent: Any) -> dict[str, Any]:
    given = sent.properties
    found: dict[str, Any] = dict(given.non_ref_properties.items())
    for each in (*given.text_array_properties, *given.boolean_array_properties):
        found[each.prop_name] = list(each.values)
    for each in given.number_array_properties:
        packed = each.values_bytes
        found[each.prop_name] = list(
            struct.unpack(f"<{len(packed) // 8}d", packed) if packed else each.values
        )
    for each in given.single_target_ref_props:
        found[each.prop_name] = list(each.uuids)
    return found


def _vector(packed: bytes) -> Vector:
    return np.frombuffer(packed, "<f4").astype(np.float32)


CALLS: Mapping[str, Callable[[Engine, Any], Any]] = {
    "Search": search,
    "BatchObjects": batch_objects,
    "BatchDelete": batch_delete,
    "TenantsGet": tenants_get,
    "Aggregate": aggregate,
}
"""By the method's name."""
