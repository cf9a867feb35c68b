"""`callslip audit`: compares every store with the ledger and repairs it, without the server."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from callslip.cli.shared.findings import sentences, table
from callslip.cli.shared.output import as_json, emit, reporting
from callslip.config import Settings
from callslip.stores.audit.comparison import (
    AuditScope,
    Finding,
    ScopeReport,
    audit_scope,
    audit_scopes,
)
from callslip.stores.audit.orphans import audit_files, find_misplaced_collections
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Ledger, Step
from callslip.stores.registry import kinds, make_store
from callslip.stores.sides import both_sides, finishing, kind_of, side_of
from callslip.workers.local_settings import open_ledger, placed_settings

if TYPE_CHECKING:
    from callslip.ingestion.context import StepContext
    from callslip.ingestion.maintenance.repair import Repaired

Done = Callable[[int], None]


@click.command()
@click.argument("collection", required=False)
@click.option(
    "--repair", "repairing", is_flag=True, help="Repair what can be repaired, then count again."
)
@click.option(
    "--force",
    is_flag=True,
    help="With --repair: also remove doubtful orphans, e.g. when they are most of a store.",
)
@as_json
@reporting
def audit(collection: str | None, repairing: bool, force: bool, json_out: bool) -> None:
    """Compare every store with the ledger: report unknown and missing data.

    Counts the chunks in each half of each store, the documents and their files, of one COLLECTION
    or of all. It reads the stores directly, also while Callslip runs; documents that are
    ingested or deleted during the audit are not reported. --repair removes orphans and writes
    missing data again. Exit code 1 if findings remain.

    \b
    Example:  callslip audit
              callslip audit handbook --repair
    """
    with _Auditor(placed_settings(), collection, quiet=json_out) as auditor:
        audits, findings = auditor.audit()
        outcome = _Outcome(audits, findings, auditor.moving)
        if repairing and findings:
            repaired = auditor.repair(findings, force=force)
            audits, left = auditor.audit()
            outcome = _Outcome(audits, findings, auditor.moving, repaired, left)
    if json_out:
        emit(outcome.as_json())
    else:
        _tell(outcome)
    sys.exit(1 if outcome.wrong else 0)


@dataclass(frozen=True)
class _Outcome:
    """Results of an audit; after a repair also its results and those of a second audit."""

    audits: list[ScopeReport]
    findings: list[Finding]
    moving: dict[str, str]
    repaired: "list[Repaired] | None" = None
    left: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> list[Finding]:
        """The findings that remain at the end."""
        return self.findings if self.repaired is None else self.left

    def reason(self, finding: Finding) -> str:
        """Why a finding remains after a repair, and what to do."""
        from callslip.ingestion.maintenance.repair import LOST, MOVING

        tried = {_key(r.finding): r.left for r in self.repaired or ()}
        lost = LOST if finding.kind == "missing" and _key(finding) in tried else MOVING
        return tried.get(_key(finding)) or lost

    def as_json(self) -> dict[str, Any]:
        """The report of `--json`."""
        shown = [{k: v for k, v in asdict(seen).items() if k != "findings"} for seen in self.audits]
        report = {
            "places": shown,
            "moving": self.moving,
            "findings": [asdict(finding) for finding in self.findings],
        }
        if self.repaired is None:
            return report
        left = [asdict(finding) | {"reason": self.reason(finding)} for finding in self.left]
        return report | {
            "repaired": [asdict(r.finding) for r in self.repaired if not r.left],
            "left": left,
        }


def _key(finding: Finding) -> tuple[str, ...]:
    where = (finding.store, finding.collection, finding.tenant)
    half = "" if finding.kind == "missing" else finding.half  # both halves are repaired together
    return (finding.kind, *where, finding.document_id, half)


def _tell(outcome: _Outcome) -> None:
    for line in table(outcome.audits):
        click.echo(line)
    for name, reason in outcome.moving.items():
        click.secho(f"{name}: not looked at, {reason}.", fg="yellow")
    for line in sentences(outcome.findings):
        click.secho(f"- {line}", fg="yellow")
    if not outcome.findings:
        if outcome.audits or not outcome.moving:
            seen = "What was looked at" if outcome.moving else "Every store"
            click.secho(f"{seen} holds what the ledger says.", fg="green")
    elif outcome.repaired is None:
        click.echo("Set right what can be with:  callslip audit --repair")
    elif not outcome.left:
        click.secho("Repaired. Counted again, every store holds what the ledger says.", fg="green")
    else:
        click.secho("Repaired. Counted again, this is left:", fg="red")
        for reason in sorted({outcome.reason(finding) for finding in outcome.left}):
            for line in sentences(f for f in outcome.left if outcome.reason(f) == reason):
                click.echo(f"- {line}")
            click.echo(f"  {reason[0].upper()}{reason[1:]}.")


class _Auditor:
    """The open stores, ledger and blobs of an audit; shows a progress bar on standard error."""

    def __init__(self, settings: Settings, only: str | None, *, quiet: bool) -> None:
        self._settings, self._only, self._quiet = settings, only, quiet
        self._open = ExitStack()

    def __enter__(self) -> "_Auditor":
        self._ledger: Ledger = self._open.enter_context(closing(open_ledger(self._settings)))
        self._blobs = Blobs(self._settings.blobs_url, self._settings.blobs.endpoint)
        made: dict[str, Store] = {
            kind: self._open.enter_context(closing(make_store(self._settings, kind)))
            for kind in kinds(self._settings)
        }
        self._stores = {side: side_of(made[kind_of(side)], side) for side in both_sides(made)}
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def moving(self) -> dict[str, str]:
        """Skipped collections with the reason: a move or import is running or was interrupted."""
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
                command = finishing(name, record.store, to, switched=switched)
                left_out[name] = f"its move was broken off: finish it with `{command}`"
        return left_out

    def audit(self) -> tuple[list[ScopeReport], list[Finding]]:
        """Audit every scope, then find collections and files that belong to no scope."""
        scopes: list[AuditScope] = audit_scopes(self._ledger, self._stores, self._only)
        with self._bar("Comparing", self._ledger.inventory.count(self._only)) as done:
            audits = [audit_scope(self._ledger, scope, done) for scope in scopes]
        findings = [finding for seen in audits for finding in seen.findings]
        findings += find_misplaced_collections(self._ledger, self._stores, self._only)
        if self._only is None:
            findings += audit_files(self._ledger, self._blobs)
        return audits, findings

    def repair(self, findings: list[Finding], *, force: bool) -> "list[Repaired]":
        """Repair in this process; return the result of each finding."""
        from callslip.ingestion.maintenance.repair import Repairs, repair

        context = self._context()
        use = Repairs(
            self._ledger,
            self._stores,
            self._blobs,
            context.embedder.model,
            self._again(context),
            [each.model for each in context.further.values()],
        )
        repaired = []
        with self._bar("Repairing", len(findings)) as done:
            for one in repair(findings, use, force=force):
                repaired.append(one)
                done(1)
        return repaired

    def _context(self) -> "StepContext":
        """The context of the steps of a version; a model loads when a step uses it."""
        from callslip.ingestion.context import StepContext
        from callslip.ingestion.isolation.process import Extractor
        from callslip.models.registry import (
            make_analyzer,
            make_confirmer,
            make_embedder,
            make_further_embedders,
            make_recognizer,
            make_tokenizer,
        )

        embedder = make_embedder(self._settings)
        return StepContext(
            backend=Backend(self._settings, self._ledger, self._blobs, self._stores.__getitem__),
            embedder=embedder,
            tokenizer=make_tokenizer(self._settings),
            analyzer=make_analyzer(self._settings.language_codes),
            extractor=Extractor(self._settings.extract),
            recognizer=make_recognizer(self._settings.language_codes),
            confirmer=make_confirmer(self._settings),
            further=make_further_embedders(self._settings, embedder),
        )

    def _again(self, context: "StepContext") -> Callable[[str, int, Step], None]:
        """Return a function that runs the steps of a version in this process."""
        from callslip.ingestion.pipeline import run_step

        def again(document_id: str, version: int, first: Step) -> None:
            for step in STEPS[STEPS.index(first) :]:
                if run_step(context, step, document_id, version) == "stop":
                    return

        return again

    @contextmanager
    def _bar(self, label: str, length: int) -> Iterator[Done]:
        shown_on = io.StringIO() if self._quiet else sys.stderr
        with click.progressbar(length=length, label=label, show_pos=True, file=shown_on) as bar:
            yield lambda count: bar.update(count)
