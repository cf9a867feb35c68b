"""PDFs that are made here: forms, attachments, and text that a reader cannot see."""

from collections.abc import Mapping, Sequence

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def written(objects: Sequence[bytes], info: int | None = None) -> bytes:
    """A PDF of these objects, which are numbered from 1; the first one is the catalog."""
    made, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    about = b"" if info is None else b" /Info %d 0 R" % info
    return made + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R%s >>\n"
        b"startxref\n%d\n%%%%EOF\n"
    ) % (len(objects) + 1, table, len(objects) + 1, about, len(made))


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """A stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def shown(text: str, x: float = 60, y: float = 700, size: float = 12, how: str = "") -> str:
    """Operators that show a text; `how` are operators before it, such as a color."""
    return f"BT {how} /F1 {size:g} Tf {x:g} {y:g} Td ({text}) Tj ET\n"


def page_of(
    content: str,
    *,
    more: Sequence[bytes] = (),
    catalog: str = "",
    annotations: str = "",
    resources: str = "",
) -> bytes:
    """A page with this content; `more` objects are numbered from 6."""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            f" /Resources << /Font << /F1 5 0 R >> {resources} >> /Annots [{annotations}] >>"
        ).encode(),
        stream(content.encode("latin-1")),
        FONT,
        *more,
    ]
    return written(objects)


def form(content: str, fields: Sequence[Mapping[str, str]]) -> bytes:
    """A page with the fields of a form, each with entries of its dictionary: `T`, `V`, `Rect`."""
    numbers = [f"{6 + at} 0 R" for at in range(len(fields))]
    more = [
        (
            "<< /Type /Annot /Subtype /Widget /P 3 0 R "
            + " ".join(f"/{key} {value}" for key, value in field.items())
            + " >>"
        ).encode()
        for field in fields
    ]
    listed = " ".join(numbers)
    catalog = f"/AcroForm << /Fields [{listed}] /DA (/F1 10 Tf 0 g) >>"
    return page_of(content, more=more, annotations=listed, catalog=catalog)


def xfa_form(template: str, data: str) -> bytes:
    """A form whose page says no more than "Please wait...", with XFA packets."""
    names = {"template": template, "datasets": data}
    more = [stream(content.encode()) for content in names.values()]
    packets = " ".join(f"({name}) {6 + at} 0 R" for at, name in enumerate(names))
    return page_of(
        shown("Please wait..."),
        more=more,
        catalog=f"/NeedsRendering true /AcroForm << /Fields [] /XFA [{packets}] >>",
    )


def with_files(
    content: str, files: Mapping[str, bytes], noted: Mapping[str, bytes] | None = None
) -> bytes:
    """A page with files of the document, and files that notes on the page attach."""
    more: list[bytes] = []
    listed, notes = [], []
    for name, data in [*files.items(), *(noted or {}).items()]:
        more.append(stream(data, b"/Type /EmbeddedFile"))
        where = f"/F ({name}) /UF ({name}) /EF << /F {5 + len(more)} 0 R >>"
        more.append(f"<< /Type /Filespec {where} >>".encode())
        if len(listed) < len(files):
            listed.append(f"({name}) {5 + len(more)} 0 R")
        else:
            more.append(
                f"<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20]"
                f" /FS {5 + len(more)} 0 R >>".encode()
            )
            notes.append(f"{5 + len(more)} 0 R")
    names = f"/Names << /EmbeddedFiles << /Names [{' '.join(listed)}] >> >>"
    return page_of(content, more=more, catalog=names, annotations=" ".join(notes))
