"""E-mail: its body as text, its subject as title, sender, receivers and date as properties."""

import email
import email.policy
import mimetypes
from collections.abc import Iterator
from email.message import Message

from callslip.errors import NeedsPassword
from config.settings import ExtractSettings
from ingestion.extract.container import Members
from ingestion.extract.decode import decode
from ingestion.extract.web import render
from ingestion.parts import ExtractedText

_SIGNATURES = (
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/pgp-signature",
)
PROPERTIES = ("from", "to", "cc", "date")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every text part; of alternatives the plain one. Attached files are taken out.

    Raises NeedsPassword for S/MIME and PGP encryption, ExtractionLimit for too many files.
    """
    message = email.message_from_bytes(data, policy=email.policy.default)
    letter = _Letter(Members(limits))
    text = "\n\n".join(part.strip("\n") for part in letter.parts(message) if part.strip())
    properties = {name: value for name in PROPERTIES if (value := _field(message, name))}
    return ExtractedText(
        text,
        "message/rfc822",
        title=_field(message, "subject"),
        properties=properties,
        warnings=tuple(dict.fromkeys(letter.warnings)),
        attachments=letter.members.all(),
    )


class _Letter:
    """A walk through the parts of a message; each look at a header field parses it anew."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.warnings: list[str] = []

    def parts(self, part: Message) -> Iterator[str]:
        """The text of a part and of those within it."""
        kind = part.get_content_type()
        if _is_encrypted(part, kind):
            raise NeedsPassword("the message is encrypted")
        if kind == "multipart/alternative" and part.is_multipart():
            yield from self._best_alternative(part)
        elif kind == "message/rfc822" and part.is_multipart():
            for inner in _inner(part):
                yield "\n".join(
                    f"{name.title()}: {value}"
                    for name in ("subject", *PROPERTIES)
                    if (value := _field(inner, name))
                )
                yield from self.parts(inner)
        elif part.is_multipart():
            for inner in _inner(part):
                yield from self.parts(inner)
        elif not kind.startswith("text/") or _is_named(part):
            self._take(part, kind)
        elif kind == "text/html":
            page = render(self._characters(part))
            self.warnings.extend(page.warnings)
            yield page.text
        else:
            yield self._characters(part)

    def _best_alternative(self, part: Message) -> Iterator[str]:
        """The plain text if it holds any, else the last that does (RFC 2046, 5.1.4)."""
        options = _inner(part)
        options.sort(key=lambda p: p.get_content_type() != "text/plain")
        for option in [*options[:1], *reversed(options[1:])]:
            texts = list(self.parts(option))
            if any(text.strip() for text in texts):
                yield from texts
                return

    def _take(self, part: Message, kind: str) -> None:
        """Signatures are no documents, nor are pictures that belong to the text."""
        name = part.get_filename() or ""
        content = part.get_payload(decode=True)
        if kind in _SIGNATURES or not isinstance(content, bytes):
            return
        if kind.startswith("image/") and (
            part.get("content-id") or part.get_content_disposition() != "attachment"
        ):
            self.warnings.append(f"attachment not read: {name or kind}")
        else:
            self.members.add(name or f"attachment{mimetypes.guess_extension(kind) or ''}", content)

    def _characters(self, part: Message) -> str:
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            return ""
        decoded = decode(payload, part.get_content_charset())
        self.warnings.extend(decoded.warnings)
        return decoded.text


def _is_encrypted(part: Message, kind: str) -> bool:
    return kind == "multipart/encrypted" or (
        kind in ("application/pkcs7-mime", "application/x-pkcs7-mime")
        and part.get_param("smime-type", "enveloped-data") == "enveloped-data"
    )


def _inner(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, Message)]


def _is_named(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _field(message: Message, name: str) -> str | None:
    """A header field as text; the policy's parser raises on some malformed ones."""
    try:
        value = message.get(name)
    except Exception:  # of many types, all meaning: not what the standard says
        value = next((str(v) for k, v in message.raw_items() if k.lower() == name), None)
    return " ".join(str(value).split()) or None if value is not None else None
