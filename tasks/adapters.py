"""The registry of adapters: endpoints and jobs that speak the protocol of another system.

The core imports no adapter. This module lists the built-in adapters; other packages add theirs by
an entry point of the group `callslip.adapters` that refers to an `Adapter`. Adapters are listed by
module name and imported on use, so that a worker does not import Flask.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from callslip.errors import SettingsError
from callslip.tasks.composition import Context

GROUP = "callslip.adapters"
"""The group of entry points by which other packages add adapters."""

Job = Callable[[Context, Any], Any]
"""A function that a worker runs for an adapter: JSON in, JSON out. It raises Callslip's errors."""


@dataclass(frozen=True)
class Adapter:
    """An adapter. It refers to objects as `package.module:attribute`.

    `blueprints` refer to its endpoints, each an `APIBlueprint` of flask-openapi3. `jobs` maps the
    name of each job to its function (`Job`), which runs in a worker; `compute.run` queues it as
    `ADAPTER.JOB`.
    """

    name: str
    blueprints: tuple[str, ...] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)


BUILT_IN = (
    Adapter(
        "faq",
        ("callslip.api.adapters.faq:blueprint", "callslip.api.adapters.compare_page:blueprint"),
        {"write": "callslip.compat.faq.jobs:write"},
    ),
    Adapter(
        "genie",
        ("callslip.api.adapters.invokers:blueprint",),
        {"persist": "callslip.compat.genie.jobs:persist"},
    ),
    Adapter(
        "annotator",
        ("callslip.api.adapters.annotator:blueprint",),
        {"fit": "callslip.compat.annotator.jobs:fit"},
    ),
    Adapter(
        "chunks",
        jobs={
            "preview": "callslip.tasks.jobs.file_preview:cut",
            "cut": "callslip.tasks.jobs.document_preview:cut",
            "correct": "callslip.tasks.jobs.correcting:make",
        },
    ),
    Adapter(
        "attached-tables",
        ("callslip.api.adapters.attached_tables:blueprint",),
        {"embed": "callslip.compat.chroma.jobs:embed"},
    ),
)
"""The adapters that are part of Callslip."""


@cache
def adapters() -> Mapping[str, Adapter]:
    """Every adapter by its name, the built-in ones first.

    Raises SettingsError if an adapter of another package cannot be loaded or its name is taken.
    """
    known = {adapter.name: adapter for adapter in BUILT_IN}
    for point in entry_points(group=GROUP):
        adapter = _loaded(point.value)
        if not isinstance(adapter, Adapter) or adapter.name in known:
            raise SettingsError(
                f"the entry point {point.name!r} of {GROUP} adds no adapter: {point.value}",
                hint="It must lead to a callslip.tasks.adapters.Adapter with a name of its own;"
                " else uninstall its package.",
            )
        known[adapter.name] = adapter
    return known


def blueprints(*names: str) -> list[Any]:
    """The endpoints of the named adapters, or of all.

    Raises SettingsError if one cannot be loaded.
    """
    chosen = [adapters()[name] for name in names] if names else adapters().values()
    return [_loaded(blueprint) for adapter in chosen for blueprint in adapter.blueprints]


def job_of(name: str) -> Job:
    """The job with the name `ADAPTER.JOB`. Raises SettingsError if it is not installed here."""
    adapter, _, job = name.partition(".")
    known = adapters().get(adapter)
    if known is None or job not in known.jobs:
        raise SettingsError(
            f"this worker knows no job {name!r}",
            hint="Install the adapter's package where the workers run too, and start them again.",
        )
    function: Job = _loaded(known.jobs[job])
    return function


def _loaded(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"the adapter's {name!r} cannot be loaded: {error}",
            hint="Install what its package needs, or uninstall the package.",
        ) from error
