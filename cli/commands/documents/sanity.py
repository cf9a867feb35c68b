"""`callslip verify sanity`: checks that searches find a document, and prints a table."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, Literal

import click

from callslip.cli.shared.output import as_json, columns, emit, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import CallslipError
from callslip.vocabulary import VALIDITY, WITHOUT_EXPLORATION

SAMPLES = 5
"""The number of tested passages, spread over the document."""

SLICE_CHARS = 400
PROBE_WORDS = 14
PASSAGE_CHARS = 1500
"""The most characters of a passage in a search by meaning; a few words could mean something
else."""

WITHIN = 20
"""A passage must be among the first WITHIN hits of a search for its own words."""

MOST_PROPERTIES = 8

Result = Literal["ok", "FAIL", "-"]


@dataclass(frozen=True)
class Check:
    """The result of one check; `-` if there was nothing to check."""

    check: str
    result: Result
    detail: str


@dataclass(frozen=True)
class Sample:
    """A passage of the document and words from its middle."""

    hit: dict[str, Any]
    probe: str


@click.group(name="verify")
def verify_group() -> None:
    """Check that ingested documents can be found.

    \b
    Example:  callslip verify sanity --doc-id 1f0c…
    """


@verify_group.command()
@click.option("--doc-id", "document_id", required=True, help="The document.")
@url_option
@as_json
@reporting
def sanity(document_id: str, url: str | None, json_out: bool) -> None:
    """Search for passages of a document in their own words, with filters and dates.

    The searches go by words, by meaning, by each property, and by dates at both ends of a
    passage's validity (valid_from, valid_to). Exit code 1 if a passage is missing, or is a
    hit of a search that excludes it.

    \b
    Example:  callslip verify sanity --doc-id 1f0c…
    """
    with connect(url) as client:
        document = plain(client.get_document(document_id))
        checks = list(_Prober(client, document).checks())
    if json_out:
        emit({"document_id": document_id, "checks": [asdict(check) for check in checks]})
    else:
        click.secho(f"{document['name']} (version {document['version']})", bold=True)
        width = max(columns(check.check) for check in checks)
        for check in checks:
            colour = {"ok": "green", "FAIL": "red"}.get(check.result)
            blank = " " * (width - columns(check.check))
            sign = click.style(f"{check.result:4}", fg=colour)
            click.echo(f"  {check.check}{blank}  {sign}  {check.detail}")
    sys.exit(1 if any(check.result == "FAIL" for check in checks) else 0)


class _Prober:
    """Runs the searches about one document."""

    def __init__(self, client: Client, document: dict[str, Any]) -> None:
        self._client, self._document = client, document
        self._id = document["document_id"]

    def checks(self) -> Iterator[Check]:
        """Run every check in order; if the document is not live or has no hits, skip the rest."""
        live, newest = self._document["live_version"], self._document["version"]
        if live is None or self._document["state"] == "deleted":
            yield Check("live", "FAIL", f"nothing can be found: {self._document['state']}")
            return
        behind = "" if live == newest else f", version {newest} is {self._document['state']}"
        yield Check("live", "ok", f"version {live}{behind}")
        samples = self._samples()
        if not samples:
            yield Check("passages", "FAIL", "no passage of the document is found")
            return
        yield self._spans(samples)
        yield self._retriever("words", samples, [s.probe for s in samples], alpha=0.0)
        whole = [s.hit["text"][:PASSAGE_CHARS] for s in samples]
        yield self._retriever("meaning", samples, whole, alpha=1.0)
        yield self._inside(samples)
        yield from self._properties(samples)
        yield from self._validity(samples)

    def _samples(self) -> list[Sample]:
        """Passages at even distances in the text."""
        length = self._text(0, 1)["length"]
        by_chunk: dict[str, Sample] = {}
        for number in range(SAMPLES):
            start = number * length // SAMPLES
            text = self._text(start, start + SLICE_CHARS)["text"]
            if not any(letter.isalnum() for letter in text):
                continue
            for hit in self._search(text, top=1, having_all={"document_id": self._id}):
                by_chunk.setdefault(hit["chunk_id"], Sample(hit, _probe(hit["text"])))
        return [sample for sample in by_chunk.values() if sample.probe]

    def _spans(self, samples: list[Sample]) -> Check:
        """Check that every passage is equal to the text at its span."""
        wrong = 0
        for sample in samples:
            span = sample.hit["span"]
            wrong += self._text(span["start"], span["end"])["text"] != sample.hit["text"]
        return _check("spans", len(samples) - wrong, len(samples), "stand in the text")

    def _retriever(
        self, name: str, samples: list[Sample], queries: list[str], alpha: float
    ) -> Check:
        """Check that one retriever finds each passage in the collection by its own words."""
        ranks = []
        for sample, query in zip(samples, queries, strict=True):
            answer = self._ask(query, top=WITHIN, alpha=alpha)
            if answer["alpha"] != alpha or answer["left_out"]:
                reason = answer["left_out"].get("vector", "the collection has no such retriever")
                return Check(name, "-", str(reason))
            ranks.append(_rank(sample, answer["hits"]))
        hit_ranks = [rank for rank in ranks if rank]
        detail = f"found, the worst at rank {max(hit_ranks)}" if hit_ranks else "found"
        return _check(name, len(hit_ranks), len(samples), detail)

    def _inside(self, samples: list[Sample]) -> Check:
        """A filter on the document returns only its passages; the opposite one returns none."""
        good = 0
        for sample in samples:
            only = self._search(sample.probe, top=WITHIN, having_all={"document_id": self._id})
            rest = self._search(sample.probe, top=WITHIN, having_all={"document_id !=": self._id})
            good += bool(only) and all(hit["document_id"] == self._id for hit in only)
            good += all(hit["document_id"] != self._id for hit in rest)
        return _check("filter document_id", good, 2 * len(samples), "as they should")

    def _properties(self, samples: list[Sample]) -> Iterator[Check]:
        """A filter on each property of the first passage finds it; the opposite filter does not."""
        sample = samples[0]
        names = [name for name, value in sample.hit["properties"].items() if value not in ("", [])]
        for name in names[:MOST_PROPERTIES]:
            value = sample.hit["properties"][name]
            several = isinstance(value, list)
            key, one = (f"{name} @", value[0]) if several else (name, value)
            try:
                good = int(self._passes(sample, having={key: one}))
                if not several:
                    good += not self._passes(sample, having={f"{name} !=": value})
                yield _check(f"filter {name}", good, 1 if several else 2, "as they should")
            except CallslipError as error:
                yield Check(f"filter {name}", "FAIL", error.detail)

    def _validity(self, samples: list[Sample]) -> Iterator[Check]:
        """Check `valid_from <= as_of < valid_to` on both sides of each date."""
        for name in VALIDITY:
            dated = [(s, day) for s in samples if (day := _day(s.hit["properties"].get(name)))]
            if not dated:
                yield Check(f"time {name}", "-", "no passage has such a date")
                continue
            good = 0
            for sample, day in dated:
                inside, outside = day, day - timedelta(days=1)
                if name == "valid_to":
                    inside, outside = outside, inside
                good += self._passes(sample, as_of=str(inside))
                good += not self._passes(sample, as_of=str(outside))
            yield _check(f"time {name}", good, 2 * len(dated), "as they should")

    def _passes(
        self, sample: Sample, *, having: dict[str, Any] | None = None, as_of: str = "any"
    ) -> bool:
        """Whether a search of the document under these conditions finds the passage."""
        within = {"document_id": self._id, **(having or {})}
        hits = self._search(sample.probe, top=WITHIN, having_all=within, as_of=as_of)
        return any(hit["chunk_id"] == sample.hit["chunk_id"] for hit in hits)

    def _search(self, query: str, **more: Any) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = self._ask(query, **more)["hits"]
        return hits

    def _ask(self, query: str, **more: Any) -> dict[str, Any]:
        whose = {"tenant": self._document["tenant"]} if self._document["tenant"] else {}
        collection = {"collection": self._document["collection"]}
        fields = {
            "query": query,
            "as_of": "any",
            "ranking": WITHOUT_EXPLORATION,
        } | more  # the passage's text may name a time
        answer: dict[str, Any] = plain(self._client.search(**collection, **whose, **fields))
        return answer

    def _text(self, start: int, end: int) -> dict[str, Any]:
        text: dict[str, Any] = plain(self._client.get_text(self._id, start=start, end=end))
        return text


def _probe(text: str) -> str:
    """Words from the middle of a passage, or as many letters if it has no spaces."""
    words = text.split()
    start = max(0, (len(words) - PROBE_WORDS) // 2)
    probe = " ".join(words[start : start + PROBE_WORDS])[:SLICE_CHARS]
    return probe if any(letter.isalnum() for letter in probe) else ""


def _rank(sample: Sample, hits: list[dict[str, Any]]) -> int:
    """The rank of the passage, or of another passage with the same words; 0 without either."""
    for hit in hits:
        same = hit["chunk_id"] == sample.hit["chunk_id"]
        if same or sample.probe in " ".join(hit["text"].split()):
            return int(hit["rank"])
    return 0


def _day(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _check(name: str, good: int, of: int, what: str) -> Check:
    return Check(name, "ok" if good == of else "FAIL", f"{good} of {of} {what}")
