"""Small files of Office 97, made here: OLE containers, workbooks and presentations."""

import struct
from collections.abc import Mapping, Sequence

SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SMALL_STREAM = 4096
"""Streams below this size would lie in another stream; here each is filled up to it."""

DATE_FORMAT = 14


def ole(streams: Mapping[str, bytes]) -> bytes:
    """A container with these streams in its root ([MS-CFB])."""
    bodies = [content.ljust(SMALL_STREAM, b"\0") for content in streams.values()]
    counts = [-(-len(body) // SECTOR) for body in bodies]
    directory_count = -(-(len(streams) + 1) // 4)
    fat_count = -(-(sum(counts) + directory_count + 8) // 128)
    chains = [FAT] * fat_count
    first = fat_count
    starts = []
    for count in [directory_count, *counts]:
        starts.append(first)
        chains += [*range(first + 1, first + count), END]
        first += count
    chains += [FREE] * (fat_count * 128 - len(chains))
    entries = _entry("Root Entry", 5, child=1, start=END, size=0)
    for number, (name, start, body) in enumerate(
        zip(streams, starts[1:], bodies, strict=True), start=1
    ):
        following = number + 1 if number < len(streams) else FREE
        entries += _entry(name, 2, right=following, start=start, size=len(body))
    header = (
        bytes.fromhex("D0CF11E0A1B11AE1")
        + bytes(16)
        + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
        + struct.pack("<II", 0, fat_count)
        + struct.pack("<III", starts[0], 0, SMALL_STREAM)
        + struct.pack("<IIII", END, 0, END, 0)
        + struct.pack("<109I", *range(fat_count), *[FREE] * (109 - fat_count))
    )
    fat = struct.pack(f"<{len(chains)}I", *chains)
    whole = b"".join(_padded(body) for body in bodies)
    return header + fat + entries.ljust(directory_count * SECTOR, b"\0") + whole


def _padded(body: bytes) -> bytes:
    return body.ljust(-(-len(body) // SECTOR) * SECTOR, b"\0")


def _entry(
    name: str, kind: int, *, start: int, size: int, child: int = FREE, right: int = FREE
) -> bytes:
    encoded = (name + "\0").encode("utf-16-le")
    links = struct.pack("<III", FREE, right, child)
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded), kind, 1) + links
    return head + bytes(36) + struct.pack("<IQ", start, size)


def summary(title: str, page: int = 65001) -> bytes:
    """The stream of properties with a title."""
    codec = "utf-8" if page == 65001 else f"cp{page}"
    text = title.encode(codec) + b"\0"
    section = struct.pack("<IIIII", 2, 1, 24, 2, 32) + struct.pack("<IHxx", 2, page)
    section += struct.pack("<II", 0x1E, len(text)) + text
    head = struct.pack("<HHI16xI16sI", 0xFFFE, 0, 0, 1, bytes(16), 48)
    return head + struct.pack("<I", len(section) + 4) + section


def xls(sheets: Mapping[str, Sequence[Sequence[object]]], *objects: int, title: str = "") -> bytes:
    """A workbook of Excel 97: texts, numbers, and dates as the days since 1900 in a tuple.

    `objects` are the kinds of drawn objects on the first sheet ([MS-XLS] 2.5.143).
    """
    formats = [0, DATE_FORMAT]
    head = _biff(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 6))
    head += _biff(0x42, struct.pack("<H", 1200))
    head += b"".join(_biff(0xE0, struct.pack("<HH16x", 0, number)) for number in formats)
    bodies = [_sheet(rows) for rows in sheets.values()]
    drawn = b"".join(
        _biff(0x5D, struct.pack("<HHHH14x", 0x15, 0x12, kind, 1) + bytes(4)) for kind in objects
    )
    bodies[0] = bodies[0][:-4] + drawn + bodies[0][-4:]
    names = [_short(name) for name in sheets]
    at = len(head) + sum(10 + len(name) for name in names) + 4
    for name, body in zip(names, bodies, strict=True):
        head += _biff(0x85, struct.pack("<IBB", at, 0, 0) + name)
        at += len(body)
    streams = {"Workbook": head + _biff(0x0A, b"") + b"".join(bodies)}
    return ole(streams | ({"\x05SummaryInformation": summary(title)} if title else {}))


def _sheet(rows: Sequence[Sequence[object]]) -> bytes:
    made = _biff(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 6))
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            match value:
                case str():
                    text = struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")
                    made += _biff(0x204, struct.pack("<HHH", y, x, 0) + text)
                case bool():
                    made += _biff(0x205, struct.pack("<HHHBB", y, x, 0, value, 0))
                case (int() | float() as days,):
                    made += _biff(0x203, struct.pack("<HHHd", y, x, 1, days))
                case int() | float():
                    made += _biff(0x203, struct.pack("<HHHd", y, x, 0, value))
    return made + _biff(0x0A, b"")


def _short(name: str) -> bytes:
    return struct.pack("<BB", len(name), 1) + name.encode("utf-16-le")


def _biff(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def atom(kind: int, content: bytes, instance: int = 0) -> bytes:
    """A record of a presentation that holds data."""
    return struct.pack("<HHI", instance << 4, kind, len(content)) + content


def container(kind: int, *records: bytes, instance: int = 0) -> bytes:
    """A record of a presentation that holds records."""
    inner = b"".join(records)
    return struct.pack("<HHI", instance << 4 | 0xF, kind, len(inner)) + inner


def ppt_text(text: str, kind: int = 4) -> bytes:
    """The two records of a text: its kind (0 a title, 1 a body, 2 notes, 4 other) and itself."""
    characters = text.replace("\n", "\r")
    if characters.isascii():
        return atom(0xF9F, struct.pack("<I", kind)) + atom(0xFA8, characters.encode())
    return atom(0xF9F, struct.pack("<I", kind)) + atom(0xFA0, characters.encode("utf-16-le"))


def box(*records: bytes) -> bytes:
    """A shape with text."""
    return container(0xF004, atom(0xF00D, b"".join(records)))


def slide(*shapes: bytes, notes: int = 0) -> bytes:
    """A slide, and the number of its notes."""
    head = atom(0x3EF, struct.pack("<I8xIIHH", 1, 0, notes, 0, 0))
    return container(0x3EE, head, container(0x40C, container(0xF002, container(0xF003, *shapes))))


def notes(*shapes: bytes) -> bytes:
    """The page of notes of a slide."""
    return container(0x3F0, atom(0x3F1, bytes(8)), container(0x40C, *shapes))


def in_list(reference: int, number: int, *texts: bytes) -> bytes:
    """A slide in a list of the document: its object, its number and the text of placeholders."""
    return atom(0x3F3, struct.pack("<IIiII", reference, 0, 0, number, 0)) + b"".join(texts)


def ppt(
    edits: Sequence[Mapping[int, bytes]],
    *,
    token: int = 0xE391C05F,
    loop: bool = False,
    title: str = "",
) -> bytes:
    """A presentation that was saved once for each mapping of objects; object 1 is the document."""
    stream, before = bytes(8), 0
    for objects in edits:
        offsets = {}
        for key, record in objects.items():
            offsets[key] = len(stream)
            stream += record
        directory = len(stream)
        entries = (struct.pack("<II", 1 << 20 | key, at) for key, at in offsets.items())
        stream += atom(0x1772, b"".join(entries))
        at = len(stream)
        last = at if loop else before
        stream += atom(0xFF5, struct.pack("<IIIIIIHH", 0, 0, last, directory, 1, 99, 1, 0))
        before = at
    user = struct.pack("<HHIIII", 0, 0xFF6, 24, 20, token, before)
    streams = {"PowerPoint Document": stream, "Current User": user}
    return ole(streams | ({"\x05SummaryInformation": summary(title)} if title else {}))


def document(*listed: bytes, noted: Sequence[bytes] = ()) -> bytes:
    """The document with its lists of slides and of notes."""
    return container(
        0x3E8, container(0xFF0, *listed, instance=0), container(0xFF0, *noted, instance=2)
    )
