"""Reads a submission, a multipart file or JSON text, and checks it before anything is stored."""

import hashlib
import io
import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from flask import Request, abort
from pydantic import ValidationError

from callslip.api.http.context import current
from callslip.api.http.problems import invalid
from callslip.api.messages.documents import NewDocument, UploadForm
from callslip.config.settings import MEGABYTE
from callslip.errors import EmptyFile, FileTooLarge, InvalidRequest
from callslip.messages.values import RepeatedName, unique, whole_number
from callslip.readers import Readers, check_readers
from callslip.stores.ledger import PRIORITIES
from callslip.stores.naming import (
    check_language,
    clean_filename,
    clean_line,
    clean_name,
    clean_tenant,
    clean_url,
)
from callslip.stores.properties.values import check_properties
from callslip.stores.records import RESERVED
from callslip.stores.schemas import NAME

HASH_BYTES = 1 << 20
REPLACED = "\ufffd"
"""The character by which the parser of forms replaces bytes that are not UTF-8."""

TEXT_ENDINGS = (".txt", ".md", ".markdown")
"""File names of texts sent as JSON keep these endings; any other name gets `.txt` added."""


@dataclass(frozen=True)
class Upload:
    """A checked submission; `content` is at its start."""

    content: IO[bytes]
    size: int
    sha256: str
    name: str
    filename: str
    tenant: str
    title: str | None
    properties: dict[str, Any] | None
    allow_duplicate: bool
    priority: int
    batch: str
    readers: Readers | None
    url: str | None
    language: str | None


def read_upload(request: Request) -> Upload:
    """Read the submission in a request; raise InvalidRequest, EmptyFile or FileTooLarge."""
    if request.mimetype == "multipart/form-data":
        return _from_form(request)
    if request.mimetype == "application/json":
        return _from_json(request)
    raise InvalidRequest(
        f"the content type is {request.mimetype or 'missing'!r}",
        hint="Send multipart/form-data with a part named file, or application/json with text.",
    )


def sent_file(request: Request) -> tuple[str, IO[bytes]]:
    """Return the name and content of the form's part `file`; raise InvalidRequest without it."""
    file = request.files.get("file")
    if not request.files and not request.form:
        raise InvalidRequest(
            "the form has no part that can be read",
            hint="Its parts are named in UTF-8, file names too: curl -F file=@handbook.pdf URL",
        )
    if file is None or not file.filename:
        raise InvalidRequest(
            "there is no part named file", hint="For example: curl -F file=@handbook.pdf URL"
        )
    return file.filename, file.stream


def sent_form(request: Request) -> tuple[str, IO[bytes], dict[str, str]]:
    """Return the name and content of the form's part `file`, and the form's fields.

    Raises InvalidRequest without the part `file`, if another part has a file name, if a field is
    not UTF-8, and if a name occurs twice: a part that nobody reads could be the one that restricts
    the document.
    """
    filename, content = sent_file(request)
    if files := sorted({str(name)[:100] for name in request.files} - {"file"}):
        raise InvalidRequest(
            f"only the part named file may have a file name, not {', '.join(map(repr, files))}",
            hint="Send the others as fields: curl -F 'readers=<readers.json' in place of"
            " -F readers=@readers.json.",
        )
    parts = Counter(n for sent in (request.files, request.form) for n, _ in sent.items(multi=True))
    for name, count in parts.items():
        if count > 1:
            raise InvalidRequest(
                f"the form has {count} parts named {str(name)[:100]}",
                hint="Send a field once; each file is a submission of its own.",
            )
    form = request.form.to_dict()
    for name in form.keys() - {"name"}:  # a file's own name may be of any bytes
        if REPLACED in form[name]:
            raise InvalidRequest(
                f"the part named {name[:100]} has U+FFFD, the sign for bytes that are not UTF-8",
                hint="Send the part in UTF-8, without this character.",
            )
    return filename, content, form


