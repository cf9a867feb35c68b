"""The Document Retriever of DeepPavlov Dream: its endpoints and its file server."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from flask import Response, request, send_file
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from api.uploads import sent_file
from compat import annotator
from compat.annotator import names
from config import get_settings

TEXT, BYTES = "text/plain", "application/octet-stream"

MOST_DIALOGS = 1000

blueprint = APIBlueprint("annotator", __name__, abp_tags=[Tag(name="annotator")])


class Dialogs(BaseModel):
    """Dialogs as the agent of Dream sends them; one that is malformed is answered with `{}`."""

    model_config = ConfigDict(extra="ignore")

    dialogs: list[Any] = Field(max_length=MOST_DIALOGS)


class ProcessorDialogs(Dialogs):
    all_prev_active_skills: list[Any] = Field(
        [], description="for each dialog the skills of its turns, the last one last"
    )


class FileQuery(BaseModel):
    file: str = Field(description="the name in the downloadLink")


class Uploaded(BaseModel):
    """Where the file can be had."""

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
    settings, links = get_settings().annotator, _links()
    return _answers(body, lambda dialog: annotator.vectorize(dialog, links, settings))


@blueprint.post("/return_candidates", responses={200: None})
def return_candidates(body: Dialogs) -> Response:
    """The chunks nearest to what each human said last, best first: `candidate_files`."""
    settings, links = get_settings().annotator, _links()
    return _answers(body, lambda dialog: annotator.candidates(dialog, links, settings))


@blueprint.post("/process_and_upload_doc", responses={200: None})
def process_and_upload_doc(body: ProcessorDialogs) -> Response:
    """Turn the documents that were named into texts on the file server: `human_attributes`."""
    settings, links = get_settings(), _links()
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
    """Keep a file, the part `file` of a form; another file of its name is not written over."""
    sent, content = sent_file(request)
    links = _links()
    name = links.folder.write(content, names.cleaned(sent))
    return _json({"downloadLink": links.here(name)})


@blueprint.get("/file", responses={200: None})
def download_file(query: FileQuery) -> Response:
    """A file that was kept: text, or bytes to be downloaded."""
    name = query.file
    file = _links().folder.open(name)
    media = TEXT if name.endswith(".txt") else BYTES
    response = send_file(file, media, as_attachment=True, download_name=name)
    response.content_length = os.fstat(file.fileno()).st_size
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _answers(body: Dialogs, answer: Callable[[annotator.Dialog], dict[str, Any]]) -> Response:
    seconds = get_settings().annotator.seconds_of_a_batch
    return _json(annotator.answers(body.dialogs, answer, seconds))


def _links() -> annotator.Links:
    return annotator.links(get_settings(), request.host_url)


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _json(answer: Any) -> Response:
    """In ASCII: what a client sends back and forth need not be valid Unicode."""
    return Response(json.dumps(answer), content_type="application/json")
