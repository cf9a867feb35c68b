"""Prints an audit: a table of counts and a sentence for each kind of finding."""

from collections.abc import Iterable, Iterator, Sequence

from callslip.cli.shared.output import aligned, many
from callslip.stores.audit.comparison import Finding, ScopeReport

EXAMPLES = 3
"""The number of ids that are shown of each kind."""


def table(looks: Sequence[ScopeReport]) -> Iterator[str]:
    """A line for each scope: counts of the ledger and of each half of the store."""
    if not looks:
        return
    halves = list(dict.fromkeys(half for seen in looks for half in seen.stored))
    rows = [["collection", "tenant", "store", "documents", "chunks", *halves, "skipped"]]
    for seen in looks:
        counts = [str(seen.stored[half]) if half in seen.stored else "-" for half in halves]
        numbers = [str(seen.documents), str(seen.chunks), *counts, str(seen.skipped)]
        rows.append([seen.collection, seen.tenant or "-", seen.store, *numbers])
    yield from aligned(rows, left=3)


def sentences(findings: Iterable[Finding]) -> Iterator[str]:
    """A sentence for each kind of finding in each scope."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        where = (finding.store, finding.collection, finding.tenant)
        groups.setdefault((finding.kind, *where, finding.half), []).append(finding)
    for group in groups.values():
        yield f"{_scope(group[0])}: {_what(group)}{_examples(group)}"


def _scope(finding: Finding) -> str:
    scope = f"{finding.collection} in {finding.store}" if finding.collection else finding.store
    return f"{scope}, tenant {finding.tenant}" if finding.tenant else scope


def _what(group: list[Finding]) -> str:
    first, count = group[0], sum(len(finding.ids) for finding in group)
    match first.kind:
        case "missing" if first.half == "document":
            return f"the record of {many(count, 'document')} is missing"
        case "missing":
            chunks, documents = many(count, "chunk"), many(len(group), "document")
            return f"the {first.half} half lacks {chunks} of {documents}"
        case "missing-collection":
            return "the collection is not there"
        case "missing-files":
            return f"the {first.half} of {many(count, 'live document')} is gone"
        case "orphan-chunks":
            return f"{many(count, 'chunk')} that the ledger does not know"
        case "orphan-documents":
            return f"{many(count, 'document')} that the ledger does not know"
        case "orphan-files":
            return f"files of {many(count, 'document')} that the ledger does not know"
        case "broken-place":
            return f"it cannot be read: {first.detail}"
        case "unknown-tenant":
            return "a tenant that the ledger does not know"
        case "unknown-collection":
            return "a collection that the ledger does not know"
        case "foreign-copy":
            return f"a copy with {many(count, 'document')}; the collection is in another store"


def _examples(group: list[Finding]) -> str:
    ids = [finding.document_id for finding in group if finding.document_id]
    ids = ids or [id_ for finding in group for id_ in finding.ids]
    if not ids:
        return ""
    more = ", …" if len(ids) > EXAMPLES else ""
    return f" ({', '.join(ids[:EXAMPLES])}{more})"
