"""The tools of the MCP server, each a request or two to the desk.

A tool's docstring is its description: it is written for the model that calls it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import anyio
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field, ValidationError

from callslip.errors import (
    CallslipError,
    DocumentError,
    DocumentNotFound,
    InvalidRequest,
    KeyRefused,
    TraceNotFound,
    TransientError,
)
from callslip.keys import bearer
from cli.client import Client
from cli.mcp_arguments import AsOf, Collection, Conditions, Tenant, Text
from cli.mcp_files import open_within
from cli.mcp_results import (
    AnswerResult,
    DocumentResult,
    FeedbackResult,
    IngestResult,
    Passage,
    SearchResult,
    as_text,
)

Request = Context[Any, Any]

TEXT_CHARACTERS = 20_000
"""Of a document's text in one answer, about 5,000 tokens of English."""

LONGEST_TEXT = 2_000_000
"""Characters that a call may bring; larger documents go in as files."""

LONGEST_WAIT = 300.0
POLL_SECONDS = 0.5

TRACE_SECONDS = 1.0
"""A search is recorded just after its answer went out."""


@dataclass(frozen=True)
class Scope:
    """What a server may be asked about; None: anything, and no files."""

    collection: str | None = None
    tenant: str | None = None
    files: Path | None = None

    def holds(self, found: dict[str, Any]) -> bool:
        """Whether a document, or a search, is of this collection and tenant."""
        return self.collection in (None, found["collection"]) and self.tenant in (
            None,
            found["tenant"],
        )


