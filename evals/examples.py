"""Runs the questions of a judged set on the server and makes examples for weight fitting."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from callslip.errors import EvaluationError, JudgedSetError
from callslip.evals.beir import Questions
from callslip.evals.client import JsonClient
from callslip.evals.judge import Clock, OnProgress
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tuning.examples import Example, Ranked, ideal, known_rows

TOP = 100
"""The number of reranked hits: less than search.pool, so that they come from the usual
candidates."""


def ask(
    client: JsonClient,
    collection: str,
    questions: Questions,
    now: Ranked,
    *,
    tenant: str | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> list[Example | None]:
    """Search for each question; return an example, or None if the response lacks needed features.

    Judgements name documents by id or by the name of their submission, with or without `.txt`.
    Raises EvaluationError if a retriever is missing from a response, JudgedSetError if no hit is
    relevant to any question, and the errors of the server.
    """
    clock = Clock("asking", len(questions.queries), on_progress)
    examples: list[Example | None] = []

    def ask_one(query: str) -> Example | None:
        body = {"collection": collection, "query": questions.queries[query]}
        body |= {"tenant": tenant} if tenant else {}
        body |= {"as_of": questions.as_of[query]} if query in questions.as_of else {}
        answer = client.search({**body, "top": TOP, "explain": True})
        if answer["left_out"]:
            raise EvaluationError(f"an answer is not whole: {answer['left_out']}")
        return _example(questions.queries[query], answer, questions.qrels[query], now)

    with ThreadPoolExecutor(client.connections) as pool:
        try:
            for example in pool.map(ask_one, questions.queries):
                examples.append(example)
                clock.tell(len(examples))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if not any(example is not None and example.grades.any() for example in examples):
        raise JudgedSetError(
            f"no hit of {len(examples)} questions is judged to answer one",
            hint="qrels.tsv names documents of the collection by id, or by their name.",
        )
    return examples


def _example(
    query: str, answer: Mapping[str, Any], judged: Mapping[str, int], now: Ranked
) -> Example | None:
    hits = answer["hits"]
    bases = [Features(**hit["reasons"]["basis"]) for hit in hits]
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
    return Example(keys, rows, np.array(owners, np.int64), grades, best, answer["alpha"])
