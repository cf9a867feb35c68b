"""The tools of the MCP server, each one or two requests to the API.

A tool's docstring is its description: it is written for the model that calls it.
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from callslip.cli.mcp.arguments import AsOf, Collection, Conditions, Tenant, Text
from callslip.cli.mcp.failures import telling
from callslip.cli.mcp.files import open_within
from callslip.cli.mcp.results import (
    AnswerResult,
    DocumentResult,
    FeedbackResult,
    IngestResult,
    Passage,
    SearchResult,
    as_text,
)
from callslip.cli.mcp.scope import Scope
from callslip.client import Client
from callslip.client.requests import path_of
from callslip.errors import (
    DocumentError,
    DocumentNotFound,
    InvalidRequest,
    KeyRefused,
    PermissionMissing,
    TraceNotFound,
)
from callslip.keys import WRONG_KEY, bearer
from callslip.readers import MOST_READERS
from callslip.vocabulary import VALIDITY, WITHOUT_EXPLORATION, certainty_of

Request = Context[Any, Any]

TEXT_CHARACTERS = 20_000
"""Characters of a document's text in one response, about 5,000 tokens of English."""

LONGEST_TEXT = 2_000_000
"""The most characters of a call; larger documents are sent as files."""

LONGEST_WAIT = 300.0
POLL_SECONDS = 0.5

TRACE_SECONDS = 1.0
"""A search is recorded just after its response is sent."""


