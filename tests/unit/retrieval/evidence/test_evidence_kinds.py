"""The kinds of answers that questions ask for, in two languages."""

import pytest

from callslip.retrieval.evidence.kinds import EXACT, NUMBER, fit, has_needed, has_number, kinds_of


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("How many days of leave do I get?", {"number", "time"}),
        ("How long is parental leave?", {"number", "time", "months", "seconds"}),
        ("How much is a permit?", {"number", "money", "percent"}),
        ("What is the fee for a card?", {"number", "money", "percent"}),
        ("When was the office built?", {"number", "date"}),
        ("What time does it open?", {"number", "clock"}),
        ("What is the phone number of the office?", {"address"}),
        ("Who pays for lunch?", set()),
        ("휴가는 며칠인가요?", {"number", "time"}),
        ("몇 시간 걸리나요?", {"number", "time"}),
        ("어느 년도에 지었나요?", {"number", "date"}),
        ("시행 날짜를 알려 주세요", {"number", "date"}),
        ("법이 시행된 해는 언제인가요?", {"number", "date"}),
        ("가입 나이는 어떻게 되나요?", {"number", "age"}),
        ("건물의 높이는?", {"number"}),
        ("수수료는 얼마인가요?", {"number", "money", "percent"}),
        ("취약점은 어디로 신고하나요?", {"address"}),
        ("올해의 게임은 무엇인가요?", set()),
        ("What do they call a pharmacist?", set()),
        (f"{'몇 ' * 2000}일?", {"number", "time"}),
    ],
)
def test_a_question_asks_for_kinds(question: str, kinds: set[str]) -> None:
    assert kinds_of(question) == kinds


@pytest.mark.parametrize(
    ("question", "statement", "other"),
    [
        ("How many days may I be away?", "You may be away for 20 days.", "It costs 20 euros."),
        ("When is paper collected?", "Every fourth Tuesday.", "It must stand there by six."),
        ("When may I apply?", "You may apply on 3 May.", "You may apply for 3 shares."),
        ("When was the fee set?", "The fee was set in 1998.", "The fee is 1500 euros."),
        ("How do I contact the team?", "Write to team@example.org.", "The team likes mail."),
        ("며칠 안에 내야 하나요?", "30일 이내에 냅니다.", "요금은 3만 원입니다."),
        ("어느 연도에 지었나요?", "1998년에 지었다.", "방이 12개 있다."),
        ("어디로 문의하나요?", "02-123-4567로 전화하세요.", "문의는 언제나 환영합니다."),
    ],
)
def test_a_statement_of_the_asked_kind_fits_better(
    question: str, statement: str, other: str
) -> None:
    kinds = kinds_of(question)
    number = NUMBER * ("number" in kinds)
    assert fit(statement, kinds) == pytest.approx(number + EXACT)
    assert fit(other, kinds) == number
    assert fit(statement, frozenset()) == 0


def test_each_language_has_its_numbers() -> None:
    assert has_number("twelve books")
    assert has_number("이틀 뒤")
    assert not has_number("many books")
    assert not has_number("twelve books", ("ko",))
    assert has_number("nach 12 Tagen", ("de",))
    assert kinds_of("Wie viele Tage?", ("de",)) == frozenset()


@pytest.mark.parametrize(
    ("question", "statement", "has"),
    [
        ("What is the phone number of the shop?", "Tents are delivered in 3 to 5 days.", False),
        ("What is the phone number of the shop?", "Call 0161 555 0110.", True),
        ("What's their telephone extension?", "Extension 2301", True),
        ("What is the library's e-mail address?", "Write to the library.", False),
        ("What is the library's e-mail address?", "Write to library@example.org.", True),
        ("What is the best way to change my e-mail address?", "Open the settings.", True),
        ("How do I list all phone numbers?", "Open the settings.", True),
        ("도서관 전화번호는 무엇인가요?", "도서관은 9시에 연다.", False),
        ("도서관 전화번호 알려 주세요", "도서관(055-000-3700)", True),
        ("담당자 내선번호가 뭐예요?", "내선 2301", True),
        ("이메일 주소는?", "홈페이지로 신청한다.", False),
        ("메일 주소를 바꾸려면?", "설정에서 바꾼다.", True),
    ],
)
def test_an_answer_has_what_a_question_names(question: str, statement: str, has: bool) -> None:
    assert has_needed(question, statement) is has
