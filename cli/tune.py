"""`callslip tune`: fits a collection's weights on what is known to answer its questions."""

import base64
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import numpy as np

from api.ranking_messages import JudgedSearchLine, RankingMessage
from callslip.errors import CallslipError, TuningError
from cli.client import Client
from cli.collection_options import options_of
from cli.desk import connect, url_option
from cli.output import as_json, emit, many, named, reporting
from config import load
from retrieval.examples import Example, Ranked, Weights, recorded
from retrieval.resampling import Estimate
from retrieval.tuning import FOLDS, Tuned, tune
from stores.records import Vector

OFTEN = 100
"""Searches after which it is told how many were read."""


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
    """Fit the weights of COLLECTION's ranking and measure them on questions held out.

    Fitted are alpha, proximity and the weights of facets and memory, those that matter there; on
    the searches of which somebody, or the validator, said which hits helped, or on a judged set. A
    weight of 0 is off and stays off.

    Without --apply nothing changes. With it the options of the collection are set, only where the
    95 % interval of the held-out gain in nDCG@10 is above 0 and, for recorded outcomes, off-policy
    evaluation agrees; else the exit code is 1, as with fewer than 50 questions. Nothing is ingested
    anew. See docs/tuning.md.

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
            given = list(_recorded(client, collection, now, show))
        else:
            given = list(_judged(client.url, collection, judged, now, tenant, show))
        known = [example for example in given if example is not None]
        show.tell("fitting", 0, FOLDS + 1)
        try:
            tuned = tune(
                known,
                now,
                biased=judged is None,
                told=lambda done, total: show.tell("fitting", done, total),
            )
        finally:
            show.end()
        refusal = _refusal(tuned)
        applied = apply_ and refusal is None
        if applied:
            _apply(client, collection, tuned)
    report = _report(collection, judged is None, len(given), tuned, refusal, applied=applied)
    if json_out:
        emit(report)
    else:
        _show(report)
    if apply_ and refusal is not None:
        raise refusal


def _now(client: Client, collection: str) -> Ranked:
    found = client.get(f"/v1/collections/{quote(collection, safe='')}/ranking")
    ranking = RankingMessage.model_validate(found)
    return Ranked(
        Weights(ranking.alpha, ranking.proximity, ranking.facets_weight, ranking.memory_weight),
        ranking.fusion,
    )


def _recorded(
    client: Client, collection: str, now: Ranked, show: "_Line"
) -> Iterator[Example | None]:
    """The searches of which hits helped; None for one of which too little is known."""
    path = f"/v1/collections/{quote(collection, safe='')}/ranking/examples"
    for n, text in enumerate(client.lines(path), 1):
        line = JudgedSearchLine.model_validate_json(text)
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


def _vector(given: str | None) -> Vector | None:
    if given is None:
        return None
    return np.frombuffer(base64.b64decode(given), "<f2").astype(np.float32)


def _judged(
    url: str, collection: str, folder: Path, now: Ranked, tenant: str | None, show: "_Line"
) -> Sequence[Example | None]:
    from evals import beir, examples  # what measures is slow to import
    from evals.client import Desk

    questions = beir.read_questions(folder)
    with Desk(url, key=load().settings.api.key) as desk:
        return examples.ask(
            desk,
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
    """Set the weights among the options as they are at this moment."""
    options = options_of(client, collection)
    client.set_options(collection, options | {"ranking": options["ranking"] | tuned.changes})


def _report(
    collection: str,
    from_outcomes: bool,
    given: int,
    tuned: Tuned,
    refusal: CallslipError | None,
    *,
    applied: bool,
) -> dict[str, Any]:
    guard = tuned.off_policy
    return {
        "collection": collection,
        "from": "outcomes" if from_outcomes else "judged set",
        "questions": tuned.questions,
        "searches": tuned.searches,
        "left_out": given - tuned.searches,
        "now": asdict(tuned.now),
        "proposed": asdict(tuned.proposed),
        "fitted": list(tuned.fitted),
        "before": round(tuned.before, 4),
        "after": round(tuned.after, 4),
        "gain": _rounded(tuned.gain),
        "off_policy": None if guard is None else {"eta": guard.eta, **_rounded(guard.change)},
        "refusal": None if refusal is None else {"type": refusal.slug, "detail": refusal.detail},
        "applied": applied,
    }


def _rounded(found: Estimate) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(found).items()}


def _show(report: dict[str, Any]) -> None:
    left = f"; {report['left_out']:,} more say too little" if report["left_out"] else ""
    click.secho(
        f"{report['collection']}: {many(report['questions'], 'question')} of the {report['from']},"
        f" {report['searches']:,} searches{left}",
        bold=True,
    )
    click.echo(f"{'':26}{'now':>8}{'proposed':>10}")
    for name, value in report["now"].items():
        told = f"{report['proposed'][name]:10.3f}" if name in report["fitted"] else f"{'–':>10}"
        click.echo(f"{name:26}{value:8.3f}{told}")
    click.echo(f"{'nDCG@10, held out':26}{report['before']:8.3f}{report['after']:10.3f}")
    click.echo(f"{'gain [95 %]':26}{_told(report['gain'])}")
    if guard := report["off_policy"]:
        click.echo(f"{'off-policy, at worst':26}{_told(guard)}, η = {guard['eta']:g}")
    else:
        click.echo("A judged set is not biased by what was shown, so nothing guards against that.")
    if report["applied"]:
        click.echo("Applied: searches go by these weights from now on.")
    elif report["refusal"]:
        click.secho(f"Not to be applied: {report['refusal']['detail']}", fg="yellow")
    else:
        click.echo(f"Better. Apply it:  callslip tune {report['collection']} … --apply")


def _told(found: dict[str, float]) -> str:
    return f"{found['mean']:+8.3f}  [{found['low']:+.3f}, {found['high']:+.3f}]"


class _Line:
    """One line on standard error that says how far it is."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    def tell(self, what: str, done: int, total: int | None = None) -> None:
        if self._shown:
            share = f"{done:,}" if total is None else f"{done:,}/{total:,}"
            click.echo(f"\r\x1b[K{what} {share}", nl=False, err=True)

    def end(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
