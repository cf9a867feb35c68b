"""How a reading child and its owner talk: frames of JSON and raw bytes.

Never a pickle: the child has touched a file that may be hostile.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

from callslip.errors import BY_SLUG, CallslipError
from ingestion.parts import Attachment, Block, ExtractedText, Heading, Page

LENGTHS = struct.Struct("<QQ")
"""A frame begins with the lengths of its JSON head and of its body, in bytes."""


def frame(head: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    """The two pieces to write, one after the other; the body is not copied."""
    encoded = json.dumps(head).encode()
    return LENGTHS.pack(len(encoded), len(body)) + encoded, body


def text_frame(text: ExtractedText) -> tuple[bytes, ...]:
    """A file that was read; the files within it follow the frame, one after the other."""
    head = {
        "media_type": text.media_type,
        "title": text.title,
        "headings": [(h.start, h.end, h.level) for h in text.headings],
        "pages": [(p.number, p.start, p.end) for p in text.pages],
        "blocks": [(b.start, b.end, b.kind, b.header) for b in text.blocks],
        "properties": text.properties,
        "warnings": text.warnings,
        "attachments": [(a.name, a.sha256, a.size) for a in text.attachments],
    }
    return *frame(head, text.text.encode()), *(a.content for a in text.attachments)


def error_frame(error: CallslipError) -> tuple[bytes, bytes]:
    """A file that was not."""
    return frame({"error": error.slug, "detail": error.detail, "advice": error.advice}, b"")


def more_time_frame() -> tuple[bytes, bytes]:
    """What comes before an answer that takes longer than others: the file is read by OCR."""
    return frame({"ocr": True}, b"")


def sizes(head: dict[str, Any]) -> list[int]:
    """Of the files that follow the frame; what `outcome` raises, this may raise too."""
    return [int(size) for _, _, size in head.get("attachments", ())]


def outcome(head: dict[str, Any], body: bytes, files: Sequence[bytes]) -> ExtractedText:
    """What a frame and the files behind it say; an error is raised.

    Raises KeyError, TypeError or ValueError for what is no such frame.
    """
    if "error" in head:
        raise BY_SLUG[head["error"]](head["detail"], hint=head["advice"])
    return ExtractedText(
        body.decode(),
        head["media_type"],
        head["title"],
        tuple(Heading(*values) for values in head["headings"]),
        tuple(Page(*values) for values in head["pages"]),
        tuple(Block(*values) for values in head["blocks"]),
        dict(head["properties"]),
        tuple(head["warnings"]),
        tuple(
            Attachment(name, sha256, size, content)
            for (name, sha256, size), content in zip(head["attachments"], files, strict=True)
        ),
    )
