"""Judged sets in BEIR form (Thakur et al. 2021): a corpus, queries and relevance judgements."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from callslip.errors import JudgedSetError

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
QRELS = ("qrels.tsv", "qrels/test.tsv")
"""Paths of the judgements; the first existing file is read."""


@dataclass(frozen=True)
class Document:
    """One line of the corpus."""

    document_id: str
    title: str
    text: str
    metadata: dict[str, Any]

    @property
    def content(self) -> str:
        """The text that is embedded and indexed: title, line end, text; empty if both are blank."""
        return f"{self.title}\n{self.text}".strip()


@dataclass(frozen=True)
class JudgedSet:
    """Queries and judgements in memory, and the corpus in its file.

    `documents` is the number of documents with text. `queries` maps the id of each query with a
    relevant document to its text. `qrels` has the judgements of these queries: query id to document
    id to grade, above 0 if the document is relevant. A judged document that the corpus lacks stays
    in, as a document that no search returns. `as_of` has the moment that a query asks about, if its
    metadata has one. `warnings` lists irregularities and omissions. `taken_out` has the ids of
    removed documents.
    """

    name: str
    folder: Path
    documents: int
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    as_of: dict[str, str]
    warnings: tuple[str, ...]
    taken_out: frozenset[str] = frozenset()

    def corpus(self) -> Iterator[Document]:
        """Yield the documents with text, one at a time from the file."""
        return (
            document
            for document in read_corpus(self.folder)
            if document.content and document.document_id not in self.taken_out
        )

    def without(self, documents: Collection[str]) -> "JudgedSet":
        """Return the set without these documents, each of which has text."""
        out = frozenset(documents)
        return replace(self, taken_out=out, documents=self.documents - len(out))

    def only(self, queries: Collection[str]) -> "JudgedSet":
        """Return the set with only these of its queries."""
        return replace(
            self,
            queries={query: text for query, text in self.queries.items() if query in queries},
            qrels={query: grades for query, grades in self.qrels.items() if query in queries},
            as_of={query: moment for query, moment in self.as_of.items() if query in queries},
        )

    def half(self, which: int) -> "JudgedSet":
        """Every second query, from the first (0) or the second (1): one half for tuning."""
        return self.only(set(list(self.queries)[which::2]))

    def at_most(self, count: int) -> "JudgedSet":
        """At most `count` queries, spread evenly over the judgements."""
        queries = list(self.queries)
        count = min(count, len(queries))
        return self.only({queries[n * len(queries) // count] for n in range(count)})


def read(folder: Path, most_queries: int | None = None) -> JudgedSet:
    """Read and check a judged set; the corpus is read once and not stored in memory.

    At most `most_queries` queries are used, spread evenly over the judgements. Raises
    JudgedSetError with file and line for missing, malformed or repeated data.
    """
    odd: Counter[str] = Counter()
    known: dict[str, bool] = {}
    for document in read_corpus(folder):
        known[document.document_id] = bool(document.content)
    odd["documents without text left out"] = len(known) - sum(known.values())
    queries, as_of = _read_queries(folder)
    judged: dict[str, dict[str, int]] = {}
    for query, document_id, grade in _read_qrels(folder):
        odd["judgements on documents that the corpus lacks"] += document_id not in known
        odd["judgements of unknown queries left out"] += query not in queries
        if query in queries:
            judged.setdefault(query, {})[document_id] = grade
    qrels = {query: grades for query, grades in judged.items() if max(grades.values()) > 0}
    odd["queries that no document answers left out"] = len(queries) - len(qrels)
    if not any(document_id in known for grades in qrels.values() for document_id in grades):
        raise JudgedSetError(f"{folder} judges no document of its corpus to answer a query")
    whole = JudgedSet(
        name=folder.resolve().name,
        folder=folder,
        documents=sum(known.values()),
        queries={query: queries[query] for query in qrels},
        qrels=qrels,
        as_of={query: as_of[query] for query in qrels if query in as_of},
        warnings=tuple(f"{count} {what}" for what, count in odd.items() if count),
    )
    return whole if most_queries is None else whole.at_most(most_queries)


@dataclass(frozen=True)
class Questions:
    """Queries and judgements as in JudgedSet, without a corpus."""

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    as_of: dict[str, str]


def read_questions(folder: Path) -> Questions:
    """Read the queries that have a relevant document, without the corpus.

    Raises JudgedSetError as `read` does, and if no query has a relevant document.
    """
    queries, as_of = _read_queries(folder)
    judged: dict[str, dict[str, int]] = {}
    for query, document_id, grade in _read_qrels(folder):
        if query in queries:
            judged.setdefault(query, {})[document_id] = grade
    qrels = {query: grades for query, grades in judged.items() if max(grades.values()) > 0}
    if not qrels:
        raise JudgedSetError(f"{folder} judges no document to answer a query")
    return Questions({query: queries[query] for query in qrels}, qrels, as_of)


def read_spans(folder: Path) -> dict[str, list[str]]:
    """Read the verbatim answers in the queries' metadata; queries without answers are left out."""
    answers_of = {}
    for at, line in _read_lines(folder / QUERIES):
        answers = _metadata(at, line).get("answers")
        if isinstance(answers, list) and answers and all(isinstance(a, str) for a in answers):
            answers_of[line["_id"]] = answers
    return answers_of


