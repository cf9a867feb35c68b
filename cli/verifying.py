"""`callslip verify sanity`: a document is asked for in its own words, a table says what came."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any, Literal
from urllib.parse import quote

import click

from callslip.errors import CallslipError
from cli.client import Client
from cli.desk import connect, url_option
from cli.output import as_json, columns, emit, reporting

SAMPLES = 5
"""Passages that are probed, spread over the document."""

SLICE_CHARS = 400
PROBE_WORDS = 14
PASSAGE_CHARS = 1500
"""Of a passage, asked for by its meaning: a few words of it may mean something else."""

WITHIN = 20
"""A passage that is asked for in its own words must be among so many hits."""

MOST_PROPERTIES = 8

Result = Literal["ok", "FAIL", "-"]


@dataclass(frozen=True)
class Check:
    """One thing that was probed; `-` where there is nothing to probe."""

    check: str
    result: Result
    detail: str


@dataclass(frozen=True)
class Sample:
    """A passage of the document and words out of its middle."""

    hit: dict[str, Any]
    probe: str


@click.group(name="verify")
def verify_group() -> None:
    """Check that what was taken in can be found.

    \b
    Example:  callslip verify sanity --doc-id 1f0c…
    """


@verify_group.command()
@click.option("--doc-id", "document_id", required=True, help="The document.")
@url_option
@as_json
@reporting
def sanity(document_id: str, url: str | None, json_out: bool) -> None:
    """Ask for passages of a document in their own words, with filters and dates around them.

    Searched are the words, the meaning, each property and both ends of the time in which a passage
    holds (valid_from, valid_to). Exit code 1 when something is not found, or found where it must
    not be.

    \b
    Example:  callslip verify sanity --doc-id 1f0c…
    """
    with connect(url) as client:
        document = client.get(f"/v1/documents/{quote(document_id, safe='')}")
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
    """Searches about one document."""

    def __init__(self, client: Client, document: dict[str, Any]) -> None:
        self._client, self._document = client, document
        self._id = document["document_id"]

    def checks(self) -> Iterator[Check]:
        """Every check in order; where nothing is live, or nothing found, the rest is left out."""
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
        yield self._leg("words", samples, [s.probe for s in samples], alpha=0.0)
        whole = [s.hit["text"][:PASSAGE_CHARS] for s in samples]
        yield self._leg("meaning", samples, whole, alpha=1.0)
        yield self._inside(samples)
        yield from self._properties(samples)
        yield from self._validity(samples)

    def _samples(self) -> list[Sample]:
        """Passages at even distances of the text."""
        length = self._text(0, 1)["length"]
        found: dict[str, Sample] = {}
        for number in range(SAMPLES):
            start = number * length // SAMPLES
            text = self._text(start, start + SLICE_CHARS)["text"]
            if not any(letter.isalnum() for letter in text):
                continue
            for hit in self._search(text, top=1, having_all={"document_id": self._id}):
                found.setdefault(hit["chunk_id"], Sample(hit, _probe(hit["text"])))
        return [sample for sample in found.values() if sample.probe]

    def _spans(self, samples: list[Sample]) -> Check:
        """Every passage is what the text says at its span."""
        wrong = 0
        for sample in samples:
            span = sample.hit["span"]
            wrong += self._text(span["start"], span["end"])["text"] != sample.hit["text"]
        return _check("spans", len(samples) - wrong, len(samples), "stand in the text")

    def _leg(self, name: str, samples: list[Sample], asked: list[str], alpha: float) -> Check:
        """One leg finds each passage in the whole collection when asked for in its own words."""
        ranks = []
        for sample, query in zip(samples, asked, strict=True):
            answer = self._ask(query, top=WITHIN, alpha=alpha)
            if answer["alpha"] != alpha or answer["left_out"]:
                reason = answer["left_out"].get("vector", "the collection has no such leg")
                return Check(name, "-", str(reason))
            ranks.append(_rank(sample, answer["hits"]))
        found = [rank for rank in ranks if rank]
        told = f"found, the worst at rank {max(found)}" if found else "found"
        return _check(name, len(found), len(samples), told)

    def _inside(self, samples: list[Sample]) -> Check:
        """A filter on the document gives it alone, its opposite never gives it."""
        good = 0
        for sample in samples:
            only = self._search(sample.probe, top=WITHIN, having_all={"document_id": self._id})
            rest = self._search(sample.probe, top=WITHIN, having_all={"document_id !=": self._id})
            good += bool(only) and all(hit["document_id"] == self._id for hit in only)
            good += all(hit["document_id"] != self._id for hit in rest)
        return _check("filter document_id", good, 2 * len(samples), "as they should")

    def _properties(self, samples: list[Sample]) -> Iterator[Check]:
        """Each property of the first passage lets it through, its opposite does not."""
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
        """`valid_from <= as_of < valid_to`: found on the first day and to the last, not beyond."""
        for name in ("valid_from", "valid_to"):
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
        """Whether the passage is found in its document under these conditions."""
        within = {"document_id": self._id, **(having or {})}
        hits = self._search(sample.probe, top=WITHIN, having_all=within, as_of=as_of)
        return any(hit["chunk_id"] == sample.hit["chunk_id"] for hit in hits)

    def _search(self, query: str, **more: Any) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = self._ask(query, **more)["hits"]
        return hits

    def _ask(self, query: str, **more: Any) -> dict[str, Any]:
        whose = {"tenant": self._document["tenant"]} if self._document["tenant"] else {}
        collection = {"collection": self._document["collection"]}
        asked = {"query": query, "as_of": "any"} | more  # a passage may speak of a time itself
        return self._client.search(collection | whose | asked)

    def _text(self, start: int, end: int) -> dict[str, Any]:
        return self._client.get(f"/v1/documents/{self._id}/text", start=start, end=end)


def _probe(text: str) -> str:
    """Words out of the middle of a passage, or as many letters where it has no blanks."""
    words = text.split()
    start = max(0, (len(words) - PROBE_WORDS) // 2)
    probe = " ".join(words[start : start + PROBE_WORDS])[:SLICE_CHARS]
    return probe if any(letter.isalnum() for letter in probe) else ""


def _rank(sample: Sample, hits: list[dict[str, Any]]) -> int:
    """The rank of the passage, or of another one that holds the same words; 0 where neither is."""
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
