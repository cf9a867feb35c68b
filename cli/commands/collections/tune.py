"""`callslip tune`: fits the ranking weights of a collection on judged searches."""

import base64
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from callslip.cli.commands.collections.options import options_of, set_options
from callslip.cli.shared.output import as_json, emit, many, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.config import load
from callslip.errors import CallslipError, TuningError
from callslip.retrieval.tuning.examples import Example, Ranked, Weights, recorded
from callslip.retrieval.tuning.fit import FOLDS, Tuned, tune
from callslip.retrieval.tuning.proposing import figures_of
from callslip.stores.records import Vector
from callslip.workers.local_access import local_key

OFTEN = 100
"""The progress line changes after this many searches."""


@click.command(name="tune")
@click.argument("collection", callback=named)
@click.option(
    "--judged",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Fit on queries.jsonl and qrels.tsv of DIR, whose documents are in the collection.",
)
@click.option("--tenant", help="Whose documents --judged is about, in a collection with tenants.")
@click.option("--apply", "apply_", is_flag=True, help="Set the weights, where they are better.")
@url_option
@as_json
@reporting
def tune_command(
    collection: str,
    judged: Path | None,
    tenant: str | None,
    apply_: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Fit the ranking weights of COLLECTION and measure them on held-out questions.

    The command fits alpha, proximity and the weights of facets and memory that affect the ranking,
    on searches with hits that users or the validator judged, or on a judged set. A weight of 0 is
    off and stays off.

    Without --apply nothing changes. With --apply the command sets the collection's options, if
    the 95 % interval of the held-out gain in nDCG@10 is above 0 and, for recorded outcomes,
    off-policy evaluation agrees; otherwise the exit code is 1, as with fewer than 50 questions. No
    document is ingested again. See docs/tuning.md.

    \b
    Example:  callslip tune handbook
              callslip tune handbook --apply
              callslip tune handbook --judged sets/handbook --json
    """
    if tenant and judged is None:
        raise click.UsageError("--tenant goes with --judged; outcomes are those of all tenants.")
    show = _Line(shown=not json_out and sys.stderr.isatty())
    with connect(url) as client:
        now = _now(client, collection)
        if judged is None:
            read = list(_recorded(client, collection, now, show))
        else:
            read = list(_judged(client.url, collection, judged, now, tenant, show))
        known = [example for example in read if example is not None]
        show.tell("fitting", 0, FOLDS + 1)
        try:
            tuned = tune(
                known,
                now,
                biased=judged is None,
                on_fit=lambda done, total: show.tell("fitting", done, total),
            )
        finally:
            show.end()
        refusal = _refusal(tuned)
        applied = apply_ and refusal is None
        if applied:
            _apply(client, collection, tuned)
    report = _report(collection, judged is None, len(read), tuned, refusal, applied=applied)
    if json_out:
        emit(report)
    else:
        _show(report)
    if apply_ and refusal is not None:
        raise refusal


def _now(client: Client, collection: str) -> Ranked:
    ranking = client.show_ranking(collection)
    return Ranked(
        Weights(ranking.alpha, ranking.proximity, ranking.facets_weight, ranking.memory_weight),
        ranking.fusion,
    )


def _recorded(
    client: Client, collection: str, now: Ranked, show: "_Line"
) -> Iterator[Example | None]:
    """The searches with judged hits; None for a search with incomplete data."""
    for n, line in enumerate(client.list_examples(collection), 1):
        yield recorded(
            line.question,
            _vector(line.vector),
            line.basis,
            line.helped,
            line.explored,
            (line.alpha, line.fusion),
            now,
        )
        if n % OFTEN == 0:
            show.tell("reading searches", n)


def _vector(encoded: str | None) -> Vector | None:
    if encoded is None:
        return None
    return np.frombuffer(base64.b64decode(encoded), "<f2").astype(np.float32)


def _judged(
    url: str, collection: str, folder: Path, now: Ranked, tenant: str | None, show: "_Line"
) -> Sequence[Example | None]:
    from callslip.evals import beir, examples  # slow to import
    from callslip.evals.client import JsonClient

    questions = beir.read_questions(folder)
    with JsonClient(url, key=local_key(load().settings, url)) as client:
        return examples.ask(
            client,
            collection,
            questions,
            now,
            tenant=tenant,
            on_progress=lambda progress: show.tell(progress.phase, progress.done, progress.total),
        )


def _refusal(tuned: Tuned) -> CallslipError | None:
    try:
        tuned.check()
    except TuningError as error:
        return error
    return None


def _apply(client: Client, collection: str, tuned: Tuned) -> None:
    """Set the weights in the collection's current options."""
    options = options_of(client, collection)
    set_options(client, collection, options | {"ranking": options["ranking"] | tuned.changes})


def _report(
    collection: str,
    from_outcomes: bool,
    examples_read: int,
    tuned: Tuned,
    refusal: CallslipError | None,
    *,
    applied: bool,
) -> dict[str, Any]:
    return {
        "collection": collection,
        "from": "outcomes" if from_outcomes else "judged set",
        **figures_of(tuned),
        "left_out": examples_read - tuned.searches,
        "refusal": None if refusal is None else {"type": refusal.slug, "detail": refusal.detail},
        "applied": applied,
    }


def _show(report: dict[str, Any]) -> None:
    left = f"; {report['left_out']:,} more say too little" if report["left_out"] else ""
    click.secho(
        f"{report['collection']}: {many(report['questions'], 'question')} of the {report['from']},"
        f" {report['searches']:,} searches{left}",
        bold=True,
    )
    click.echo(f"{'':26}{'now':>8}{'proposed':>10}")
    for name, value in report["now"].items():
        proposed = _weight(report["proposed"][name]) if name in report["fitted"] else "–"
        click.echo(f"{name:26}{_weight(value):>8}{proposed:>10}")
    click.echo(f"{'nDCG@10, held out':26}{report['before']:8.3f}{report['after']:10.3f}")
    click.echo(f"{'gain [95 %]':26}{_interval(report['gain'])}")
    if guard := report["off_policy"]:
        click.echo(f"{'off-policy, at worst':26}{_interval(guard)}, η = {guard['eta']:g}")
    else:
        click.echo("A judged set is not biased by what was shown, so nothing guards against that.")
    if report["applied"]:
        click.echo("Applied: searches go by these weights from now on.")
    elif report["refusal"]:
        click.secho(f"Not to be applied: {report['refusal']['detail']}", fg="yellow")
    else:
        click.echo(f"Better. Apply it:  callslip tune {report['collection']} … --apply")


def _weight(value: float | None) -> str:
    return "chosen" if value is None else f"{value:.3f}"


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['mean']:+8.3f}  [{estimate['low']:+.3f}, {estimate['high']:+.3f}]"


class _Line:
    """One progress line on standard error."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    def tell(self, what: str, done: int, total: int | None = None) -> None:
        if self._shown:
            share = f"{done:,}" if total is None else f"{done:,}/{total:,}"
            click.echo(f"\r\x1b[K{what} {share}", nl=False, err=True)

    def end(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
