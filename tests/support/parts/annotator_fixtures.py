"""Fixtures of the tests of the annotator."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from annotator_parts import own_settings
from flask.testing import FlaskClient

from callslip.api import annotator_wsgi


@pytest.fixture
def fresh(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Settings and files of one test; no log line has the text of a document."""
    yield from own_settings(monkeypatch, tmp_path, caplog)


@pytest.fixture
def client(fresh: None) -> FlaskClient:
    """The annotator by itself."""
    return annotator_wsgi.create_app().test_client()
