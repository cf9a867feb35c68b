"""The questions of a judged set, asked at the desk, as examples that weights are fitted on."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from callslip.errors import EvaluationError, JudgedSetError
from evals.beir import Questions
from evals.client import Desk
from evals.judge import Clock, OnProgress
from retrieval.basis import Basis
from retrieval.examples import Example, Ranked, ideal, known_rows

TOP = 100
"""Hits whose order is tried: below search.pool, so that they come from the usual candidates."""


def ask(
    desk: Desk,
    collection: str,
    questions: Questions,
    now: Ranked,
    *,
    tenant: str | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> list[Example | None]:
    """Each question with its hits; None where the answer does not say what weights would do.

    Judgements name documents by id, or by the name that they were submitted under, with or without
    `.txt`. Raises EvaluationError when a leg is missing from an answer, JudgedSetError where no hit
    is judged to answer anything, and what the desk answers.
    """
    clock = Clock("asking", len(questions.queries), on_progress)
    found: list[Example | None] = []

    def asked(query: str) -> Example | None:
        body = {"collection": collection, "query": questions.queries[query]}
        body |= {"tenant": tenant} if tenant else {}
        body |= {"as_of": questions.as_of[query]} if query in questions.as_of else {}
        answer = desk.search({**body, "top": TOP, "explain": True})
        if answer["left_out"]:
            raise EvaluationError(f"an answer is not whole: {answer['left_out']}")
        return _example(questions.queries[query], answer, questions.qrels[query], now)

    with ThreadPoolExecutor(desk.connections) as pool:
        try:
            for example in pool.map(asked, questions.queries):
                found.append(example)
                clock.tell(len(found))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if not any(example is not None and example.grades.any() for example in found):
        raise JudgedSetError(
            f"no hit of {len(found)} questions is judged to answer one",
            hint="qrels.tsv names documents of the collection by id, or by their name.",
        )
    return found


def _example(
    query: str, answer: Mapping[str, Any], judged: Mapping[str, int], now: Ranked
) -> Example | None:
    hits = answer["hits"]
    bases = [Basis(**hit["reasons"]["basis"]) for hit in hits]
    rows = known_rows(bases, answer["alpha"], answer["fusion"], now)
    if rows is None:
        return None
    at: dict[str, int] = {}
    owners = [at.setdefault(hit["document_id"], len(at)) for hit in hits]
    grades = np.zeros(len(at))
    for hit, owner in zip(hits, owners, strict=True):
        name = hit["filename"]
        names = (hit["document_id"], name, name.removesuffix(".txt"))
        grades[owner] = max(0, *(judged.get(each, 0) for each in names))
    answers = sorted(document_id for document_id, grade in judged.items() if grade > 0)
    keys = f"query {' '.join(query.casefold().split())}", f"answers {answers}"
    best = ideal([grade for grade in judged.values() if grade > 0])
    return Example(keys, rows, np.array(owners, np.int64), grades, best)
