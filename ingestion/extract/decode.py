"""Decodes bytes: by byte order mark, as UTF-8, by the declared charset, then by detection."""

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

from callslip.ingestion.left_out import read_otherwise

SAMPLE = 65_536
"""The number of bytes that a guess examines; a guess from a whole large file takes minutes."""

COMMON_HANGUL = 0.7
"""The minimum share of the 2,350 syllables of KS X 1001 in Hangul text; all Korean text has more,
even with loan words and names."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SUPERSETS = {
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
"""As in browsers, because the declared charset is often a subset of the actual one."""

_NAMES = {
    "windows-949": "cp949", "x-windows-949": "cp949", "x-euc-kr": "cp949", "ksc5601": "cp949",
    "ks_c_5601": "cp949", "ksc_5601-1987": "cp949", "x-sjis": "cp932", "x-gbk": "gb18030",
    "iso-8859-8-i": "iso8859-8", "x-mac-roman": "mac_roman",
}  # fmt: skip
"""Names of charsets that Python does not know."""

_ESCAPED = {b"\x1b$)C": "iso2022_kr", b"\x1b$B": "iso2022_jp", b"\x1b$@": "iso2022_jp"}
"""Charsets of 7-bit mail by the escape sequence with which their characters begin."""

_SEVEN_BIT = ("iso2022_kr", "iso2022_jp", "utf-7", "hz")
_ANY_BYTES = "cp1252"
"""What is declared where nobody thought of it: nearly all bytes are characters of it."""

_GUESSES = [
    "cp932", "euc_jp", "gb18030", "big5", "cp1252", "cp1250", "cp1251", "koi8_r",
    "cp1253", "cp1254", "cp1255", "cp1256",
]  # fmt: skip
_MULTI_BYTE = 4
"""How many of the guesses have characters of several bytes."""

FEW = 16
"""Characters beyond ASCII that are too few to tell similar code pages apart."""

_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b")) + b"\x7f"
_HANGUL = re.compile("[가-힣]+")
_KS_X_1001 = bytes(b for row in range(0xB0, 0xC9) for at in range(0xA1, 0xFF) for b in (row, at))
_COMMON = re.compile(f"[{_KS_X_1001.decode('euc_kr')}]+")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_FULL_WIDTH = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_ADJACENT = re.compile(rb"[\x80-\xff]{2}")
_HIGH = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True)
class Decoded:
    """The text, and a warning with the codec unless UTF-8 or a byte order mark gave the codec."""

    text: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Decode all bytes; undecodable bytes become U+FFFD. The time is linear in the length.

    `declared` is the charset that the file declares (HTML, e-mail). Valid UTF-8 overrides it, and
    so does a guess, if the bytes are invalid in it or Korean is declared to be Western European.
    """
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return Decoded(data.decode(codec, "replace"))
    known = _known(declared)
    if seven_bit := _seven_bit(data, known):
        return Decoded(data.decode(seven_bit, "replace"), (read_otherwise(f"as {seven_bit}", {}),))
    try:
        return Decoded(data.decode("utf-8"))
    except UnicodeDecodeError:
        pass
    codec = known if known and not _contradicted(data, known) else _guess(data)
    text = data.decode(codec, "replace")
    lost = {"characters that could not be decoded": text.count("\ufffd")}
    return Decoded(text, (read_otherwise(f"as {codec}", lost),))


def looks_like_text(data: bytes) -> bool:
    """Whether the bytes are characters of some encoding rather than machine data."""
    if data.startswith(tuple(bom for bom, _ in _BOMS)):
        return True
    if _wide(data):
        return True
    control = len(data) - len(data.translate(None, _CONTROL))
    if control * 10 > len(data):
        return False
    if not control:
        return True
    # A few control characters occur in text that is mostly valid UTF-8; other data is binary.
    return _damaged_utf8(data) is not None