class Tools:
    """The tools for one Callslip server; they run in threads and share its connections."""

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

        Use it to find passages about a subject, and to compare several passages; use `answer` for
        a question that needs one answer. Search with the user's own words: English and Korean
        are both understood, and names or numbers match as they are written. If no passage fits,
        use other words, leave conditions out, or set as_of to `any`. `get_document` reads the
        text around a passage: start a little before its span. When passages helped or did not
        help, report it with `feedback` and this trace_id.
        """
        fields = {
            "collection": collection,
            "query": query,
            "top": top,
            "ranking": WITHOUT_EXPLORATION,
            **_present(tenant=tenant, as_of=as_of, having_all=having_all, having_any=having_any),
        }
        with telling():
            message = self._client_for(ctx).request_json("POST", "/v1/search", json=fields)
            return SearchResult(
                trace_id=message["trace_id"],
                hits=[Passage.model_validate(hit | _validity(hit)) for hit in message["hits"]],
                as_of=message["as_of"],
                cut=message["cut"],
                partial=message["partial"],
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

        Answers are checked: if the passages do not support an answer, `answered` is false. Say
        then that the documents do not have the answer, and show the nearest passages; do not
        answer from your own knowledge. Keep the [n] when you pass an answer on, and name the
        title of each citation. Send the same thread_id with questions that refer to earlier ones.
        """
        fields = {
            "collection": collection,
            "question": question,
            **_present(tenant=tenant, thread_id=thread_id, as_of=as_of, having_all=having_all),
        }
        with telling():
            message = self._client_for(ctx).request_json("POST", "/v1/answer", json=fields)
            verdict = message["verdict"]
            certainty = certainty_of(verdict["confidence"], approved=verdict["approved"])
            shown = {"reason": verdict["reason"], "certainty": certainty}
            answer = AnswerResult.model_validate(message | shown)
        return CallToolResult(
            content=[TextContent(type="text", text=as_text(answer, question))],
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

        Spans of passages and citations are characters of this text. One call returns at most 20,000
        characters; if next_start is set, call again with it as start to read on. Also returns the
        state of a document that was sent with `ingest`: searches find it once it is live.
        """
        last = start + TEXT_CHARACTERS
        with telling():
            client = self._client_for(ctx)
            message = self._document(client, document_id)
            try:
                bounds = {"start": start, "end": last if end is None else min(end, last)}
                path = path_of("/v1/documents/{document_id}/text", document_id=document_id)
                part = client.request_json("GET", path, params=bounds)
            except DocumentNotFound:  # not extracted yet, or deleted
                part = {"text": "", "start": 0, "end": 0, "length": 0}
            error = message["error"]
            return DocumentResult.model_validate(
                message
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
        readers: Annotated[
            list[Text] | None,
            Field(
                max_length=MOST_READERS,
                description='who may read it: `user:NAME`, `group:NAME`, or `["everyone"]`;'
                " left out: as before, and of a new document everyone; []: nobody but admins",
            ),
        ] = None,
        url: Annotated[
            Text, Field(max_length=2048, description="the web address of its source, if it has one")
        ] = "",
        wait_seconds: Annotated[
            float, Field(ge=0, le=LONGEST_WAIT, description="how long to wait until it is live")
        ] = 30.0,
    ) -> IngestResult:
        """Put a document into a collection, so that searches find it.

        A document is identified by its name in its collection: a known name replaces the content,
        the same content changes nothing. A missing collection is created. The tool waits until
        searches find the document; if the time ends before, the server continues, and
        `get_document` with the document_id returns the state. Do not send it again.
        """
        began = time.monotonic()
        with telling():
            client = self._client_for(ctx)
            fields: dict[str, Any] = {"name": name, "tenant": tenant} | _present(url=url)
            if readers is not None:  # an empty list is nobody
                fields["readers"] = readers
            sent = await run_sync(self._submit, client, collection, text, path, fields)
            reported = 0
            while True:
                try:
                    message = await run_sync(_document_of, client, sent["document_id"])
                except DocumentNotFound:  # its readers may leave out who sent it
                    state, done, steps = "unreadable", 0, 0
                    break
                state = message["state"] if message["version"] == sent["version"] else "superseded"
                done, steps = _progress(message)
                if done > reported:
                    reported = done
                    await ctx.report_progress(done, steps, f"{name}: {state}")
                if state in ENDS or time.monotonic() - began >= wait_seconds:
                    break
                await anyio.sleep(POLL_SECONDS)
            if state == "failed":
                error = message["error"]
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
        """Report that passages of a search, or citations of an answer, helped or did not help.

        They then rank higher, or lower, for similar questions of all users. Call it when it is
        known what helped: when a user says so, or when an answer used these passages. Send
        chunk_ids of a search's hits, or numbers of an answer's citations.
        """
        if not chunk_ids and not citations:
            raise ToolError("Name chunk_ids of hits, or numbers of an answer's citations.")
        body = {"trace_id": trace_id, "verdict": verdict}
        with telling():
            client = self._client_for(ctx)
            if not client.has_key:  # with a key its caller is the user
                body["user"] = "mcp"
            self._check_trace(client, trace_id)
            message = client.request_json(
                "POST",
                "/v1/feedback",
                json=body | _present(chunk_ids=chunk_ids, citations=citations),
            )
            return FeedbackResult.model_validate(message)

    def _client_for(self, ctx: Request) -> Client:
        """The client of a request; over HTTP it has the caller's key, over stdio the settings'."""
        headers = ctx.headers
        if headers is None:
            return self._client
        key = bearer(headers.get("authorization"))
        try:
            return self._client.with_key(None if key is None else key.decode("ascii"))
        except UnicodeDecodeError:
            raise KeyRefused(WRONG_KEY) from None

    def _document(self, client: Client, document_id: str) -> dict[str, Any]:
        """A document of the scope; the error is the same for others and for missing documents."""
        missing = DocumentNotFound(f"no document {document_id!r}")
        try:
            message = _document_of(client, document_id)
        except DocumentNotFound:
            raise missing from None
        if not self._scope.holds(message):
            raise missing
        return message

    def _check_trace(self, client: Client, trace_id: str) -> None:
        """Check that a search is in the scope; if the scope is everything, send no request.

        A trace may be recorded a moment after its response. The wait for one that is missing and
        for one of another scope is the same.
        """
        if self._scope.collection is None and self._scope.tenant is None:
            return
        until = time.monotonic() + TRACE_SECONDS
        while True:
            with suppress(TraceNotFound):
                trace = client.request_json("GET", f"/debug/trace/{trace_id}")["trace"]
                if self._scope.holds(trace):
                    return
            if time.monotonic() > until:
                raise TraceNotFound(f"no search {trace_id!r}")
            time.sleep(TRACE_SECONDS / 10)

    def _submit(
        self, client: Client, collection: str, text: str, path: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        if bool(text.strip()) == bool(path):
            raise InvalidRequest("send either text or path", hint="Send one of them, not empty.")
        if path and self._scope.files is None:
            raise InvalidRequest(
                "this server reads no files", hint="Send text; `--files DIR` would allow a folder."
            )
        with suppress(PermissionMissing):  # a key that is limited to tenants makes no collection
            _answered(
                client,
                "POST",
                "/v1/collections",
                json={"name": collection} | _present(tenants=bool(fields["tenant"])),
            )
        documents = path_of("/v1/collections/{collection}/documents", collection=collection)
        if self._scope.files is None or not path:
            return _answered(client, "POST", documents, json=fields | {"text": text})
        if "readers" in fields:
            fields = fields | {"readers": json.dumps(fields["readers"])}
        with open_within(self._scope.files, path) as file:
            return _answered(
                client,
                "POST",
                documents,
                files={"file": (Path(path).name, file, "application/octet-stream")},
                data=fields,
            )


def _answered(client: Client, method: str, path: str, **sent: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.request_json(method, path, **sent)
    return answer


def _document_of(client: Client, document_id: str) -> dict[str, Any]:
    return _answered(client, "GET", path_of("/v1/documents/{document_id}", document_id=document_id))


_LATER = "It goes on by itself: get_document tells how far it is. Do not send it again."

ENDS = {
    "live": "Searches find it now.",
    "failed": "",
    "superseded": "Another version of it was sent meanwhile, and takes its place.",
    "deleted": "It was deleted meanwhile.",
    "unreadable": "It was accepted, but you may not read it, so its state does not show."
    " Do not send it again.",
}
"""Final states, each with its meaning for the sender."""


def _present(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value}


def _validity(hit: dict[str, Any]) -> dict[str, str]:
    known = hit["properties"]
    return {name: str(known[name]) for name in VALIDITY if known.get(name)}


def _progress(document: dict[str, Any]) -> tuple[int, int]:
    steps = document["steps"]
    return sum(step["state"] == "done" for step in steps), len(steps)
