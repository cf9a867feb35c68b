"""Parsing table names that a person writes."""

import re

from callslip.errors import InvalidRequest

USUAL_SCHEMA = "doc"
"""The default schema of CrateDB."""

LONGEST = 255
"""The longest name that CrateDB accepts, in bytes."""

_PART = r'"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$-]*'
_NAME = re.compile(rf"\s*(?:({_PART})\.)?({_PART})\s*")


def table_named(text: str) -> tuple[str, str]:
    """Parse a name as SQL does; return the schema and the table.

    A name without quotes is changed to lower case, and may contain dashes, as Callslip's own tables
    do. Raises InvalidRequest if the text is not a table name.
    """
    match = _NAME.fullmatch(text)
    if not match:
        raise InvalidRequest(
            f"{text[:80]!r} is no name of a table",
            hint='Write TABLE or SCHEMA.TABLE; with other signs in quotes: doc."My table".',
        )
    schema, table = (_plain(part) for part in match.groups(USUAL_SCHEMA))
    for name in (schema, table):
        if len(name.encode(errors="replace")) > LONGEST:
            raise InvalidRequest(f"The name {name[:40]!r}… has more than {LONGEST} bytes.")
    return schema, table


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
