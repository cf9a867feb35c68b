"""Labels with a number in a question, and the texts that are about another one."""

import pytest

from callslip.retrieval.evidence.labels import has_labels, labels_of


@pytest.mark.parametrize(
    ("question", "text", "has"),
    [
        ("How big is the water tank of the X300?", "The X200 has a tank of 1.8 l.", False),
        ("How big is the water tank of the x200?", "The X200 has a tank of 1.8 l.", True),
        ("How big is the water tank of the X200?", "Its tank holds 1.8 l.", True),
        ("Who is the tenant of flat 27A?", "Flat 27B: Ann Hill", False),
        ("Who is the tenant of flat 27A?", "Flats 27A and 27B: Ann Hill", True),
        ("MW-500 세탁 용량은?", "MW-700 | 20kg", False),
        ("MW-700은 얼마인가요?", "MW 700 | 690,000원", True),
        ("How much is the Heron 5?", "Heron 3: £50. Heron 4: £60, in 3 to 5 days.", False),
        ("How much is the Heron 3?", "Heron 3: £50. Heron 4: £60, in 3 to 5 days.", True),
        ("Are the results of Phase 2 known?", "Phase 3 begins in May.", False),
        ("Does it run on the new Windows 10?", "Windows 7 or later", True),
        ("Are the results of Phase 2 known?", "Phase 1 to 3: known", True),
        ("When was 4.1.0 released?", "4.0.0 (2025-06-17)", False),
        ("When was 4.1.0 released?", "4.1.0 (2025-11-05), 12.5 MB", True),
        ("When was 4.1.0 released?", "It is of 2025.11.05.", True),
        ("4급지 월 정기권은 얼마인가요?", "1급지 50,000원, 2급지 40,000원", False),
        ("2급지 월 정기권은 얼마인가요?", "1급지 50,000원, 2급지 40,000원", True),
        ("5인 가구의 기준은?", "1인 가구 | 2인가구 | 4인 가구", False),
        ("4인 가구의 기준은?", "1인 가구 | 2인가구 | 4인가구", True),
        ("4등급도 받을 수 있나요?", "3~5등급은 받을 수 있다.", True),
        ("4등급도 받을 수 있나요?", "3등급 이상은 받을 수 있다.", True),
        ("What happens on May 5?", "The fair is from May 3 to May 8.", True),
        ("What does Section 5 say?", "It does not replace Section 3.", True),
        ("What changed in Budget 2024?", "Budget 2026 was adopted.", True),
        ("Is it free with EUR500 of income?", "Up to EUR300 it is free.", True),
        ("When did Leave 20 days begin?", "Leave 30 days", True),
        ("How does COVID-19 spread?", "The coronavirus spreads by droplets.", True),
    ],
)
def test_a_text_with_another_number_alone_is_about_something_else(
    question: str, text: str, has: bool
) -> None:
    assert has_labels(labels_of(question), text) is has


def test_a_comparison_needs_one_of_its_labels() -> None:
    labels = labels_of("Is the X300 larger than the X200?")
    assert has_labels(labels, "The X200 weighs 9 kg.")
    assert not has_labels(labels, "The X100 weighs 9 kg.")
