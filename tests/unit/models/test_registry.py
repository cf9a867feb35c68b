"""The registry of models: what it makes for the settings of a process."""

import os
from typing import Any

import pytest

from callslip.config.settings import Settings
from callslip.models.embedders import local
from callslip.models.reader import reader
from callslip.models.registry import make_embedder, make_reader


def test_a_process_of_questions_computes_as_many_at_once_as_its_cores_have_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[int, int]] = []

    def make(*parts: object, threads: int, at_once: int, **options: Any) -> None:
        made.append((threads, at_once))

    monkeypatch.setattr(local, "E5Embedder", make)
    monkeypatch.setattr(reader, "Reader", make)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    settings = Settings()
    for each in (settings, settings.for_questions()):
        make_embedder(each)
        make_reader(each)
    assert made == [(4, 1), (4, 1), (4, 2), (4, 2)]
