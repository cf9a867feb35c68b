"""`callslip ingest-faq`: ingests questions with their answers; each row is one hit."""

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from callslip.cli.shared.output import as_json, emit, many, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import path_of
from callslip.config.sections.faq import STRATEGIES
from callslip.errors import CallslipError, TransientError
from callslip.vocabulary import StoreKind

if TYPE_CHECKING:
    from callslip.compat.faq.rows import Row

DEFAULT_FAQ = "faq"
"""The FAQ of a command without a name."""

BATCH, MOST_CHARACTERS, MOST_IDS = 100, 30_000, 5000
"""Limits of one request: rows, their characters, and ids of rows to remove; seconds of
embedding."""

PATIENCE_SECONDS = 90.0
"""A killed server leaves a lease of 60 s on the rows that it was writing."""


def _strategies(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(each.strip() for each in text.split(",")))
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
    help="Store of new collections; default from the settings.",
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

    A repeated command writes only changed rows. Rows that the file no longer has stay, unless
    --prune is set. All rows are checked before the first is sent; after an interruption the sent
    rows are stored, and the same command continues.

    \b
    Example:  callslip ingest-faq faq.csv
              callslip ingest-faq faq.jsonl -c billing --strategies question,answer --prune
    """
    from callslip.compat.faq import (  # slow to import; the other commands start faster
        collections,
        files,
    )

    for strategy in STRATEGIES:
        collections.sibling(name, strategy)
    file_rows = files.read(file)
    if file_rows.passed_over and not json_out:
        click.echo(f"Passed over: {', '.join(file_rows.passed_over)}", err=True)
    with connect(url) as client:
        client.request_json(
            "GET", "/readyz", also=(503,)
        )  # fails at once if the server is not running
        faq = _Faq(client, name, strategies, store)
        counts = faq.send(file_rows.rows, show_bar=not json_out)
        gone = faq.gone(file_rows.rows)
        if prune:
            faq.remove(gone)
    results = {each: {**counts[each], "gone": len(gone[each])} for each in counts}
    if json_out:
        emit({"rows": len(file_rows.rows), "pruned": prune, "collections": results})
        return
    for collection, count in results.items():
        click.echo(_line(collection, count, prune))


class _Faq:
    """An FAQ on the server."""

    def __init__(
        self, client: Client, name: str, strategies: Sequence[str], store: str | None
    ) -> None:
        self._client = client
        self._path = path_of("/v1/faq/{name}", name=name)
        self._body = {"strategies": list(strategies)} | ({"store": store} if store else {})
        self._collections = [f"{name}__{strategy}" for strategy in strategies]

    def send(self, rows: Sequence["Row"], *, show_bar: bool) -> dict[str, dict[str, int]]:
        """Write the rows; count new, changed and unchanged rows for each collection."""
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
                    written = _post(self._client, self._path, body)
                    for collection, count in written["collections"].items():
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
        """Ids of stored rows that the given ones lack, for each collection."""
        there = self._client.request_json("GET", self._path)["collections"]
        current = {str(row.id) for row in rows}
        return {
            each: [i for i in there.get(each, ()) if str(i) not in current]
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
    """Yield the rows in their order, in batches of bounded length."""
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
    """Return the response; repeat the request after a transient error, as it is idempotent."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            answer: dict[str, Any] = client.request_json("POST", path, json=body)
            return answer
        except TransientError as error:
            if time.monotonic() + error.retry_after > until:
                raise
            time.sleep(error.retry_after)


def _so_far(done: int, rows: int) -> str:
    return f"{done:,} of {many(rows, 'row')} are in; the same command goes on from there."


def _line(collection: str, count: Mapping[str, int], pruned: bool) -> str:
    outcomes = [
        f"{count[each]:,} {each}" for each in ("new", "changed", "unchanged") if count[each]
    ]
    if gone := count["gone"]:
        outcomes.append(
            f"{gone:,} removed that were not in the file"
            if pruned
            else f"{gone:,} not in the file any more (--prune removes them)"
        )
    return f"{collection}: {', '.join(outcomes)}"