def read_corpus(folder: Path) -> Iterator[Document]:
    """Yield every document of the corpus, one at a time. Raises JudgedSetError as `read` does."""
    for at, line in _read_lines(folder / CORPUS):
        title, text = _text(at, line, "title"), _text(at, line, "text")
        yield Document(line["_id"], title, text, _metadata(at, line))


def _read_queries(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Map query ids to texts, and to the `as_of` of their metadata if there is one."""
    texts: dict[str, str] = {}
    as_of: dict[str, str] = {}
    for at, line in _read_lines(folder / QUERIES):
        texts[line["_id"]] = _text(at, line, "text").strip()
        if not texts[line["_id"]]:
            raise JudgedSetError(f"{at}: the query has no text")
        if moment := _text(at, _metadata(at, line), "as_of"):
            as_of[line["_id"]] = moment
    return texts, as_of


def _read_qrels(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Yield query id, document id and grade of each line but the header, which has no grade."""
    path = next((folder / name for name in QRELS if (folder / name).is_file()), folder / QRELS[0])
    seen: set[tuple[str, str]] = set()
    for number, row in _lines(path):
        fields = row.split("\t")
        at = f"{path}:{number}"
        if len(fields) != 3:
            raise JudgedSetError(f"{at}: {len(fields)} fields, not query, document and grade")
        query, document_id, grade = fields
        try:
            judged = query, document_id, int(grade)
        except ValueError:
            if number == 1:
                continue
            raise JudgedSetError(f"{at}: the grade is not a whole number") from None
        if (query, document_id) in seen:
            raise JudgedSetError(f"{at}: the second judgement of {document_id!r} for {query!r}")
        seen.add((query, document_id))
        yield judged


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a JSON Lines file with its location; each `_id` is a unique text."""
    seen: set[str] = set()
    for number, row in _lines(path):
        at = f"{path}:{number}"
        try:
            line = json.loads(row)
        except ValueError:
            raise JudgedSetError(f"{at}: not JSON") from None
        if not isinstance(line, dict):
            raise JudgedSetError(f"{at}: not an object")
        line_id = line.get("_id")
        if not isinstance(line_id, str) or not line_id:
            raise JudgedSetError(f"{at}: _id is not a text")
        if line_id in seen:
            raise JudgedSetError(f"{at}: _id {line_id!r} stands in an earlier line too")
        seen.add(line_id)
        yield at, line


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    row = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise JudgedSetError(f"{path}:{number}: not UTF-8") from None
                if row.strip():
                    yield number, row
    except FileNotFoundError:
        raise JudgedSetError(f"{path} is missing") from None


def _text(at: str, line: dict[str, Any], key: str) -> str:
    value = line.get(key, "")
    if not isinstance(value, str):
        raise JudgedSetError(f"{at}: {key} is not a text")
    return value


def _metadata(at: str, line: dict[str, Any]) -> dict[str, Any]:
    metadata = line.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise JudgedSetError(f"{at}: metadata is not an object")
    return metadata
