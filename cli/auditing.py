"""`callslip audit`: every store against the ledger, and repairs, worked on directly."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from cli.findings import table, told
from cli.output import as_json, emit, reporting
from config import Settings
from stores.audit import Finding, Look, Place, look, places
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import STEPS, Ledger, Step
from stores.registry import kinds, make_store
from stores.strays import look_aside, look_at_files
from workers.placement import open_ledger, placed_settings

if TYPE_CHECKING:
    from ingestion.repair import Repaired
    from ingestion.workshop import Workshop

Done = Callable[[int], None]


@click.command()
@click.argument("collection", required=False)
@click.option("--repair", "repairing", is_flag=True, help="Set right what can be, count again.")
@click.option(
    "--force",
    is_flag=True,
    help="With --repair: remove also what is doubtful, such as most of what a store holds.",
)
@as_json
@reporting
def audit(collection: str | None, repairing: bool, force: bool, json_out: bool) -> None:
    """Compare every store with the ledger: what nobody knows, and what is missing.

    Counts the chunks in each half of each store, the documents and their files, of one COLLECTION
    or of all. It works on the stores directly, beside what runs, and takes documents that come and
    go meanwhile for what they are. With --repair orphans are removed and what is missing is written
    again. Exit code 1 while something is wrong.

    \b
    Example:  callslip audit
              callslip audit handbook --repair
    """
    with _Auditor(placed_settings(), collection, quiet=json_out) as auditor:
        looks, findings = auditor.audit()
        outcome = _Outcome(looks, findings, auditor.moving)
        if repairing and findings:
            repaired = auditor.repair(findings, force=force)
            looks, left = auditor.audit()
            outcome = _Outcome(looks, findings, auditor.moving, repaired, left)
    if json_out:
        emit(outcome.as_json())
    else:
        _tell(outcome)
    sys.exit(1 if outcome.wrong else 0)


@dataclass(frozen=True)
class _Outcome:
    """What was found; where it was repaired, what became of it and what a second count found."""

    looks: list[Look]
    findings: list[Finding]
    moving: dict[str, str]
    repaired: "list[Repaired] | None" = None
    left: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> list[Finding]:
        """What is wrong in the end."""
        return self.findings if self.repaired is None else self.left

    def reason(self, finding: Finding) -> str:
        """Why it stands after a repair, and what to do."""
        from ingestion.repair import LOST, MOVING

        tried = {_key(r.finding): r.left for r in self.repaired or ()}
        lost = LOST if finding.kind == "missing" and _key(finding) in tried else MOVING
        return tried.get(_key(finding)) or lost

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        shown = [{k: v for k, v in asdict(seen).items() if k != "findings"} for seen in self.looks]
        found = {
            "places": shown,
            "moving": self.moving,
            "findings": [asdict(finding) for finding in self.findings],
        }
        if self.repaired is None:
            return found
        left = [asdict(finding) | {"reason": self.reason(finding)} for finding in self.left]
        return found | {
            "repaired": [asdict(r.finding) for r in self.repaired if not r.left],
            "left": left,
        }


def _key(finding: Finding) -> tuple[str, ...]:
    where = (finding.store, finding.collection, finding.tenant)
    half = "" if finding.kind == "missing" else finding.half  # which are mended at once
    return (finding.kind, *where, finding.document_id, half)


def _tell(outcome: _Outcome) -> None:
    for line in table(outcome.looks):
        click.echo(line)
    for name, reason in outcome.moving.items():
        click.secho(f"{name}: not looked at, {reason}.", fg="yellow")
    for line in told(outcome.findings):
        click.secho(f"- {line}", fg="yellow")
    if not outcome.findings:
        if outcome.looks or not outcome.moving:
            seen = "What was looked at" if outcome.moving else "Every store"
            click.secho(f"{seen} holds what the ledger says.", fg="green")
    elif outcome.repaired is None:
        click.echo("Set right what can be with:  callslip audit --repair")
    elif not outcome.left:
        click.secho("Repaired. Counted again, every store holds what the ledger says.", fg="green")
    else:
        click.secho("Repaired. Counted again, this is left:", fg="red")
        for reason in sorted({outcome.reason(finding) for finding in outcome.left}):
            for line in told(f for f in outcome.left if outcome.reason(f) == reason):
                click.echo(f"- {line}")
            click.echo(f"  {reason[0].upper()}{reason[1:]}.")


class _Auditor:
    """The parts of an audit, opened; a bar on standard error while it works."""

    def __init__(self, settings: Settings, only: str | None, *, quiet: bool) -> None:
        self._settings, self._only, self._quiet = settings, only, quiet
        self._open = ExitStack()

    def __enter__(self) -> "_Auditor":
        self._ledger: Ledger = self._open.enter_context(closing(open_ledger(self._settings)))
        self._blobs = Blobs(self._settings.blobs_url)
        self._stores: dict[str, Store] = {
            kind: self._open.enter_context(closing(make_store(self._settings, kind)))
            for kind in kinds(self._settings)
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def moving(self) -> dict[str, str]:
        """Why collections are left out: a move or an import writes to them, or was broken off."""
        left_out = {}
        for record, _ in self._ledger.collections.all():
            name = record.name
            if self._only not in (None, name) or not self._ledger.inventory.moving(name):
                continue
            to, switched, until = self._ledger.moves.underway(name) or (record.store, False, 0.0)
            if until > time.time():
                left_out[name] = "it is being moved or imported into"
            elif to == record.store:
                left_out[name] = "an import into it was broken off: run that to its end"
            else:
                to = record.store if switched else to
                left_out[name] = (
                    f"its move was broken off: finish it with `callslip migrate {name} --to {to}`"
                )
        return left_out

    def audit(self) -> tuple[list[Look], list[Finding]]:
        """Every place, then what lies beside them."""
        found: list[Place] = places(self._ledger, self._stores, self._only)
        with self._bar("Comparing", self._ledger.inventory.count(self._only)) as done:
            looks = [look(self._ledger, place, done) for place in found]
        findings = [finding for seen in looks for finding in seen.findings]
        findings += look_aside(self._ledger, self._stores, self._only)
        if self._only is None:
            findings += look_at_files(self._ledger, self._blobs)
        return looks, findings

    def repair(self, findings: list[Finding], *, force: bool) -> "list[Repaired]":
        """Repair here and now; what became of each finding."""
        from ingestion.repair import Repairs, repair

        shop = self._shop()
        use = Repairs(
            self._ledger, self._stores, self._blobs, shop.embedder.model, self._again(shop)
        )
        repaired = []
        with self._bar("Repairing", len(findings)) as done:
            for one in repair(findings, use, force=force):
                repaired.append(one)
                done(1)
        return repaired

    def _shop(self) -> "Workshop":
        """What the steps of a version need; models load only where a step uses one."""
        from ingestion.isolation import Extractor
        from ingestion.workshop import Workshop
        from models.registry import (
            make_analyzer,
            make_confirmer,
            make_embedder,
            make_recognizer,
            make_tokenizer,
        )

        return Workshop(
            settings=self._settings,
            ledger=self._ledger,
            blobs=self._blobs,
            store_of=self._stores.__getitem__,
            embedder=make_embedder(self._settings),
            tokenizer=make_tokenizer(self._settings),
            analyzer=make_analyzer(),
            extractor=Extractor(self._settings.extract),
            recognizer=make_recognizer(),
            confirmer=make_confirmer(self._settings),
        )

    def _again(self, shop: "Workshop") -> Callable[[str, int, Step], None]:
        """Does the steps of a version in this process."""
        from ingestion.pipeline import run_step

        def again(document_id: str, version: int, first: Step) -> None:
            for step in STEPS[STEPS.index(first) :]:
                if run_step(shop, step, document_id, version) == "stop":
                    return

        return again

    @contextmanager
    def _bar(self, label: str, length: int) -> Iterator[Done]:
        shown_on = io.StringIO() if self._quiet else sys.stderr
        with click.progressbar(length=length, label=label, show_pos=True, file=shown_on) as bar:
            yield lambda count: bar.update(count)
