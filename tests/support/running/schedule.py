"""Which tests one worker of pytest-xdist runs one after the other, and what begins first.

A file is a group, so that fixtures of modules are made once. Tests of a shared stack are one group
whatever their file is, as one worker has that stack. What takes longest begins first.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SHARED_FIXTURES = ("stack", "hasty_stack", "lexical_stack")
"""Stacks of a whole session: the tests of each are one group."""

GROUPS = "groups.json"
"""Names the group of every test that is in another one than its file's."""

FIRST = (
    "tests/chaos hasty_stack",
    "tests stack",
    "tests lexical_stack",
    "tests/acceptance stack",
    "tests/integration/",
)
"""The groups that take longest by the start of their names, longest first.

The others follow as they were collected.
"""


def group_of(item: pytest.Item) -> str | None:
    """The group of a test that is not in its file's."""
    definition = _shared_stack(item)
    return f"{definition.baseid} {definition.argname}" if definition else None


def stop_shared_stack(item: pytest.Item, next_item: pytest.Item | None) -> None:
    """Tear the shared stack of `item` down if `next_item` is not of its group.

    A stack needs up to 4 GiB, and a session fixture would keep it until the end of the process.
    """
    definition = _shared_stack(item)
    if definition and (next_item is None or group_of(next_item) != group_of(item)):
        definition.finish(item._request)  # type: ignore[attr-defined]


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests of the groups that take longest first, the others as they are."""
    return sorted(items, key=_rank)


def write_groups(items: Iterable[pytest.Item], folder: Path) -> None:
    """Tell the process that distributes the tests, which sees their ids alone."""
    groups = {item.nodeid: group for item in items if (group := group_of(item))}
    partial = folder / f"{GROUPS}.{os.getpid()}"
    partial.write_text(json.dumps(groups))
    partial.replace(folder / GROUPS)


class GroupScheduling(LoadScopeScheduling):
    """Distributes groups instead of modules and classes."""

    def __init__(self, config: pytest.Config, log: Producer, folder: Path) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._folder = folder
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        if self.collection is None:
            groups = self._folder / GROUPS
            self._groups = json.loads(groups.read_text()) if groups.exists() else {}
        super().schedule()

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a lost worker has not done to others; return the test that it was running.

        xdist's method gives away all that the worker ever had: what is done, as empty groups, for
        which others wait for ever, and the test that ended the worker, which would end others.
        """
        groups = self.assigned_work.pop(node)
        left = [
            (group, test) for group in groups for test, done in groups[group].items() if not done
        ]
        if not left:
            return None
        (_, running), *others = left
        for group, test in others:
            self.workqueue.setdefault(group, {})[test] = False
        for other in self.nodes:
            self._reschedule(other)
        return running

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            raise RuntimeError(f"{node.gateway.id} collected other tests than those before it")

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker at least two tests: it runs one once it knows the next, or that none is."""
        if node not in self.registered_collections:
            return  # it collects them still
        super()._reschedule(node)
        if self._pending_of(self.assigned_work[node]) == 1:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        with suppress(OSError):  # the worker is lost: `remove_node` gives its tests to others
            super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid) or _file(nodeid)


def _rank(item: pytest.Item) -> int:
    """The position in FIRST of the start of the name of the item's group."""
    group = group_of(item) or _file(item.nodeid)
    return next((n for n, start in enumerate(FIRST) if group.startswith(start)), len(FIRST))


def _shared_stack(item: pytest.Item) -> "pytest.FixtureDef[object] | None":
    shared = next((name for name in SHARED_FIXTURES if name in item.fixturenames), None)
    if shared is None:
        return None
    definitions = item.session._fixturemanager.getfixturedefs(shared, item)
    return definitions[-1] if definitions else None


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
