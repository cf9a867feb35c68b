"""Outcomes of answers, and the tables of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.quality.selective import (
    area,
    calibration_error,
    coverage_at,
    curve,
    excess_area,
    risk_at,
)
from callslip.evals.tables import figure, table
from callslip.vocabulary import MEASURED, SURE

THRESHOLDS = (0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9)
RISKS = (0.05, 0.1, 0.2)
COVERAGES = (0.25, 0.5, 0.75, 1.0)

COUNTS = (
    *("set", "questions", "answerable", "right", "quoted sentence right", "wrong", "refused"),
    *("unanswerable", "unanswerable, answered"),
)
CURVE = (
    *("set", "AURC", "E-AURC", *(f"coverage at risk {risk:g}" for risk in RISKS)),
    *(f"risk at coverage {coverage:g}" for coverage in COVERAGES),
)
BY_THRESHOLD = ("set", "threshold", "coverage", "risk", "right", "unanswerable, answered")
CALIBRATION = ("set", "expected calibration error", "sure: right", "probably: right")


@dataclass(frozen=True)
class Outcome:
    """One question and its answer.

    `right` and `quoted` are as `Question.judge` returns them, whether the question is answered or
    refused; they are False if it is not answerable. `at_no_threshold` says whether it is refused
    for another reason than its confidence.
    """

    question: str
    answerable: bool
    answered: bool
    confidence: float
    at_no_threshold: bool
    right: bool
    quoted: bool | None

    @property
    def score(self) -> float:
        """The greatest threshold at which the question is answered; 0 if there is none."""
        return 0.0 if self.at_no_threshold else self.confidence

    @property
    def name(self) -> str:
        """The outcome in words."""
        if not self.answerable:
            return "wrongly answered" if self.answered else "rightly refused"
        if not self.answered:
            return "refused"
        return "right" if self.right else "wrong"


Measured = tuple[str, Sequence[Outcome]]
"""The name of a set, and its outcomes."""


def counts(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row of the table of outcomes."""
    names = [outcome.name for outcome in outcomes]
    yes = sum(outcome.answerable for outcome in outcomes)
    no = len(outcomes) - yes
    quoted = [outcome.quoted for outcome in outcomes if outcome.answered]
    return [
        *(name, f"{len(outcomes):,}", f"{yes:,}", _share(names.count("right"), yes)),
        "–" if None in quoted else _share(sum(map(bool, quoted)), yes),
        *(_share(names.count("wrong"), yes), _share(names.count("refused"), yes)),
        *(f"{no:,}", _share(names.count("wrongly answered"), no)),
    ]


def curve_row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row of the table of the risk–coverage curve."""
    scores, right = scored(outcomes)
    points = curve(scores, right)
    return [
        *(name, figure(area(points)), figure(excess_area(scores, right))),
        *(figure(coverage_at(points, risk)) for risk in RISKS),
        *(figure(risk_at(points, coverage)) for coverage in COVERAGES),
    ]


def threshold_rows(name: str, outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Return coverage and risk, and the shares of both kinds of questions, by threshold."""
    yes = [outcome for outcome in outcomes if outcome.answerable]
    no = [outcome for outcome in outcomes if not outcome.answerable]
    rows = []
    for threshold in THRESHOLDS:
        answered = [outcome for outcome in outcomes if outcome.score >= threshold]
        right = sum(outcome.right for outcome in answered)
        wrong = sum(not outcome.answerable for outcome in answered)
        rows.append(
            [
                *(name, f"{threshold:g}", _figure(len(answered), len(outcomes))),
                _figure(len(answered) - right, len(answered)),
                *(_figure(right, len(yes)), _figure(wrong, len(no))),
            ]
        )
    return rows


def calibration_row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row of the table of calibration."""
    sure = [o.right for o in outcomes if o.answered and o.confidence >= SURE]
    probably = [o.right for o in outcomes if o.answered and MEASURED <= o.confidence < SURE]
    confidences, right = [o.confidence for o in outcomes], [o.right for o in outcomes]
    return [
        *(name, figure(calibration_error(confidences, right))),
        *(_share_of(flags) for flags in (sure, probably)),
    ]


def scored(outcomes: Sequence[Outcome]) -> tuple[list[float], list[bool]]:
    """Return the scores of outcomes, and which of them are right."""
    return [outcome.score for outcome in outcomes], [outcome.right for outcome in outcomes]


def _share(count: int, total: int) -> str:
    return f"{count:,} ({_figure(count, total)})" if total else "–"


def _share_of(flags: Sequence[bool]) -> str:
    count = f"{sum(flags):,} of {len(flags):,}"
    return f"{count} ({_figure(sum(flags), len(flags))})" if flags else count


def _figure(count: int, total: int) -> str:
    return figure(count / total) if total else "–"


def tables(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield the tables of the curve, of the thresholds and of the calibration."""
    yield table(CURVE, [curve_row(*each) for each in measured])
    yield table(BY_THRESHOLD, [row for each in measured for row in threshold_rows(*each)])
    rows = [calibration_row(*each) for each in measured]
    if len(measured) > 1:
        rows.append(calibration_row("all", [o for _, outcomes in measured for o in outcomes]))
    yield table(CALIBRATION, rows)
