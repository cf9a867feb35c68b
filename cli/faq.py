"""`callslip ingest-faq`: questions with their answers, of which each row is one hit."""

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

import click

from callslip.errors import CallslipError, TransientError
from cli.client import Client
from cli.desk import connect, url_option
from cli.output import as_json, emit, many, named, reporting
from config.faq import STRATEGIES
from config.settings import StoreKind

if TYPE_CHECKING:
    from compat.faq.rows import Row

DEFAULT_FAQ = "faq"
"""Where a person names none."""

BATCH, MOST_CHARACTERS, MOST_IDS = 100, 30_000, 5000
"""Rows, and ids of rows to be removed, that are sent at once: some seconds of embedding."""

PATIENCE_SECONDS = 90.0
"""A desk that was killed in the middle of rows leaves a lease of 60 s on them."""


def _strategies(_: click.Context, __: click.Parameter, given: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(each.strip() for each in given.split(",")))
    for each in chosen:
        if each not in STRATEGIES:
            raise click.BadParameter(f"{each!r} is none of {', '.join(STRATEGIES)}")
    return chosen


@click.command(name="ingest-faq")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-c",
    "--collection",
    "name",
    default=DEFAULT_FAQ,
    show_default=True,
    callback=named,
    help="The FAQ; its collections are NAME__STRATEGY.",
)
@click.option(
    "--strategies",
    default=",".join(STRATEGIES),
    show_default=True,
    callback=_strategies,
    help="What is embedded of each row, in a collection each.",
)
@click.option(
    "--store",
    type=click.Choice(get_args(StoreKind)),
    help="Where new collections are kept; default from the settings.",
)
@click.option("--prune", is_flag=True, help="Remove rows that are not in FILE.")
@url_option
@as_json
@reporting
def ingest_faq_command(
    file: Path,
    name: str,
    strategies: tuple[str, ...],
    store: str | None,
    prune: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Send the rows of FILE, JSON, JSONL or CSV with `question`, `answer` and `id`.

    The same file again writes only what changed. Rows that are no longer in it stay, unless --prune
    is given. All rows are checked before the first is sent; stopped half-way, what was sent is in,
    and the same command goes on.

    \b
    Example:  callslip ingest-faq faq.csv
              callslip ingest-faq faq.jsonl -c billing --strategies question,answer --prune
    """
    from compat.faq import files, places  # import every part; the other commands start faster

    for strategy in STRATEGIES:
        places.sibling(name, strategy)
    found = files.read(file)
    if found.passed_over and not json_out:
        click.echo(f"Passed over: {', '.join(found.passed_over)}", err=True)
    with connect(url) as client:
        client.readiness()  # a desk that is not there is not waited for
        faq = _Faq(client, name, strategies, store)
        counts = faq.send(found.rows, show_bar=not json_out)
        gone = faq.gone(found.rows)
        if prune:
            faq.remove(gone)
    told = {each: {**counts[each], "gone": len(gone[each])} for each in counts}
    if json_out:
        emit({"rows": len(found.rows), "pruned": prune, "collections": told})
        return
    for collection, count in told.items():
        click.echo(_line(collection, count, prune))


class _Faq:
    """An FAQ on the desk."""

    def __init__(
        self, client: Client, name: str, strategies: Sequence[str], store: str | None
    ) -> None:
        self._client = client
        self._path = f"/v1/faq/{quote(name, safe='')}"
        self._body = {"strategies": list(strategies)} | ({"store": store} if store else {})
        self._collections = [f"{name}__{strategy}" for strategy in strategies]

    def send(self, rows: Sequence["Row"], *, show_bar: bool) -> dict[str, dict[str, int]]:
        """Write the rows; how many were new, changed and unchanged, by collection."""
        counts = {each: {"new": 0, "changed": 0, "unchanged": 0} for each in self._collections}
        done = 0
        with click.progressbar(
            length=len(rows),
            label="Ingesting",
            show_pos=True,
            file=None if show_bar else io.StringIO(),
        ) as bar:
            try:
                for some in _batches(rows):
                    body = {"rows": [row.model_dump() for row in some], **self._body}
                    told = _post(self._client, self._path, body)
                    for collection, count in told["collections"].items():
                        for outcome, number in count.items():
                            counts[collection][outcome] += number
                    done += len(some)
                    bar.update(len(some))
            except CallslipError as error:
                if done:
                    error.advice += f" {_so_far(done, len(rows))}"
                raise
            except KeyboardInterrupt:
                click.echo(f"\n{_so_far(done, len(rows))}", err=True)
                raise
        return counts

    def gone(self, rows: Sequence["Row"]) -> dict[str, list[int | str]]:
        """Ids of rows that are there and not among these, by collection."""
        there = self._client.get(self._path)["collections"]
        kept = {str(row.id) for row in rows}
        return {
            each: [i for i in there.get(each, ()) if str(i) not in kept]
            for each in self._collections
        }

    def remove(self, gone: Mapping[str, Sequence[int | str]]) -> None:
        """Remove rows by their ids."""
        strategies = self._body["strategies"]
        for strategy, ids in zip(strategies, gone.values(), strict=True):
            for at in range(0, len(ids), MOST_IDS):
                body = {"ids": ids[at : at + MOST_IDS], "strategies": [strategy]}
                _post(self._client, f"{self._path}/remove", body)


def _batches(rows: Sequence["Row"]) -> Iterator[list["Row"]]:
    """The rows in their order, few of long ones at once."""
    some: list[Row] = []
    characters = 0
    for row in rows:
        length = len(row.question) + len(row.answer)
        if some and (len(some) == BATCH or characters + length > MOST_CHARACTERS):
            yield some
            some, characters = [], 0
        some.append(row)
        characters += length
    if some:
        yield some


def _post(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the desk answers; it is asked again while that may go well later, and does no harm."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return client.post(path, body)
        except TransientError as error:
            if time.monotonic() + error.retry_after > until:
                raise
            time.sleep(error.retry_after)


def _so_far(done: int, rows: int) -> str:
    return f"{done:,} of {many(rows, 'row')} are in; the same command goes on from there."


def _line(collection: str, count: Mapping[str, int], pruned: bool) -> str:
    told = [f"{count[each]:,} {each}" for each in ("new", "changed", "unchanged") if count[each]]
    if gone := count["gone"]:
        told.append(
            f"{gone:,} removed that were not in the file"
            if pruned
            else f"{gone:,} not in the file any more (--prune removes them)"
        )
    return f"{collection}: {', '.join(told)}"