class Tools:
    """The tools over one desk; they run in threads, and share its connections."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client, self._scope = client, scope

    def search(
        self,
        ctx: Request,
        collection: Collection,
        query: Annotated[
            Text, Field(min_length=1, description="a question or words, English or Korean")
        ],
        tenant: Tenant = "",
        top: Annotated[int, Field(ge=1, le=50, description="most passages")] = 10,
        as_of: AsOf = "",
        having_all: Conditions = None,
        having_any: Conditions = None,
    ) -> SearchResult:
        """Find passages of the documents by meaning and by words, best first.

        Use it to look for what documents say on something, and to compare several passages; use
        `answer` where one question wants one answer. Ask with the user's own words: English and
        Korean are both understood, and names or numbers are found as they are written. Where
        nothing fits, ask with other words, leave conditions out, or set as_of to `any`.
        `get_document` reads what stands around a passage: start a little before its span. When
        passages turn out to help, or not to, say so with `feedback` and this trace_id.
        """
        asked = {
            "collection": collection,
            "query": query,
            "top": top,
            **_given(tenant=tenant, as_of=as_of, having_all=having_all, having_any=having_any),
        }
        with telling():
            found = self._desk(ctx).search(asked)
            return SearchResult(
                trace_id=found["trace_id"],
                hits=[Passage.model_validate(hit | _validity(hit)) for hit in found["hits"]],
                as_of=found["as_of"],
                cut=found["cut"],
                partial=found["partial"],
            )

    def answer(
        self,
        ctx: Request,
        collection: Collection,
        question: Annotated[Text, Field(min_length=1, description="in English or Korean")],
        tenant: Tenant = "",
        thread_id: Annotated[
            Text,
            Field(
                pattern=r"^[A-Za-z0-9._-]{0,64}$",
                description="names a conversation, so that `and for twins?` is understood",
            ),
        ] = "",
        as_of: AsOf = "",
        having_all: Conditions = None,
    ) -> Annotated[CallToolResult, AnswerResult]:
        """Answer a question from the documents alone, each sentence with its citations [n].

        It is checked before it is given: an answer that the passages do not support is not given,
        and `answered` is false. Say then that the documents do not tell, and show what came
        nearest; do not fill the gap yourself. Keep the [n] when you pass an answer on, and name
        the title behind each. Send the same thread_id with questions that lean on earlier ones.
        """
        asked = {
            "collection": collection,
            "question": question,
            **_given(tenant=tenant, thread_id=thread_id, as_of=as_of, having_all=having_all),
        }
        with telling():
            found = self._desk(ctx).post("/v1/answer", asked)
            told = {key: found["verdict"][key] for key in ("reason", "confidence")}
            answer = AnswerResult.model_validate(found | told)
        return CallToolResult(
            content=[TextContent(type="text", text=as_text(answer))],
            structured_content=answer.model_dump(mode="json"),
        )

    def get_document(
        self,
        ctx: Request,
        document_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,64}$")],
        start: Annotated[int, Field(ge=0, description="first character")] = 0,
        end: Annotated[
            int | None, Field(ge=0, description=f"at most {TEXT_CHARACTERS:,} after start")
        ] = None,
    ) -> DocumentResult:
        """Read a document: its state and properties, and a part of its text.

        Spans of passages and citations are characters of this text. One call gives at most 20,000
        characters; where next_start is set, more follows: call again with it as start. Also tells
        how far a document is that was sent with `ingest`: searches find it once it is live.
        """
        last = start + TEXT_CHARACTERS
        with telling():
            desk = self._desk(ctx)
            found = self._document(desk, document_id)
            try:
                bounds = {"start": start, "end": last if end is None else min(end, last)}
                part = desk.get(f"/v1/documents/{quote(document_id, safe='')}/text", **bounds)
            except DocumentNotFound:  # nothing is extracted yet, or it is deleted
                part = {"text": "", "start": 0, "end": 0, "length": 0}
            error = found["error"]
            return DocumentResult.model_validate(
                found
                | part
                | {
                    "error": error and f"{error['detail']} {error['advice']}",
                    "next_start": part["end"] if part["end"] < part["length"] else None,
                }
            )

    async def ingest(
        self,
        ctx: Request,
        collection: Collection,
        name: Annotated[
            Text,
            Field(min_length=1, max_length=1024, description="a path-like name, as notes/trip.md"),
        ],
        text: Annotated[
            Text,
            Field(max_length=LONGEST_TEXT, description="the whole text; Markdown headings count"),
        ] = "",
        path: Annotated[
            Text,
            Field(
                max_length=4096, description="instead of text: a file, from the served folder on"
            ),
        ] = "",
        tenant: Tenant = "",
        wait_seconds: Annotated[
            float, Field(ge=0, le=LONGEST_WAIT, description="how long to wait until it is live")
        ] = 30.0,
    ) -> IngestResult:
        """Put a document into a collection, so that searches find it.

        A document is known by its name in its collection: the same name replaces what it held
        before, the same content again does nothing. A collection that does not exist is made.
        Waits until searches find the document; where the time is over before, it goes on by
        itself, and `get_document` with the document_id tells how far it is. Do not send it again.
        """
        began = time.monotonic()
        with telling():
            desk = self._desk(ctx)
            sent = await run_sync(self._submit, desk, collection, name, text, path, tenant)
            told = 0
            while True:
                found = await run_sync(desk.get, f"/v1/documents/{sent['document_id']}")
                state = found["state"] if found["version"] == sent["version"] else "superseded"
                done, steps = _progress(found)
                if done > told:
                    told = done
                    await ctx.report_progress(done, steps, f"{name}: {state}")
                if state in ENDS or time.monotonic() - began >= wait_seconds:
                    break
                await anyio.sleep(POLL_SECONDS)
            if state == "failed":
                error = found["error"]
                raise DocumentError(
                    f"{name!r} (document {sent['document_id']}) failed: {error['detail']}",
                    hint=error["advice"],
                )
        return IngestResult(
            document_id=sent["document_id"],
            version=sent["version"],
            outcome=sent["outcome"],
            state=state,
            steps_done=done,
            steps=steps,
            advice=ENDS.get(state, f"Not live yet. {_LATER}"),
        )

    def feedback(
        self,
        ctx: Request,
        trace_id: Annotated[
            str, Field(pattern=r"^[0-9A-Za-z-]{1,64}$", description="of the search or answer")
        ],
        verdict: Literal["helpful", "unhelpful"],
        chunk_ids: Annotated[
            list[str] | None, Field(max_length=200, description="of the passages it is about")
        ] = None,
        citations: Annotated[
            list[int] | None, Field(max_length=200, description="numbers of an answer's citations")
        ] = None,
    ) -> FeedbackResult:
        """Say that passages of a search, or citations of an answer, helped or did not.

        Such questions then find them sooner, or later, for everyone. Give it once it is known what
        helped: when a user says so, or when an answer was made of these passages. Name chunk_ids
        of a search's hits, or numbers of an answer's citations.
        """
        if not chunk_ids and not citations:
            raise ToolError("Name chunk_ids of hits, or numbers of an answer's citations.")
        body = {"trace_id": trace_id, "verdict": verdict, "user": "mcp"}
        with telling():
            desk = self._desk(ctx)
            self._check_trace(desk, trace_id)
            found = desk.post(
                "/v1/feedback", body | _given(chunk_ids=chunk_ids, citations=citations)
            )
            return FeedbackResult.model_validate(found)

    def _desk(self, ctx: Request) -> Client:
        """Over HTTP the caller's own key goes on to the desk; over stdio that of the settings."""
        headers = ctx.headers
        if headers is None:
            return self._client
        given = bearer(headers.get("authorization"))
        try:
            return self._client.with_key(None if given is None else given.decode("ascii"))
        except UnicodeDecodeError:
            raise KeyRefused("the key is not that of the desk") from None

    def _document(self, desk: Client, document_id: str) -> dict[str, Any]:
        """A document of the scope; that of another is not told from one that is not there."""
        missing = DocumentNotFound(f"no document {document_id!r}")
        try:
            found = desk.get(f"/v1/documents/{quote(document_id, safe='')}")
        except DocumentNotFound:
            raise missing from None
        if not self._scope.holds(found):
            raise missing
        return found

    def _check_trace(self, desk: Client, trace_id: str) -> None:
        """That a search is of the scope; where that is everything, the desk is not asked."""
        if self._scope.collection is None and self._scope.tenant is None:
            return
        missing = TraceNotFound(f"no search {trace_id!r}")
        until = time.monotonic() + TRACE_SECONDS
        while True:
            try:
                trace = desk.get(f"/debug/trace/{trace_id}")["trace"]
                break
            except TraceNotFound:
                if time.monotonic() > until:
                    raise missing from None
                time.sleep(TRACE_SECONDS / 10)
        if not self._scope.holds(trace):
            raise missing

    def _submit(
        self, desk: Client, collection: str, name: str, text: str, path: str, tenant: str
    ) -> dict[str, Any]:
        if bool(text.strip()) == bool(path):
            raise InvalidRequest("send either text or path", hint="Send one of them, not empty.")
        if path and self._scope.files is None:
            raise InvalidRequest(
                "this server reads no files", hint="Send text; `--files DIR` would allow a folder."
            )
        desk.create_collection(collection, tenants=True if tenant else None)
        if self._scope.files is None or not path:
            body = {"name": name, "text": text, "tenant": tenant}
            return desk.post(f"/v1/collections/{quote(collection, safe='')}/documents", body)
        with open_within(self._scope.files, path) as file:
            return desk.send(collection, file, Path(path).name, name=name, tenant=tenant)


