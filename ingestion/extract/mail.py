"""E-mail: its body as text, its subject as title, sender, receivers and date as properties."""

import email
import email.policy
from collections.abc import Iterator
from email.message import Message

from callslip.errors import NeedsPassword
from config.settings import ExtractSettings
from ingestion.extract.decode import decode
from ingestion.extract.web import render
from ingestion.parts import ExtractedText

PROPERTIES = ("from", "to", "cc", "date")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every text part; of alternatives the plain one. Attachments are named, not read.

    Raises NeedsPassword for S/MIME and PGP encryption.
    """
    message = email.message_from_bytes(data, policy=email.policy.default)
    warnings: list[str] = []
    text = "\n\n".join(part.strip("\n") for part in _parts(message, warnings) if part.strip())
    properties = {name: value for name in PROPERTIES if (value := _field(message, name))}
    return ExtractedText(
        text,
        "message/rfc822",
        title=_field(message, "subject"),
        properties=properties,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _parts(part: Message, warnings: list[str]) -> Iterator[str]:
    kind = part.get_content_type()
    if _is_encrypted(part):
        raise NeedsPassword("the message is encrypted")
    if kind == "multipart/alternative" and part.is_multipart():
        yield from _best_alternative(part, warnings)
    elif kind == "message/rfc822" and part.is_multipart():
        for inner in _inner(part):
            yield "\n".join(
                f"{name.title()}: {value}"
                for name in ("subject", *PROPERTIES)
                if (value := _field(inner, name))
            )
            yield from _parts(inner, warnings)
    elif part.is_multipart():
        for inner in _inner(part):
            yield from _parts(inner, warnings)
    elif _is_attachment(part):
        warnings.append(f"attachment not read: {part.get_filename() or kind}")
    elif kind == "text/html":
        page = render(_characters(part, warnings))
        warnings.extend(page.warnings)
        yield page.text
    else:
        yield _characters(part, warnings)


def _best_alternative(part: Message, warnings: list[str]) -> Iterator[str]:
    """The plain text if it holds any, else the last alternative that does (RFC 2046, 5.1.4)."""
    options = _inner(part)
    options.sort(key=lambda p: p.get_content_type() != "text/plain")
    for option in [*options[:1], *reversed(options[1:])]:
        texts = list(_parts(option, warnings))
        if any(text.strip() for text in texts):
            yield from texts
            return


def _is_encrypted(part: Message) -> bool:
    kind = part.get_content_type()
    return kind == "multipart/encrypted" or (
        kind in ("application/pkcs7-mime", "application/x-pkcs7-mime")
        and part.get_param("smime-type", "enveloped-data") == "enveloped-data"
    )


def _inner(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, Message)]


def _is_attachment(part: Message) -> bool:
    return (
        part.get_content_maintype() != "text"
        or part.get_content_disposition() == "attachment"
        or part.get_filename() is not None
    )


def _characters(part: Message, warnings: list[str]) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    decoded = decode(payload, part.get_content_charset())
    warnings.extend(decoded.warnings)
    return decoded.text


def _field(message: Message, name: str) -> str | None:
    """A header field as text; the policy's parser raises on some malformed ones."""
    try:
        value = message.get(name)
    except Exception:  # of many types, all meaning: not what the standard says
        value = next((str(v) for k, v in message.raw_items() if k.lower() == name), None)
    return " ".join(str(value).split()) or None if value is not None else None