def _from_form(request: Request) -> Upload:
    sent, content, form = sent_form(request)
    if unknown := set(form) - UploadForm.model_fields.keys():
        raise InvalidRequest(f"unknown field {min(str(name) for name in unknown)!r}")
    properties = _json("properties", form.get("properties") or "null")
    filename = clean_filename(sent)
    return _upload(
        content,
        name=clean_name(form.get("name") or filename),
        filename=filename,
        tenant=form.get("tenant", ""),
        title=form.get("title"),
        properties=properties,
        allow_duplicate=_flag(form.get("allow_duplicate", "false")),
        priority=_priority(form.get("priority", "0")),
        batch=_batch(form.get("batch", "")),
        readers=_readers(form["readers"]) if "readers" in form else None,
        url=form.get("url"),
        language=form.get("language"),
    )


def _from_json(request: Request) -> Upload:
    try:
        body = NewDocument.model_validate(request.get_json(silent=True))
    except ValidationError as error:
        abort(invalid(error))
    content = body.text.encode("utf-8", "replace")
    name = clean_name(body.name or f"text-{hashlib.sha256(content).hexdigest()[:12]}")
    return _upload(
        io.BytesIO(content),
        name=name,
        filename=name if name.lower().endswith(TEXT_ENDINGS) else f"{name}.txt",
        tenant=body.tenant,
        title=body.title,
        properties=body.properties,
        allow_duplicate=body.allow_duplicate,
        priority=body.priority,
        batch=body.batch,
        readers=None if body.readers is None else check_readers(body.readers),
        url=body.url,
        language=body.language,
    )


def _upload(
    content: IO[bytes],
    *,
    name: str,
    filename: str,
    tenant: str,
    title: str | None,
    properties: object,
    allow_duplicate: bool,
    priority: int,
    batch: str,
    readers: Readers | None,
    url: str | None,
    language: str | None,
) -> Upload:
    digest, size = hashlib.sha256(), 0
    while block := content.read(HASH_BYTES):
        digest.update(block)
        size += len(block)
    content.seek(0)
    limit = current().settings.api.max_upload_mb
    if size == 0:
        raise EmptyFile(f"{filename!r} has no bytes")
    if size > limit * MEGABYTE:
        raise FileTooLarge(f"{filename!r} has {size / MEGABYTE:.0f} MB, at most {limit} are taken")
    return Upload(
        content=content,
        size=size,
        sha256=digest.hexdigest(),
        name=name,
        filename=filename,
        tenant=clean_tenant(tenant),
        title=clean_line(title, "title") if title else title,
        properties=None if properties is None else check_properties(properties, reserved=RESERVED),
        allow_duplicate=allow_duplicate,
        priority=priority,
        batch=batch,
        readers=readers,
        url=None if url is None else clean_url(url),
        language=None if language is None else check_language(language),
    )


def _batch(name: str) -> str:
    if name and not re.fullmatch(NAME, name):
        raise InvalidRequest(
            "batch is no name of letters, digits, `.`, `_` and `-`, at most 64 of them"
        )
    return name


def _readers(value: str) -> Readers:
    """The readers of a form field: a JSON list, or with commas.

    Raises InvalidRequest for an empty field: it would be read as everyone, and a client may mean
    nobody, or send a variable that it did not set.
    """
    if not value.strip():
        raise InvalidRequest(
            "readers is empty: leave it out for everyone, or as before; send [] for nobody"
        )
    if not value.lstrip().startswith("["):
        return check_readers([part.strip() for part in value.split(",")])
    return check_readers(_json("readers", value))


def _json(field: str, text: str) -> Any:
    """The value of a form field that is JSON."""
    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{field} is not JSON: {error}") from None
    except RepeatedName as error:
        raise InvalidRequest(f"{field}: {error}") from None
    except ValueError:  # its advice is for programmers in Python
        raise InvalidRequest(f"{field} has a number with too many digits") from None
    except RecursionError:
        raise InvalidRequest(f"{field} is nested too deeply") from None


def _flag(value: str) -> bool:
    if value.lower() in ("true", "1", "yes", "on"):
        return True
    if value.lower() in ("false", "0", "no", "off", ""):
        return False
    raise InvalidRequest("allow_duplicate is neither true nor false")


def _priority(value: str) -> int:
    least, most = PRIORITIES
    with suppress(ValueError):
        if least <= (priority := whole_number(value)) <= most:
            return priority
    raise InvalidRequest(f"priority is not a whole number from {least} to {most}")