_LATER = "It goes on by itself: get_document tells how far it is. Do not send it again."

ENDS = {
    "live": "Searches find it now.",
    "failed": "",
    "superseded": "Another version of it was sent meanwhile, and takes its place.",
    "deleted": "It was deleted meanwhile.",
}
"""States in which there is nothing to wait for, and what they mean for whoever sent it."""


@contextmanager
def telling() -> Iterator[None]:
    """Errors as a model reads them: what is wrong and what to do."""
    try:
        yield
    except CallslipError as error:
        later = f" Try again after {error.retry_after:.0f} s." * isinstance(error, TransientError)
        raise ToolError(f"{error.detail}. {error.advice}{later}".strip()) from None
    except (ValidationError, KeyError, TypeError):
        raise ToolError(
            "the desk answered otherwise than this server understands:"
            " are both of the same version of Callslip?"
        ) from None
    except UnicodeEncodeError:
        raise ToolError("an argument is not valid Unicode") from None


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value}


def _validity(hit: dict[str, Any]) -> dict[str, str]:
    known = hit["properties"]
    return {name: str(known[name]) for name in ("valid_from", "valid_to") if known.get(name)}


def _progress(document: dict[str, Any]) -> tuple[int, int]:
    steps = document["steps"]
    return sum(step["state"] == "done" for step in steps), len(steps)


def _no_trace(trace_id: str) -> str:
    return f"no search {trace_id!r}"