def _known(name: str | None) -> str | None:
    if not name:
        return None
    name = name.strip().lower()
    try:
        codec = codecs.lookup(_NAMES.get(name, name))
    except (LookupError, ValueError):
        return None
    if not codec._is_text_encoding or codec.name in ("utf-8", "ascii"):
        return None  # UTF-8 was tried before, and is ASCII where it is valid
    return _SUPERSETS.get(codec.name, codec.name)


def _seven_bit(data: bytes, known: str | None) -> str | None:
    """Return the codec of text that looks like ASCII but is not; None for other text."""
    if not data.isascii():
        return None
    escaped = next((codec for mark, codec in _ESCAPED.items() if mark in data), None)
    return escaped or (known if known in _SEVEN_BIT else None)


def _contradicted(data: bytes, known: str) -> bool:
    """Whether the bytes are not in the declared charset."""
    if known == _ANY_BYTES:
        return _cp949(data) is not None
    try:
        data.decode(known)
    except (UnicodeError, ValueError):
        # A file may be cut or have a damaged byte: another charset has to decode all of it.
        guess = _guess(data)
        lost = data.decode(guess, "replace").count("\ufffd")
        return guess != known and lost < data.decode(known, "replace").count("\ufffd")
    return False


def _guess(data: bytes) -> str:
    if codec := _wide(data) or _damaged_utf8(data) or _cp949(data):
        return codec
    first = _HIGH.search(data)
    start = max(0, (first.start() if first else 0) - 1024)
    sample = data[start : start + SAMPLE]
    apart = not _ADJACENT.search(sample)  # as in Western words, and in no text of East Asia
    if apart and len(_HIGH.findall(sample)) < FEW:
        return _ANY_BYTES
    guesses = from_bytes(sample, cp_isolation=_GUESSES[_MULTI_BYTE:] if apart else _GUESSES)
    if not guesses:
        return "cp1252"
    # Similar code pages often decode a short text equally well; then the more common one counts.
    best = min(guesses, key=lambda m: (m.chaos, -m.coherence, _GUESSES.index(m.encoding)))
    if best.encoding == "cp932" and not _FULL_WIDTH.search(data.decode("cp932", "replace")):
        return _ANY_BYTES  # a few signs such as ° and £ are half-width Katakana in it
    return best.encoding


def _wide(data: bytes) -> str | None:
    """Return the codec of UTF-16 without a byte order mark, else None.

    The high bytes of spaces and ASCII are zero, all at even or all at odd offsets.
    """
    sample = data[: SAMPLE & ~1]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    low, high = sorted((even, odd))
    if high * 20 < len(sample) // 2 or low * 2 > high:
        return None
    codec = "utf-16-le" if odd > even else "utf-16-be"
    text = sample.decode(codec, "replace")
    odd_ones = sum(1 for c in text if not c.isprintable() and not c.isspace())
    return codec if odd_ones * 50 <= len(text) else None


def _damaged_utf8(data: bytes) -> str | None:
    """Return `utf-8` if there are ten valid non-ASCII characters per invalid one, else None."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(len(run) for run in _NON_ASCII.findall(text[: 16 * SAMPLE])) - bad
    return "utf-8" if bad * 10 <= good or not bad else None


def _cp949(data: bytes) -> str | None:
    """Return `cp949`, the usual encoding of old Korean files, if the text is Korean, else None.

    charset-normalizer mistakes short Korean texts for Chinese.
    """
    sample = data.decode("cp949", "replace")[:SAMPLE]
    foreign = sum(len(run) for run in _NON_ASCII.findall(sample))
    hangul = sum(len(run) for run in _HANGUL.findall(sample))
    common = sum(len(run) for run in _COMMON.findall(sample))
    # Japanese decoded as CP949 gives Hangul too, but syllables that are rare in Korean.
    return "cp949" if hangul * 2 > foreign and common > COMMON_HANGUL * hangul else None
