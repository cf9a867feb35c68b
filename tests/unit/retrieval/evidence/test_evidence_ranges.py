"""Table rows whose range has an amount of the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.retrieval.evidence.ranges import amounts_of, in_range

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
        ("휴직 4개월째 수당은?", "휴직한 달 | 수당", "1~3개월째 | 250만 원", False),
        ("휴직 4개월째 수당은?", "휴직한 달 | 수당", "4~6개월째 | 200만 원", True),
        ("휴직 9개월째 수당은?", "휴직한 달 | 수당", "7개월째부터 | 160만 원", True),
        ("근속 3년차 연차는?", "근속 | 연차", "3년차 이상 | 16일", True),
        ("2026년에 연차는 며칠?", "근속 기간 | 일수", "3년 이상 | 18일", False),
        ("'24년 연차는 며칠?", "근속 기간 | 일수", "3년 이상 | 18일", False),
        ("24년 일하면 연차는 며칠?", "근속 기간 | 일수", "3년 이상 | 18일", True),
        (
            *("after 20 years?", "Program"),
            "16 to 26 years, 180 million euros for books that are read to children of 1 to 3",
            False,
        ),
        # a row without cells is read as far as it goes
        ("after 10 years", "Years Days", "3-5 16", False),
        ("after 4 years", "Years Days", "3-5 16", True),
        ("근속 10년이면 연차", "근속 연차", "3년 이상 5년 미만 16일", False),
        ("leave after 18 years", "Years of service Days of leave", "15 - 20", False),
        # the first range of a dimension decides
        ("notice for 4 days of leave", "Days of leave | Notice", "1 to 2 | at least 3 days", False),
        ("a delay of 3 hours", "Delay | Refund", "1 to 2 hours | within 5 days", False),
        ("휴가 3일 쓰려면 며칠 전", "휴가 일수 | 신청", "1일 이하 | 5일 이내", False),
        # an amount of several parts is not read
        ("주차 2시간 30분 요금", "주차 시간 | 요금", "1시간 이내 | 무료", False),
        ("after two and a half years", "Service | Days", "less than 1 year | 5", False),
        ("소득 1억 2천만원", "소득 | 세율", "1,400만원 초과 5,000만원 이하 | 15%", False),
        # nor is a scale that may belong to both ends
        ("5천만원 계약", "계약 금액 | 승인", "1~3억원 | 이사", False),
        ("a contract of $500", "Sum | Approval", "$1 to $3 million | board", False),
        ("a contract of 1,500 euros", "Sum | Approval", "1,000 to 3,000 euros | head", True),
        # more or less than an amount of the question
        ("more than 10 years", "Years of service | Days", "6 to 10 | 20", False),
        ("more than 10 years", "Years of service | Days", "over 10 | 22", True),
        ("less than 1 year", "Years of service | Days", "1 to 2 | 15", False),
        ("less than 1 year", "Years of service | Days", "less than 1 | 11", True),
        ("no more than 10 years", "Years of service | Days", "6 to 10 | 20", True),
        ("10년 초과 근무", "근속 | 연차", "5년 초과 10년 이하 | 20일", False),
        ("5년 미만 근무", "근속 | 연차", "3년 이상 5년 미만 | 16일", True),
        # dates, lists, other words and other currencies
        ("5월 3일에 쉬나요", "지연 일수 | 벌점", "1~5일 | 2점", False),
        ("award after 7 years", "Years | Award", "5, 10 | watch", False),
        ("award after 7 years", "Years | Award", "5 AND 10 | watch", False),
        ("award after 7 years", "Years | Award", "5 | watch", False),
        ("award after 7 years", "Years | Award", "between 5 and 10 | watch", True),
        ("20 years ago", "Year | Event", "before 1990 | founded", False),
        ("3번 위반", "번호 | 규정", "1~5 | 총칙", False),
        ("3일", "일정 | 내용", "1~5 | 안내", False),
        ("a claim of 300 dollars", "Sum | Who", "up to 500 euros | head", False),
        ("근속 4년이면", "근속 기간(년) | 연차", "3~5 | 16", True),
        ("4 years", "Years of service | Days", "more\u00a0than 3 | 16", True),
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
    assert in_range(amounts_of(question, CODES), header, row, CODES) is expected


@given(
    st.text(alphabet="19 ,.-~<+|\t년만원이상미만 toyearsmillion$€()½٣", max_size=80),
    st.text(max_size=80),
)
def test_any_text_is_read(text: str, other: str) -> None:
    amounts = amounts_of("after 3 years and $5, 2일 1,000만원", CODES)
    for header, row in ((text, other), (other, text), (text, text)):
        in_range(
            (*amounts, *amounts_of(text, CODES), *amounts_of(other, CODES)), header, row, CODES
        )
