"""Names of tables as a person writes them."""

import re

from callslip.errors import InvalidRequest

USUAL_SCHEMA = "doc"
"""CrateDB's own default."""

LONGEST = 255
"""Bytes of a name that CrateDB takes."""

_PART = r'"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$-]*'
_NAME = re.compile(rf"\s*(?:({_PART})\.)?({_PART})\s*")


def table_named(text: str) -> tuple[str, str]:
    """The schema and the table that a text names, as SQL reads it; InvalidRequest for no name.

    A name without quotes is in lower case, and may have the dashes of Callslip's own tables.
    """
    found = _NAME.fullmatch(text)
    if not found:
        raise InvalidRequest(
            f"{text[:80]!r} is no name of a table",
            hint='Write TABLE or SCHEMA.TABLE; with other signs in quotes: doc."My table".',
        )
    schema, table = (_plain(part) for part in found.groups(USUAL_SCHEMA))
    for name in (schema, table):
        if len(name.encode(errors="replace")) > LONGEST:
            raise InvalidRequest(f"The name {name[:40]!r}… has more than {LONGEST} bytes.")
    return schema, table


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
