"""The servers of stores that a run of the suite used, with their versions, for its summary."""

from typing import Any

import httpx
import pytest

PROPERTY = "the server of a store"
"""The property of a report that names a server: so the names come from every process of the run."""

_new: list[str] = []


def note(product: str, url: str, origin: str) -> None:
    """Note the server that says its version at this address, and where it comes from."""
    answer: Any = httpx.get(url, timeout=30).raise_for_status().json()
    version = answer.get("version") if isinstance(answer, dict) else answer
    if isinstance(version, dict):
        version = version["number"]
    _new.append(f"{product} {version} ({origin})")


def add_to(report: pytest.TestReport) -> None:
    """Name the servers that were noted since the last report."""
    while _new:
        report.user_properties.append((PROPERTY, _new.pop()))


def noted(reports: list[Any]) -> list[str]:
    """The servers that these reports name, sorted."""
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    return sorted({str(value) for name, value in properties if name == PROPERTY})
