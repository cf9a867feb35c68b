"""/v1/tasks: the progress of one submission or deletion."""

import re

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages import documents
from callslip.errors import DocumentNotFound, TaskNotFound
from callslip.stores.ledger import DocumentRecord

blueprint = APIBlueprint("tasks", __name__, abp_tags=[Tag(name="tasks")])

_TASK_ID = re.compile(
    r"(?P<kind>ingest|delete)-(?P<document>[0-9a-f]{32})(?:-(?P<version>[0-9]{1,9}))?"
)


class TaskPath(BaseModel):
    task_id: str


def ingestion_id(document_id: str, version: int) -> str:
    """The task id of a submission."""
    return f"ingest-{document_id}-{version}"


def deletion_id(document_id: str) -> str:
    """The task id of a deletion."""
    return f"delete-{document_id}"


@blueprint.get("/v1/tasks/<string:task_id>", responses={200: documents.Task})
def get_task(path: TaskPath) -> Response:
    """The progress of a submission or a deletion."""
    parts = _TASK_ID.fullmatch(path.task_id)
    if parts is None or (parts["kind"] == "ingest") != (parts["version"] is not None):
        raise TaskNotFound(f"task {path.task_id!r} does not exist")
    try:
        document = current().ledger.documents.get(parts["document"])
        if parts["version"] is None:
            return answer(_deletion(path.task_id, document))
        return answer(_ingestion(path.task_id, document, int(parts["version"])))
    except DocumentNotFound:
        raise TaskNotFound(f"task {path.task_id!r} does not exist") from None


def _ingestion(task_id: str, document: DocumentRecord, version: int) -> documents.Task:
    record = current().ledger.documents.version(document.document_id, version)
    state: str
    if record.state == "queued" and document.state in ("waiting", "working", "stalled"):
        state = document.state
    elif record.state == "queued":  # deleted or replaced before it was live
        state = "superseded"
    else:
        state = {"live": "done", "failed": "failed", "superseded": "superseded"}[record.state]
    newest = document.newest.version == version
    done = sum(s.state == "done" for s in document.steps) if newest else len(document.steps)
    return documents.Task.model_validate(
        {
            "task_id": task_id,
            "kind": "ingest",
            "document_id": document.document_id,
            "version": version,
            "state": state,
            "steps_done": done,
            "steps": len(document.steps),
            "error": responses.failure(record.failure),
        }
    )


def _deletion(task_id: str, document: DocumentRecord) -> documents.Task:
    if document.deleted_at is None:
        raise TaskNotFound(f"task {task_id!r} does not exist")
    removed = document.removed_at is not None
    return documents.Task(
        task_id=task_id,
        kind="delete",
        document_id=document.document_id,
        version=None,
        state="done" if removed else "waiting",
        steps_done=int(removed),
        steps=1,
        error=None,
    )
