"""Adapters by name: those of other packages, and the work that they leave to workers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, app_over

from callslip.api.app import create_app
from callslip.config.settings import Settings
from callslip.errors import Overloaded, SettingsError, WorkTimeout
from callslip.tasks import adapters, compute
from callslip.tasks.composition import Context

OUTSIDE = """
from flask import Response
from flask_openapi3 import APIBlueprint
from callslip.api.http.context import current
from callslip.tasks import compute
from callslip.tasks.adapters import Adapter

adapter = Adapter("outside", ("outside_adapter:blueprint",), {"double": "outside_adapter:double"})
blueprint = APIBlueprint("outside", __name__)

def double(context, number):
    return 2 * number

@blueprint.get("/v1/outside")
def outside():
    "Twice 21."
    return Response(str(compute.run(current(), "outside.double", 21)))
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    adapters.adapters.cache_clear()
    yield
    adapters.adapters.cache_clear()
    sys.modules.pop("outside_adapter", None)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """A package whose entry point leads there, as pip would leave it in site-packages."""
    (folder / "outside_adapter.py").write_text(OUTSIDE)
    info = folder / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{adapters.GROUP}]\noutside = {target}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_an_adapter_of_another_package_adds_endpoints_and_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "outside_adapter:adapter")
    app = app_over(Settings(data_dir=tmp_path))
    assert app.test_client().get("/v1/outside").text == "42"


@pytest.mark.parametrize("target", ["outside_adapter:nothing", "nowhere:adapter", "json:dumps"])
def test_an_adapter_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    install(tmp_path, monkeypatch, target)
    with pytest.raises(SettingsError, match=target):
        adapters.adapters()


def test_a_job_that_nobody_brought_is_an_error_with_advice() -> None:
    for name in ("faq.nothing", "nothing.write", "faq"):
        with pytest.raises(SettingsError, match="knows no job"):
            adapters.job_of(name)


@pytest.mark.long
def test_reading_the_core_reads_no_adapter() -> None:
    program = (
        "import sys, callslip.tasks.adapters, callslip.workers.app\n"
        "print([m for m in sys.modules if m.startswith(('callslip.compat', 'callslip.api'))])"
    )
    shown = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"


class Silent(LoneBroker):
    """A broker with a worker that never replies."""

    def scan_iter(self, **_: object) -> Iterator[bytes]:
        return iter((b"consumer:adapters:host:1",))

    def set(self, *_: object, **__: object) -> None:
        pass

    def brpop(self, *_: object, **__: object) -> None:
        pass


def context_with(broker: Any) -> Context:
    return Context(Settings(), broker=broker)


def test_without_a_worker_the_caller_is_told_at_once() -> None:
    with pytest.raises(Overloaded, match="no worker reads the queue 'adapters'"):
        compute.run(context_with(LoneBroker()), "faq.write", {})
    assert Overloaded.status == 503


def test_a_worker_that_does_not_answer_in_time_is_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compute.compute, "apply_async", lambda *_, **__: None)
    with pytest.raises(WorkTimeout, match=r"within 0\.05 s"):
        compute.run(context_with(Silent()), "faq.write", {}, seconds=0.05)
    assert WorkTimeout.status == 504


def test_the_api_needs_a_context_with_known_parts() -> None:
    with pytest.raises(TypeError, match="no part 'ledgr'"):
        create_app(Context(Settings(), ledgr=None))
