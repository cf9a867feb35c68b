"""Table rows whose range has an amount of the question."""

import pytest

from callslip.retrieval.evidence.ranges import counted, holds

CODES = ("en", "ko")


@pytest.mark.parametrize(
    ("question", "header", "row", "expected"),
    [
        ("annual leave after four years?", "Years of service | Days", "3 to 5 | 18", True),
        ("annual leave after four years?", "Years of service | Days", "6 to 9 | 20", False),
        ("annual leave after 10 years?", "Years of service | Days", "over 10 | 22", False),
        ("annual leave after 11 years?", "Years of service | Days", "over 10 | 22", True),
        ("annual leave after 10 years?", "Years of service | Days", "10 or more | 22", True),
        ("annual leave after 10 years?", "Years of service | Days", "10+ | 22", True),
        ("leave after 6 months?", "Service | Days", "less than 1 year | 5", True),
        ("leave after 12 months?", "Service | Days", "less than 1 year | 5", False),
        ("leave after 18 months?", "Service | Days", "1–3 years | 12", True),
        ("a claim of 300 euros", "Sum | Who decides", "up to 500 euros | the head", True),
        ("a claim of 600 euros", "Sum | Who decides", "≤ 500 euros | the head", False),
        ("근속 4년이면 연차는 며칠?", "근속 기간 | 일수", "3년 이상 5년 미만 | 18일", True),
        ("근속 5년이면 연차는 며칠?", "근속 기간 | 일수", "3년 이상 5년 미만 | 18일", False),
        ("근속 5년이면 연차는 며칠?", "근속 기간 | 일수", "5년 이하 | 18일", True),
        ("근속 4년이면 연차는 며칠?", "근속 기간 | 일수", "3년~5년 | 18일", True),
        ("leave after four years?", "Years of service Days of leave", "3 to 5 18", True),
        ("leave after six years?", "Years of service Days of leave", "3 to 5 18", False),
        ("leave after six years?", "Years of service Days of leave", "5 or more 20", True),
        ("leave after six months?", "Years of service Days of leave", "Less than 1 11", True),
        ("leave after six years?", "Years of service Days of leave", "Less than 1 11", False),
        (
            "leave after 4 months?",
            "Service | Days",
            "at least 3 months but less than 6 months | 5",
            True,
        ),
        (
            "leave after 6 months?",
            "Service | Days",
            "at least 3 months but less than 6 months | 5",
            False,
        ),
        ("leave after 6 months?", "Service | Days", "3 months or more, under 6 months | 5", False),
        ("leave after 3 months?", "Service | Days", "3 months or more, under 6 months | 5", True),
        ("소득이 6천만원이면?", "소득 | 세율", "5천만원 초과 ~ 8천만원 이하 | 24%", True),
        ("소득이 5천만원이면?", "소득 | 세율", "5천만원 초과~8천만원 이하 | 24%", False),
        ("how many days do I get?", "Years of service | Days", "3 to 5 | 18", False),
        ("room 4", "Years of service | Days", "3 to 5 | 18", False),
        ("after four years", "Room | Days", "3 to 5 | 18", False),  # 3 to 5 of what?
        ("after four years", "Years of service | Days", "3 to 5 | 18 | 7", False),
        ("after four years", "Years of service | Days", "in 2 of the last 5 years | 7", False),
        ("after four years", "Years of service | Days", "5 to 3 | 18", False),
        ("at 4 pm", "Hours | Fee", "3 to 5 | 18", False),
    ],
)
def test_a_row_has_the_amount(question: str, header: str, row: str, expected: bool) -> None:
    assert holds(counted(question, CODES), header, row, CODES) is expected
