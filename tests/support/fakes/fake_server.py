"""A server that answers measuring as it is told to."""

from typing import Any

from callslip.errors import InvalidRequest, NotFound, SearchTimeout, TraceNotFound
from callslip.evals.client import JsonClient


class FakeServer(JsonClient):
    """Every document goes live at once; a search finds those that hold a word of the query."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.documents: dict[str, dict[str, Any]] = {}
        self.searches: list[dict[str, Any]] = []
        self.failing: set[str] = set()
        self.can_drop = True
        self.has_vectors = True
        self.has_facets = True
        self.has_reranker = False
        self.facet_error: dict[str, str] | None = None
        self.left_out: dict[str, str] = {}
        self.late = 0
        self.passages = 1
        self.blind_to: set[tuple[float | None, str]] = set()
        """Pairs of α and query for which nothing is found; α is None for hybrid search."""
        self.dropped: list[str] = []
        self.remembered: dict[str, list[str]] = {}
        self.takes_feedback = True

    def get(self, path: str, **params: str | int | float) -> dict[str, Any]:
        if path.endswith("/facets"):
            ended = {"name": "lang", "run": "r", "error": self.facet_error, "ended_at": 1.0}
            return {"facets": [ended, {**ended, "run": "another"}]}
        if path.endswith("/memory"):
            return {"chunks": len(self.remembered)}
        bad = sum(document["name"] in self.failing for document in self.documents.values())
        return {
            "states": {"live": len(self.documents) - bad, "failed": bad},
            "documents": [self._listed(*each) for each in self.documents.items()],
            "next_before": None,
        }

    def _listed(self, document_id: str, document: dict[str, Any]) -> dict[str, Any]:
        failed = document["name"] in self.failing
        return {
            "document_id": document_id,
            "name": document["name"],
            "state": "failed" if failed else "live",
            "error": {"title": "No text", "detail": "it is blank"} if failed else None,
        }

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/documents"):
            self.documents[f"id of {body['name'].strip()}"] = body
            return {"document_id": f"id of {body['name'].strip()}"}
        if path == "/v1/search":
            if self.late:
                self.late -= 1
                raise SearchTimeout("no answer within 10 s")
            self.searches.append(body)
            return self._found(body)
        if path.endswith("/facets/rebuild"):
            if not self.has_facets:
                raise InvalidRequest("collections without vectors have no facets")
            return {"run": "r", "facets": ["lang"]}
        if path == "/v1/feedback":
            if not self.takes_feedback:
                raise TraceNotFound("searches are not recorded")
            self.remembered[body["user"]] = body["chunk_ids"]
        if path.endswith("/memory/reset"):
            self.remembered = {}
        return {}

    def _found(self, body: dict[str, Any]) -> dict[str, Any]:
        words = set(body["query"].split())
        hits = [
            {"document_id": document_id, "chunk_id": f"chunk of {document_id}"}
            for document_id, document in self.documents.items()
            if words & set(document["text"].split())
            and (body.get("alpha"), body["query"]) not in self.blind_to
        ]
        reranked = self.has_reranker and body.get("ranking", {}).get("rerank", True)
        return {
            "trace_id": "t",
            "hits": (hits * self.passages)[: body["top"]],
            "alpha": body.get("alpha", 0.4) if self.has_vectors else 0.0,
            "partial": bool(self.left_out),
            "left_out": self.left_out,
            "timings": {"legs": 1.0} | ({"rerank": 1.0} if reranked else {}),
        }

    def delete(self, path: str) -> dict[str, Any]:
        if not self.can_drop:
            raise NotFound("no such route")
        self.dropped.append(path)
        return {}
