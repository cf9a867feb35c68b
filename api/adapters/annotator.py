"""The Document Retriever of DeepPavlov Dream: its endpoints and its file server."""

import base64
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from flask import Response, request, send_file
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from callslip.api.http.context import current
from callslip.api.http.uploads import sent_file
from callslip.api.identity.limits import spend_documents
from callslip.compat import annotator
from callslip.compat.annotator import names
from callslip.config.sections.annotator import AnnotatorSettings
from callslip.errors import TransientError
from callslip.stores.disk import check_space
from callslip.tasks import compute
from callslip.tasks.composition import Context

TEXT, BYTES = "text/plain", "application/octet-stream"

MOST_DIALOGS = 1000

blueprint = APIBlueprint("annotator", __name__, abp_tags=[Tag(name="annotator")])


class Dialogs(BaseModel):
    """Dialogs as the agent of Dream sends them; the response for a malformed dialog is `{}`."""

    model_config = ConfigDict(extra="ignore")

    dialogs: list[Any] = Field(max_length=MOST_DIALOGS)


class ProcessorDialogs(Dialogs):
    all_prev_active_skills: list[Any] = Field(
        [], description="for each dialog the skills of its turns, the last one last"
    )


class FileQuery(BaseModel):
    file: str = Field(description="the name in the downloadLink")


class Uploaded(BaseModel):
    """The URL from which the file can be downloaded."""

    downloadLink: str  # noqa: N815 - the original's name


_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


@blueprint.post("/vectorize_documents", responses={200: None})
def vectorize_documents(body: Dialogs) -> Response:
    """Vectorize the documents in use of each dialog, once: `human_attributes.model_info`."""
    settings, links, fitting = current().settings.annotator, _links(), _Fitting(current())
    response = _answers(body, lambda dialog: annotator.vectorize(dialog, links, settings, fitting))
    if fitting.failure is not None:
        raise fitting.failure
    return response


@blueprint.post("/return_candidates", responses={200: None})
def return_candidates(body: Dialogs) -> Response:
    """Find the chunks nearest to the last human message, best first: `candidate_files`."""
    settings, links = current().settings.annotator, _links()
    return _answers(body, lambda dialog: annotator.candidates(dialog, links, settings))


@blueprint.post("/process_and_upload_doc", responses={200: None})
def process_and_upload_doc(body: ProcessorDialogs) -> Response:
    """Convert the named documents to texts on the file server: `human_attributes`."""
    settings, links = current().settings, _links()
    active = [_list(skills) for skills in body.all_prev_active_skills]
    active += [()] * (len(body.dialogs) - len(active))
    return _answers(
        body,
        lambda dialog: annotator.process(
            dialog, active[dialog.number], links, settings.annotator, settings.extract
        ),
    )


@blueprint.post("/", openapi_extensions=_TAKES, responses={200: Uploaded})
def upload_file() -> Response:
    """Store the part `file` of a form; it never overwrites another file with the same name."""
    sent, content = sent_file(request)
    check_space(current().settings)
    spend_documents(1, content.seek(0, os.SEEK_END))
    content.seek(0)
    links = _links()
    name = links.folder.write(content, names.cleaned(sent))
    return _json({"downloadLink": links.here(name)})


@blueprint.get("/file", responses={200: None})
def download_file(query: FileQuery) -> Response:
    """Download a stored file as text or as bytes."""
    name = query.file
    file = _links().folder.open(name)
    media = TEXT if name.endswith(".txt") else BYTES
    response = send_file(file, media, as_attachment=True, download_name=name)
    response.content_length = os.fstat(file.fileno()).st_size
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _answers(body: Dialogs, answer: Callable[[annotator.Dialog], dict[str, Any]]) -> Response:
    seconds = current().settings.annotator.seconds_of_a_batch
    return _json(annotator.answers(body.dialogs, answer, seconds))


class _Fitting:
    """Fits TF-IDF in a worker; `failure` is the error of the worker, which no dialog caused."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.failure: TransientError | None = None

    def __call__(
        self, texts: Sequence[tuple[str, str]], settings: AnnotatorSettings
    ) -> tuple[bytes, bytes]:
        try:
            fitted = compute.run(
                self._context,
                "annotator.fit",
                {"texts": texts},
                seconds=settings.seconds_of_a_batch,
            )
        except TransientError as error:
            self.failure = error
            raise
        return base64.b64decode(fitted["matrix"]), base64.b64decode(fitted["database"])


def _links() -> annotator.Links:
    return annotator.links(current().settings, request.host_url)


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _json(answer: Any) -> Response:
    """Encode in ASCII: text that a client sends back and forth need not be valid Unicode."""
    return Response(json.dumps(answer), content_type="application/json")
