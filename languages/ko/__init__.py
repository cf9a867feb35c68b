"""The rules of Korean."""

import re
from collections.abc import Iterator

from callslip.languages.calendar import YEAR
from callslip.languages.contract import (
    Calendar,
    FollowUps,
    Headings,
    Language,
    Questions,
    RelativeTimes,
    Script,
    Sentences,
    Terms,
    TimeCues,
    Unit,
    ValidityCues,
    words,
)
from callslip.languages.ko.claims import CLAIMS
from callslip.languages.ko.kinds import KINDS, RANGES
from callslip.languages.scripts import HANGUL


def _terms(text: str) -> Iterator[str]:
    from callslip.languages.ko.terms import terms  # Kiwi takes .1 s to import

    return terms(text)


def _to_embed(query: str) -> str:
    from callslip.languages.ko.spelling import to_embed  # Kiwi takes .1 s to import

    return to_embed(query)


_NO_YEAR = r"(?!생|산|형|식|차|대|간|여|물|도?\s?(?:동안|예산|결산|회계))"
_CALENDAR = Calendar(
    days=(r"(?P<year>\d{4}|['’]\d{2})\s?년\s*(?P<month_no>\d{1,2})\s?월\s*(?P<day>\d{1,2})\s?일",),
    periods=(
        re.compile(
            rf"(?<![\w.,제~-])(?:{YEAR}|['’](?P<short>\d\d))\s?년"
            r"(?:\s?(?P<month_no>1[0-2]|0?[1-9])\s?월"
            rf"|{_NO_YEAR}도?(?:\s?(?P<half>[상하])반기|\s?(?P<quarter>[1-4])(?:/4)?\s?분기"
            r"|\s?연?(?P<edge>초|말)(?![가-힣]{2}))?)",
            re.I,
        ),
    ),
    halves={"상": 1, "하": 2},
    beginnings=("초",),
)

_NUMBERS = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "열": 10}
_UNITS: dict[str, Unit] = {
    **{"년": "year", "해": "year", "개월": "month", "달": "month", "주": "week", "일": "day"}
}
_END = r"요?(?![가-힣])"
"""The end of a word, and a final 요 of politeness with it: 작년에는요."""
_RELATIVE = RelativeTimes(
    # After a noun the time is relative to the noun, not to today: 퇴직 3개월 전.
    counted=re.compile(
        rf"(?:^\s*|(?:지금|현재)(?:으?로)?부터\s?|(?<=[?!.,]\s)|(?<=[나가은는]요\s))"
        rf"(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)})\s?"
        rf"(?P<unit>{'|'.join(_UNITS)})\s?전"
        r"(?!까지|부터|에?\s?(?:미리|신청|신고|통지|통보|예고|알|제출|해고))"
    ),
    numbers=_NUMBERS,
    units=_UNITS,
    named=(
        ("재작년", "year", -2),
        ("(?:작년|지난해|전년도?|지난 연도)", "year", -1),
        ("(?:올해(?!의)|금년도?|이번 연도)", "year", 0),
        ("(?:내년|다음 해)", "year", 1),
        ("(?:지난 ?분기|직전 ?분기)", "quarter", -1),
        ("이번 ?분기", "quarter", 0),
        ("(?:지난 ?달|저번 ?달|전월)", "month", -1),
        ("(?:이번 ?달|이달(?!의)|금월)", "month", 0),
        ("다음 ?달", "month", 1),
        ("(?:지난 ?주|저번 ?주)", "week", -1),
        ("(?:그저께|그제)", "day", -2),
        ("어제", "day", -1),
        ("(?:오늘날?|현행|현재|지금|요즘|현시점)", "day", 0),
        ("내일", "day", 1),
    ),
    before=r"(?<!\w)",
    after=(
        r"(?=(?:도|의|은|는|에|엔|에는|에도|까지(?:의|는)?|으?로|부터(?:의|는)?|기준|당시|시점|이전|이후|말|초|시행"
        rf"|유효|적용|이?라면|이면){_END}|요(?!\w)|법령?|규정|[^\w]|$)"
    ),
)

_DONE = r"(?:한|했|하였|하던|하고|해서|하여|하며|된|됐|되었)"
_STORY = (
    r"(?:(?:입사|가입|취득|등록|채용|임용|준공|건축|계약|체결|구입|구매|매입|매수|근무|졸업|입학|퇴직|퇴사|혼인|결혼"
    rf"|출산|입양|이사|전입|분양){_DONE}|낳(?:은|았|고|아)|지은|지었|태어[나난났]|다[친쳤]|샀)"
)
"""What somebody did, with an ending of the past."""
_TIME_CUES = TimeCues(
    behind=re.compile(
        r"\s?(?P<firm>(?:시점\s?)?기준(?:으로(?:는|도)?|의|은|도)?|당시(?:에는|에|의|는)?|현재(?:의|는|로)?"
        rf"|시점(?:의|에서|에는|에)?|(?:에\s)?(?:시행|유효|적용)(?:되던|되는|된|하던|하는|중인)?){_END}"
        rf"|(?P<before>\s?이전(?:에는|에|의)?|보다\s전에?|\s전(?:에는|에|의)?){_END}"
        r"|(?P<since>\s?이후(?:에는|에|의|로)?|\s?이래로?|부터는?|\s후(?:에는|에|의)?)요?(?!\w)"
        rf"|(?:\s?말)?(?:까지(?:는|의)?|에서|에는|에도|에|엔|의|은|는|도|이?라면|이면|\s중에?)?{_END}"
    ),
    of_subject_behind=re.compile(
        r"\s?(?:출생|입사|가입|취득|설립|등록|채용|임용|태어|준공|건축|계약|체결|제조|생산|졸업|입학|퇴직|사망|혼인"
        r"|분양|선고|신설|제정|개정|도입|발표|발행|출시|수립|자\s?판결|법률\s제|대통령령|부령|고시\s제|발생|개최)"
        rf"|\s?(?:[가-힣\w]+(?:을|를|이|가|에|로|에서|에게)\s){{0,2}}{_STORY}"
    ),
    names=re.compile(r"(?:개정|신설|제정|공포)\s?$"),
    compares=re.compile(r"(?:년도?|월|분기|달|해)\s?대비"),
    between=("부터", "에서"),
)

