"""E-mail: the body as text, the subject as title; sender, recipients and date as properties."""

import email
import email.policy
import mimetypes
from collections.abc import Iterator
from email.message import Message

from callslip.config.settings import ExtractSettings
from callslip.errors import NeedsPassword
from callslip.ingestion.extract.container import Members
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.readers.web.page import render
from callslip.ingestion.values import ExtractedText

_SIGNATURES = (
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/pgp-signature",
)
PROPERTIES = ("from", "to", "cc", "date")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every text part, of alternatives preferably the plain one; extract attached files.

    Raises NeedsPassword for S/MIME and PGP encryption, ExtractionLimit if the attached files are
    too many or too large together.
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
    """Walks through the parts of a message.

    Each access to a header field parses it again, so the content type is passed on as `kind`.
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self.warnings: list[str] = []

    def parts(self, part: Message) -> Iterator[str]:
        """Yield the text of a part and of the parts within it."""
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
        """Yield the plain text if there is any, else the last text (RFC 2046, 5.1.4)."""
        options = _inner(part)
        options.sort(key=lambda p: p.get_content_type() != "text/plain")
        for option in [*options[:1], *reversed(options[1:])]:
            texts = list(self.parts(option))
            if any(text.strip() for text in texts):
                yield from texts
                return

    def _take(self, part: Message, kind: str) -> None:
        """Add an attached file, unless it is a signature or an image that belongs to the text."""
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
    """Return a header field as text, or None; malformed fields can make the parser raise."""
    try:
        value = message.get(name)
    except Exception:  # of many types, for fields that violate the standard
        value = next((str(v) for k, v in message.raw_items() if k.lower() == name), None)
    return " ".join(str(value).split()) or None if value is not None else None
