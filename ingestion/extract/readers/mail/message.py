"""E-mail: the body as text, the subject as title; sender, recipients and date as properties."""

import email
import mimetypes
import re
from collections.abc import Iterator, Sequence
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.policy import EmailPolicy

from callslip.config.settings import ExtractSettings
from callslip.errors import NeedsPassword
from callslip.ingestion.extract.container import NOT_READ, Members
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.readers.web.page import decode_page, render
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_SIGNATURES = (
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/pgp-signature",
)
PROPERTIES = ("from", "to", "cc", "date")

_SURROGATE = re.compile("[\udc80-\udcff]")
"""A byte beyond ASCII in a header field, as the parser keeps it."""

_WITH_NAMES = ("content-disposition", "content-type")
_ENCODED_WORDS = re.compile(
    r"=\?[\w*.:+-]+\?[bq]\?[^?\s]*\?=(?:\s+=\?[\w*.:+-]+\?[bq]\?[^?\s]*\?=)*", re.I
)


class _Policy(EmailPolicy):
    """Reads header fields that break the rules: bytes of any encoding, encoded words in names."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        """Return the name of a field, and its value without undecoded bytes."""
        name, value = super().header_source_parse(list(sourcelines))
        value = _characters_of(value)
        if name.lower() in _WITH_NAMES:
            value = _ENCODED_WORDS.sub(lambda words: _decoded(words[0]).replace('"', "'"), value)
        return name, value


_POLICY = _Policy()


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every text part, of alternatives preferably the plain one; extract attached files.

    Raises NeedsPassword for S/MIME and PGP encryption, ExtractionLimit if the attached files are
    too many or too large together.
    """
    message = email.message_from_bytes(data, policy=_POLICY)
    letter = _Letter(Members(limits))
    text = "\n\n".join(part.strip("\n") for part in letter.parts(message) if part.strip())
    properties = {name: value for name in PROPERTIES if (value := _field(message, name))}
    return ExtractedText(
        text,
        "message/rfc822",
        title=_field(message, "subject"),
        properties=properties,
        warnings=letter.warnings,
        attachments=letter.members.all(),
    )


class _Letter:
    """Walks through the parts of a message.

    Each access to a header field parses it again, so the content type is passed on as `kind`.
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self._of_parts: list[str] = []
        self._not_read: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about the parts that were read, each once, and about files that are not."""
        return *dict.fromkeys(self._of_parts), *left_out({}, {NOT_READ: self._not_read})

    def parts(self, part: Message) -> Iterator[str]:
        """Yield the text of a part and of the parts within it."""
        kind = part.get_content_type()
        if _is_encrypted(part, kind):
            raise NeedsPassword(
                "the message is encrypted",
                hint="Decrypt it in the program that has the key, and upload the message then.",
            )
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
            page = render(self._characters(part, html=True))
            self._of_parts.extend(page.warnings)
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
            self._not_read.append(name or kind)
        else:
            self.members.add(name or f"attachment{mimetypes.guess_extension(kind) or ''}", content)

    def _characters(self, part: Message, *, html: bool = False) -> str:
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            return ""
        charset = part.get_content_charset()
        decoded = decode_page(payload) if html and not charset else decode(payload, charset)
        self._of_parts.extend(decoded.warnings)
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
    """Return a header field as text, or None.

    Adjacent encoded words are joined before they are decoded, because many programs divide a
    character between two (RFC 2047, 5).
    """
    value = next((v for k, v in message.raw_items() if k.lower() == name), None)
    return " ".join(_decoded(str(value)).split()) or None if value is not None else None


def _decoded(value: str) -> str:
    """Return a value without encoded words, those of unknown or wrong charsets included."""
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(
        part if isinstance(part, str) else _of_bytes(part, charset, value)
        for part, charset in parts
    )


def _of_bytes(part: bytes, charset: str | None, value: str) -> str:
    if charset is None:  # it stands between encoded words; other characters than ASCII are escaped
        return part.decode("ascii" if value.isascii() else "raw-unicode-escape", "replace")
    return decode(part, charset.partition("*")[0]).text


def _characters_of(value: str) -> str:
    """Return the value with its bytes beyond ASCII decoded; their encoding is guessed."""
    if not _SURROGATE.search(value):
        return value
    return decode(value.encode("utf-8", "surrogateescape")).text