_RULES = re.compile(
    r"법(?![가-힣]{0,2}원)|법률|시행령|조례|규정|규칙|조항|제\s?\d+\s?조|지침|고시|약관|요건|자격|한도|요율|세율"
    r"|과태료|벌칙|수당|장려금|지원금|급여|보험료|최저임금|의무|기한|허용|적용|시행"
)
_QUESTIONS = Questions(
    rules=_RULES,
    intents={
        "definition": re.compile(r"(?:이?란|라\s?함은)\s?(?:무엇|\?|$)|뜻|정의|의미"),
        "how-to": re.compile(r"어떻게|방법|절차|하려면|하는\s?법(?![가-힣])"),
        "legal": _RULES,
        "lookup": re.compile(r"얼마|언제|몇|며칠|기간|금액|비율"),
        "entity": re.compile(r"누구|누가|어디"),
    },
)

_FOLLOW_UPS = FollowUps(
    leads=(
        *(
            "그럼",
            "그러면",
            "그리고",
            "그런데",
            "근데",
            "그래서",
            "그렇다면",
            "또한",
            "또",
            "하지만",
        ),
        *("그러나", "혹시", "만약", "만일", "아니면"),
    ),
    fragment=re.compile(
        r"^(?:\S+\s+){0,2}(?!\S*(?:제도|정도|속도|온도|한도|연도|년도|용도|빈도|각도|지도|별도)\b)"
        r"\S*?(?P<by>은|는|도|이면|라면|엔|에는|의\s?경우)(?:요)?[?.!\s]*$"
    ),
    alike={"은": "는", "이면": "라면", "엔": "에는"},  # forms after other sounds, contractions
    points=re.compile(
        r"(?:^|\s)(?:그것|이것|그거|이거|거기|그때|이때|그\s?경우|이\s?경우|그\s?사람|(?:그|해당)\s(?=\S))"
    ),
    asking=(
        r"(?:얼마나|얼마|무엇|뭐|언제|어디|어떻게|어떤|누가|누구|몇|왜|알려|주세요|말해)\S*",
        r"\s(?:되|하|인|있|없|받)\S{0,3}(?:나요|가요|니까|까요)",
    ),
    complete=re.compile(r"(?:나요|가요|니까|까요|습니다|얼마|언제|어디|무엇|누구|어떻게)"),
)

_SENTENCES = Sentences(
    abbreviation=re.compile(r"\b\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\.$"),  # the end of a date
    numbered_line=r"제\d",
    letters="가-힣",
)

_HEADINGS = Headings(
    levelled=re.compile(r"제\s?\d+\s?(?P<unit>편|장|절|관|조|항)(?:의\s?\d+)?(?=\s|\(|\[|$)"),
    levels={"편": 1, "장": 2, "절": 3, "관": 4, "조": 5, "항": 6},
    inline=frozenset("조항"),
    supplement=re.compile(
        r"부\s?칙(?=\s*(?:[<〈(\[]|$))|\[?별표(?:\s?\d+(?:의\s?\d+)?)?\]?(?=\s|\(|$)"
    ),
    sentence=re.compile(r"다\.?$|요\.?$"),
)

_IS = r"\s*[:：|은는]?\s*"
_VALIDITY = ValidityCues(
    before={
        "end": (rf"(?:폐지일자?|실효일){_IS}",),
        "through": (rf"(?:만료일자?|종료일자?|유효\s?기한){_IS}",),
        "from": (
            rf"(?:시행|발효|적용|효력\s?발생)\s*(?:일자|일)?\)?{_IS}",
            rf"유효\s?기간{_IS}",
        ),
        "revised": (rf"(?:개정|제정)\s*(?:일자|일)?{_IS}",),
    },
    after={
        "end": (r"(?:부로\s*|자로\s*|에\s*)?(?:폐지|실효)",),
        "through": (r"까지\s*(?:시행|유효|효력|적용|한다|로\s?한다)",),
        "from": (r"(?:부터|자로|부로|에)?\s*(?:시행|발효|적용)(?!\s*(?:중지|유예))",),
        "revised": (r",?\s*(?:일부|전부|타법)?\s*(?:개정|제정)",),
    },
    range_words=("부터",),
    keys={
        "from": ("시행일", "시행일자"),
        "revised": ("개정일", "개정일자"),
        "end": ("폐지일",),
        "through": ("만료일",),
    },
)

LANGUAGE = Language(
    code="ko",
    # Korean prose quotes Latin terms; prose in Latin script does not quote Hangul.
    script=Script(HANGUL, share=0.2),
    function_words=words(
        "무엇 뭐 무슨 어느 어떤 어떻 어디 언제 누구 누가 얼마 얼마나 몇 왜 되 하 있 없 것 수 등"
    ),
    terms=Terms(of_text=_terms),
    to_embed=_to_embed,
    calendar=_CALENDAR,
    relative_times=_RELATIVE,
    time_cues=_TIME_CUES,
    questions=_QUESTIONS,
    follow_ups=_FOLLOW_UPS,
    sentences=_SENTENCES,
    headings=_HEADINGS,
    validity=_VALIDITY,
    claims=CLAIMS,
    kinds=KINDS,
    ranges=RANGES,
)
