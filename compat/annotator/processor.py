"""Converting the documents that a human names into texts on the file server."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from callslip.compat.annotator import names
from callslip.compat.annotator.chunks import lines
from callslip.compat.annotator.dialogs import Dialog, section, strings
from callslip.compat.annotator.fetching import Answer, TimeLimit
from callslip.compat.annotator.links import Links
from callslip.config.sections.annotator import AnnotatorSettings
from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import AddressNotAllowed, FileTooLarge, NotFound
from callslip.ingestion.isolation.process import Extractor
from callslip.per_process import PerProcess
from callslip.stores.naming import clean_filename

SKILLS = frozenset({"dff_meeting_analysis_skill", "dff_document_qa_llm_skill"})
"""The skills that talk about documents."""

UNNAMED = "NoNameFile"

_FILENAME = re.compile(r"""filename=(?:"([^"]+)"|([^";\s]+))""", re.IGNORECASE)
_LINK = re.compile(r"https?://", re.IGNORECASE)


def process(
    dialog: Dialog,
    skills: Sequence[object],
    links: Links,
    settings: AnnotatorSettings,
    limits: ExtractSettings,
) -> dict[str, Any]:
    """Process the documents of the last utterance and of the settings.

    `skills` are the active skills, one for each turn. Returns the new `human_attributes`.
    """
    requested = strings(section(dialog.last, "attributes"), "documents")
    for_all = [part for part in (settings.documents or "").split(",") if part]
    wanted = list(dict.fromkeys(requested + for_all))
    known = dict(dialog.processed)
    groups = dict(section(dialog.attributes, "documents_combination_ids"))
    in_use = dialog.in_use
    if len(dialog.utterances("human")) == 1 and not dialog.utterances("bot"):
        in_use = []  # a new dialog may still contain the documents of the previous dialog
    ids = {_initial(section(known, file_id)): file_id for file_id in known}
    ids.pop(None, None)
    fresh = False
    if {ids.get(reference) for reference in wanted} != set(in_use):
        time_limit = TimeLimit(settings.file_server_timeout)
        for reference in wanted:
            if reference in ids:
                continue
            file_id = names.of_dialog(dialog.id)
            trusted = reference in for_all
            filename, text = _text(reference, links, limits, time_limit, trusted=trusted)
            known[file_id] = {
                "initial_path_or_link": reference,
                "processed_text_link": links.keep(
                    text.encode(), f"{file_id}.txt", TimeLimit(settings.file_server_timeout)
                ),
                "filename": filename,
            }
            ids[reference] = file_id
            fresh = True
        if wanted:
            in_use = [ids[reference] for reference in wanted]
        if len(wanted) > 1:
            groups[names.of_dialog(dialog.id)] = in_use
    if not fresh and not requested and _left(skills, settings.turns_to_keep):
        in_use = []
    return {
        "human_attributes": {
            "processed_documents": known,
            "documents_in_use": in_use,
            "documents_combination_ids": groups,
        }
    }


def _initial(about: Mapping[str, Any]) -> str | None:
    reference = about.get("initial_path_or_link")
    return reference if isinstance(reference, str) else None


def _left(skills: Sequence[object], turns: int | None) -> bool:
    """Whether no skill of the last `turns` turns talked about documents."""
    if turns is None or len(skills) < turns:
        return False
    return SKILLS.isdisjoint(skill for skill in skills[-turns:] if isinstance(skill, str))


def _text(
    reference: str, links: Links, limits: ExtractSettings, time_limit: TimeLimit, *, trusted: bool
) -> tuple[str, str]:
    """Return the name and the text of a document; no line of the text is too long for a chunk.

    `trusted` marks a reference from the settings. Only the settings may name files of this machine,
    never a dialog.
    """
    if _LINK.match(reference):
        answer = (
            links.plain.get(reference, time_limit, redirects=True)
            if trusted
            else links.read(reference, time_limit)
        )
        data, name = answer.content, _filename(answer)
    elif trusted:
        data, name = _file(Path(reference), links.most_mb), Path(reference).name
    else:
        raise AddressNotAllowed(
            "a document of a dialog is no link, and files of this machine are not read",
            hint="Upload the file to the file server, or name it in annotator.documents.",
        )
    extracted = _extractor(limits).get().extract(data, name or UNNAMED)
    if len(extracted.text) > links.most_mb * MEGABYTE:
        raise FileTooLarge(f"a document has more than {links.most_mb} MB of text")
    filename = Path(name).stem or UNNAMED
    return filename, "\n".join([f"***FILENAME: {filename}***", *lines(extracted.text)])


def _file(path: Path, most_mb: int) -> bytes:
    try:
        if path.stat().st_size > most_mb * MEGABYTE:
            raise FileTooLarge(f"{path.name} has more than {most_mb} MB")
        return path.read_bytes()
    except OSError as error:
        raise NotFound(f"annotator.documents: {path}: {error.strerror}") from None


def _filename(answer: Answer) -> str:
    """Return the file name from the server's header, or else from the address."""
    match = _FILENAME.search(answer.headers.get("content-disposition", ""))
    split = urlsplit(answer.url)
    by_query = parse_qs(split.query).get("file", [""])[0]
    name = (match[1] or match[2]) if match else by_query or unquote(split.path)
    return clean_filename(name) if name.strip("/ ") else ""


@cache
def _extractor(limits: ExtractSettings) -> PerProcess[Extractor]:
    """Return the extractor; a caller waits, so a scan gets no more time than any other file."""
    soon = limits.model_copy(update={"ocr_timeout_seconds": limits.timeout_seconds})
    return PerProcess(lambda: Extractor(soon))
