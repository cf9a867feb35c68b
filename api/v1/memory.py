"""/v1/collections/{name}/memory: show, export, import and reset the memory of chunks."""

import time
from collections.abc import Iterator

import numpy as np
from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import Field, ValidationError

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages.memory import (
    ChunkMemory,
    Forgotten,
    MemoryLine,
    MemoryMessage,
    OfTenant,
    TakenIn,
)
from callslip.api.v1.collections import CollectionPath, collection_of
from callslip.errors import InvalidRequest
from callslip.messages.values import Whole
from callslip.stores.chunk_stats import UNIT, ChunkStats
from callslip.stores.ledger import Ledger

blueprint = APIBlueprint("memory", __name__, abp_tags=[Tag(name="memory")])

LINES = "application/x-ndjson"

LONGEST_LINE = 4_000_000
"""Bytes: enough for a vector of 65,536 numbers and 20,000 entities."""

TOGETHER = 200
"""The number of lines that are imported or exported at a time."""


class MemoryQuery(OfTenant):
    """A page of the memory."""

    limit: Whole = Field(50, ge=1, le=500)
    after: str = Field("", max_length=64, description="`next_after` of the page before")


@blueprint.get("/v1/collections/<string:name>/memory", responses={200: MemoryMessage})
def show_memory(path: CollectionPath, query: MemoryQuery) -> Response:
    """Show the memory of a collection or of one of its tenants, the most useful chunks first."""
    collection_of(path.name, query.tenant)
    ledger = current().ledger
    memory, now = ledger.memory, time.time()
    half_life = current().settings.memory.half_life_weeks
    scope = memory.scope(path.name, query.tenant)
    sums = memory.sums(path.name, tenant=query.tenant)
    best = memory.best(path.name, tenant=query.tenant, limit=query.limit, after=query.after)
    return answer(
        MemoryMessage(
            collection=path.name,
            tenant=query.tenant,
            changes=scope.changes if ledger.reader is None else sums.useful + sums.useless,
            chunks=sums.chunks,
            useful=sums.useful,
            useless=sums.useless,
            centre_of=scope.questions if ledger.reader is None else 0,
            memories=[
                ChunkMemory.model_validate(
                    _plain(stats, ChunkMemory) | {"utility": stats.utility_now(now, half_life)}
                )
                for stats in best
            ],
            next_after=best[-1].chunk_id if len(best) == query.limit else None,
        )
    )


@blueprint.post("/v1/collections/<string:name>/memory/reset", responses={200: Forgotten})
def reset_memory(path: CollectionPath, body: OfTenant) -> Response:
    """Delete the memory of a collection or of one of its tenants."""
    collection_of(path.name, body.tenant)
    return answer(Forgotten(chunks=current().ledger.memory.reset(path.name, tenant=body.tenant)))


@blueprint.get(
    "/v1/collections/<string:name>/memory/export",
    responses={
        200: {
            "description": "a line of JSON for each chunk",
            "content": {LINES: {"schema": MemoryLine.model_json_schema()}},
        }
    },
)
def export_memory(path: CollectionPath, query: OfTenant) -> Response:
    """Export the memory, one line per chunk, in the form that `import` reads."""
    collection_of(path.name, query.tenant)
    return Response(_lines(current().ledger, path.name, query.tenant), content_type=LINES)


@blueprint.post(
    "/v1/collections/<string:name>/memory/import",
    responses={200: TakenIn},
    openapi_extensions={
        "requestBody": {"content": {LINES: {"schema": MemoryLine.model_json_schema()}}}
    },
)
def import_memory(path: CollectionPath, query: OfTenant) -> Response:
    """Import lines of an export; each line replaces the stored memory of its chunk.

    An unreadable line ends the import with an error that names its number; earlier lines, in groups
    of 200, may be stored. The same lines again change nothing.
    """
    collection_of(path.name, query.tenant)
    received, taken, group = 0, 0, list[ChunkStats]()
    for number, line in enumerate(_request_lines(), 1):
        group.append(_stats(line, number))
        received += 1
        if len(group) == TOGETHER:
            taken += current().ledger.memory.take_in(path.name, group, tenant=query.tenant)
            group = []
    taken += current().ledger.memory.take_in(path.name, group, tenant=query.tenant)
    return answer(TakenIn(chunks=taken, unknown=received - taken))


def _plain(stats: ChunkStats, message: type[ChunkMemory] | type[MemoryLine]) -> dict[str, object]:
    return {name: getattr(stats, name) for name in message.model_fields if name != "centroid"}


def _lines(ledger: Ledger, collection: str, tenant: str) -> Iterator[str]:
    after = ""
    while page := ledger.memory.page(collection, tenant=tenant, after=after, limit=TOGETHER):
        for stats in page:
            total = stats.question_sum
            mean = None if total is None else (total / (stats.questions * UNIT)).tolist()
            line = MemoryLine.model_validate(_plain(stats, MemoryLine) | {"centroid": mean})
            yield line.model_dump_json() + "\n"
        after = page[-1].chunk_id


def _request_lines() -> Iterator[bytes]:
    while line := request.stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InvalidRequest(f"a line is longer than {LONGEST_LINE} bytes")
        if line.strip():
            yield line


def _stats(text: bytes, number: int) -> ChunkStats:
    try:
        line = MemoryLine.model_validate_json(text)
        if (line.centroid is None) != (line.questions == 0) or line.questions > line.useful:
            raise ValueError("its numbers contradict each other")
        if abs(line.utility) > line.useful + line.useless:
            raise ValueError("its utility is greater than its outcomes make it")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "line"
        raise InvalidRequest(f"line {number}: {where}: {first['msg']}") from None
    except ValueError as error:
        raise InvalidRequest(f"line {number}: {error}") from None
    plain = line.model_dump(exclude={"centroid"})
    if line.centroid is None:
        return ChunkStats(**plain)
    total = np.rint(np.array(line.centroid) * line.questions * UNIT).astype(np.int64)
    return ChunkStats(**plain, question_sum=total)
