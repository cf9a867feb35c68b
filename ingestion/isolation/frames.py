"""The protocol between the extraction child process and its parent: frames of JSON and raw bytes.

The frames are never pickles, because the child has read a file that may be hostile.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

from callslip.errors import BY_SLUG, CallslipError
from callslip.ingestion.boxes import pack, packed
from callslip.ingestion.values import Attachment, Block, ExtractedText, Heading, Link, Page

LENGTHS = struct.Struct("<QQ")
"""A frame begins with the lengths of its JSON head and of its body, in bytes."""


def frame(head: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    """Return the two pieces of a frame to write in this order; the body is not copied."""
    encoded = json.dumps(head).encode()
    return LENGTHS.pack(len(encoded), len(body)) + encoded, body


def text_frame(text: ExtractedText) -> tuple[bytes, ...]:
    """Return the frame for the text of a file, and the contents of attachments to write next."""
    head = {
        "media_type": text.media_type,
        "title": text.title,
        "headings": [(h.start, h.end, h.level, h.anchor) for h in text.headings],
        "pages": [(p.number, p.start, p.end, p.label) for p in text.pages],
        "blocks": [(b.start, b.end, b.kind, b.header) for b in text.blocks],
        "links": [(each.start, each.end, each.target) for each in text.links],
        "properties": text.properties,
        "warnings": text.warnings,
        "attachments": [(a.name, a.sha256, a.size) for a in text.attachments],
        "boxes": pack(text.boxes),
    }
    return *frame(head, text.text.encode()), *(a.content for a in text.attachments)


def image_frame(image: bytes) -> tuple[bytes, bytes]:
    """Return the frame for the image of a page."""
    return frame({}, image)


def error_frame(error: CallslipError) -> tuple[bytes, bytes]:
    """Return the frame for a file that could not be read."""
    return frame({"error": error.slug, "detail": error.detail, "advice": error.advice}, b"")


def more_time_frame() -> tuple[bytes, bytes]:
    """Return the frame that announces a longer time limit, because the file is read by OCR."""
    return frame({"ocr": True}, b"")


def sizes(head: dict[str, Any]) -> list[int]:
    """Return the sizes of the attachments that follow the frame; raises the errors of `outcome`."""
    return [int(size) for _, _, size in head.get("attachments", ())]


def check(head: dict[str, Any]) -> None:
    """Raise the error of a frame, if it has one; KeyError or TypeError for an invalid frame."""
    if "error" in head:
        raise BY_SLUG[head["error"]](head["detail"], hint=head["advice"])


def outcome(head: dict[str, Any], body: bytes, files: Sequence[bytes]) -> ExtractedText:
    """Return the text from a frame and the attachments after it, or raise the error of the frame.

    Raises KeyError, TypeError or ValueError for an invalid frame.
    """
    check(head)
    return ExtractedText(
        body.decode(),
        head["media_type"],
        head["title"],
        tuple(Heading(*values) for values in head["headings"]),
        tuple(Page(*values) for values in head["pages"]),
        tuple(Block(*values) for values in head["blocks"]),
        tuple(Link(*values) for values in head["links"]),
        dict(head["properties"]),
        tuple(head["warnings"]),
        tuple(
            Attachment(name, sha256, size, content)
            for (name, sha256, size), content in zip(head["attachments"], files, strict=True)
        ),
        packed(head["boxes"]),
    )
