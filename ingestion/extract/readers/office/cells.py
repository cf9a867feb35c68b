"""The values of a workbook's cells as text."""

import datetime


def shown(value: object) -> str:
    """Return a value as a person reads it: without midnight as a time, without a zero fraction."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time.min
        return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)
