"""The rules for comparing Korean sentences of an answer with passages."""

import re
from collections.abc import Iterator

from callslip.languages.contract import Amount, Claims, clock, words
from callslip.languages.ko.contrasts import MEASURES, OPPOSITES

_NATIVE = {
    **{"하나": 1, "둘": 2, "셋": 3, "넷": 4, "한": 1, "두": 2, "세": 3, "네": 4, "석": 3, "넉": 4},
    **{"다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10, "열한": 11, "열두": 12},
    **{"스무": 20, "스물": 20, "서른": 30, "마흔": 40, "쉰": 50},
}
_NATIVE |= {
    tens + ones: _NATIVE[tens] + _NATIVE[ones]
    for tens in ("열", "스물", "서른", "마흔", "쉰")
    for ones in ("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")
}
_SINO = {"일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "육": 6, "칠": 7, "팔": 8, "구": 9}
_TENS = {"십": 10, "백": 100, "천": 1000}
_MYRIADS = {"만": 10**4, "억": 10**8, "조": 10**12}
_DAYS = {
    **{"하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "여드레": 8},
    **{"아흐레": 9, "열흘": 10, "보름": 15, "일주일": 7},
}
_WORDS = {"반년": (0.5, "months", 6.0), "절반": (0.5, "", 0.5), "반값": (0.5, "", 0.5)}
_WORDS["반"] = _WORDS["절반"]
_CLOCKS = {"자정": 0.0, "정오": 0.0}
_UNITS: tuple[tuple[str, str, float], ...] = (
    (r"개월째?|달(?!러)", "months", 1),
    (r"년[째차]?|해(?![가-힣])", "months", 12),
    (r"월", "month of the year", 1),
    (r"시간", "time", 60),
    (r"시(?![청장민립설작스험행간])", "clock", 1),
    (r"분(?!기)", "time", 1),
    (r"주일|주(?!차|택|민)", "time", 10080),
    (r"일(?!반)", "time", 1440),
    (r"초(?!등)", "seconds", 1),
    (r"%|퍼센트|프로", "percent", 1),
    (r"원", "money", 1),
    (r"번째|째", "ordinal", 1),
    (r"번|회|차례", "times", 1),
    (r"세|살", "age", 1),
    (r"명|사람|인(?=당|\s|[은이의에])", "people", 1),
)
_UNIT = re.compile(
    r"\s?(?:" + "|".join(f"(?P<u{n}>{pattern})" for n, (pattern, _, _) in enumerate(_UNITS)) + ")"
)
_COUNTERS = r"개|권|장|점|통|대|마리|자|칸|층|호|등급|가지|곳|쪽|구획|세대|채|벌|편|학년|조|항|인용"
_SINO_NUMBER = r"[일이삼사오육칠팔구]?[십백천](?:[일이삼사오육칠팔구십백천])*"
_NUMBER = re.compile(
    r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d\d)(?![\d:])"
    r"|(?<![\d.])(?P<digits>\d+(?:[.,]\d+)*)\s?(?P<tens>[십백천])?(?P<myriad>[만억조])?"
    rf"|(?<![가-힣])(?P<days>{'|'.join(sorted(_DAYS, key=len, reverse=True))})"
    rf"|(?<![가-힣])(?P<native>{'|'.join(sorted(_NATIVE, key=len, reverse=True))})\s?"
    rf"(?=(?:개월|달(?!러)|해|시간|시(?![청장민립설작스험행])|주|번|차례|살|명|사람|{_COUNTERS})|(?<=[나둘셋넷])[가-힣]?)"
    rf"|(?<![가-힣])(?P<sino>{_SINO_NUMBER}|[일이삼사오육칠팔구](?=\s?(?:개월|년|주일|퍼센트)))"
    r"\s?(?P<many>[만억])?(?=\s?(?:원|일|개월|년|명|시간|분|주|퍼센트|세|회|점))"
    r"|(?<![가-힣\d])(?P<lone>만)(?=\s?원)|(?<![가-힣])(?P<fives>[오삼이육칠팔구])만(?=\s?원)"
    rf"|(?P<word>반년|절반|반값|(?<![가-힣])반(?=으로|을\s|만\s))|(?P<clock>{'|'.join(_CLOCKS)})"
    r"|(?P<first>첫째)|(?P<second>둘째)|(?P<third>셋째)"
)
_RATE = re.compile(
    r"(?:한\s?(?:달|해|번|주)|하루|일주일|[1일]년)에\s?|(?:한\s(?:달|해)|하루)(?=\s\d)"
)
"""How often, which passages also say with other words: `매월`."""

_SMALL_PART = re.compile(r"([일이삼사오육칠팔구]?)([십백천])|([일이삼사오육칠팔구])")


def amounts(text: str) -> Iterator[Amount]:
    """Iterate over the numbers of a text, in digits and in words, with what they count."""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        if _RATE.match(text, start):
            continue
        if match["word"]:
            yield Amount(*_WORDS[match["word"]], start, end)
        elif match["hour"]:
            yield clock(match["hour"], match["minute"], start, end)
        elif match["clock"]:
            yield Amount(0.0, "clock", 0.0, start, end)
        elif match["days"]:
            number = float(_DAYS[match["days"]])
            yield Amount(number, "time", number * 1440, start, end)
        elif match["first"] or match["second"] or match["third"]:
            number = 1.0 if match["first"] else 2.0 if match["second"] else 3.0
            yield Amount(number, "ordinal", number, start, end)
        else:
            number = _number(match)
            unit = _UNIT.match(text, end) if text[start:end].strip() else None
            if unit and unit.lastgroup:
                _, dimension, factor = _UNITS[int(unit.lastgroup[1:])]
                value = number % 12 if dimension == "clock" else number * factor
                yield Amount(number, dimension, value, start, unit.end())
            else:
                yield Amount(number, "", number, start, end)


def _number(match: re.Match[str]) -> float:
    if match["digits"]:
        plain = re.sub(r",(?=\d{3}(?!\d))", "", match["digits"].rstrip(".,")).replace(",", ".")
        number = float(plain) if plain.count(".") < 2 else float(plain.replace(".", ""))
        number *= _TENS.get(match["tens"] or "", 1)
        return number * _MYRIADS.get(match["myriad"] or "", 1)
    if match["native"]:
        return float(_NATIVE[match["native"]])
    if match["lone"]:
        return 10_000.0
    if match["fives"]:
        return _SINO[match["fives"]] * 10_000.0
    total = 0.0
    for part in _SMALL_PART.finditer(match["sino"]):
        total += _SINO[part[3]] if part[3] else _SINO.get(part[1], 1) * _TENS[part[2]]
    return total * _MYRIADS.get(match["many"] or "", 1)


def nouns(text: str) -> Iterator[str]:
    """Iterate over the nouns of a text, each run of nouns without a space as one word."""
    from callslip.languages.ko.morphemes import MORPHEMES  # Kiwi takes .1 s to import
    from callslip.languages.ko.terms import COMPOUNDING, PIECES

    for piece in PIECES.findall(text):
        compound, end = "", -1
        for token in MORPHEMES.get().of(piece):
            noun = token.tag in COMPOUNDING
            if compound and (not noun or token.start != end):
                if not token.tag.startswith(("XSV", "XSA")):
                    yield compound
                compound = ""
            if noun:
                compound, end = compound + token.form, token.end
        if compound:
            yield compound


_ADDRESSED = (
    r"지시|(?:답|답변|응답|대답)(?:에\s|을\s|은\s)|(?:이용자|사용자|독자)에게|언어\s?모델|챗봇|어시스턴트|모델은"
    r"|(?:AI|인공지능)\s?(?:비서|에게|는|야)"
    r"|[라다]고만?\s?(?:답|말|쓰|적|대답|응답|안내|주장|언급|출력|부르|불러)"
)
"""Words of commands that laws and notices have too: only an order makes them a command."""

_ORDER = (
    r"(?:[하해아어여두내쓰보주치리려켜]라|시오|세요|해\s?줘|[할쓸말될]\s?것|넣어야\s?한다|시작한다)"
    r"(?=[\s.,:!\"'”’]|$)"
)

CLAIMS = Claims(
    amounts=amounts,
    clause=re.compile(
        r"[,;:](?=\s)|(?<=[.!?])\s|\n"
        r"|(?:(?<=[가-힣][고며])|(?<=[으하]나)|(?<=지만)|(?<=는데)|(?<=하여)|(?<=해서)|(?<=[아어]서))\s"
    ),
    negation=re.compile(
        r"않|정지|중단|아니|아닌|아닙|못\s?[하한할합해받]|(?<![가-힣])못\s|지\s?못|없|불가|금지|무료|공짜|면제|제외"
        r"|지\s?(?:마|말)|(?<![가-힣])안\s(?:되|돼|됩|된|내|하|해|합|받)|면\s안"
    ),
    bounds=re.compile(r"(?:넘|초과하)지\s?(?:않|못)[가-힣]*|없이도|틀림없|끊임없"),
    opposites=OPPOSITES,
    measures=MEASURES,
    synonyms=tuple(
        words(line)
        for line in """
            아이 자녀 어린이 아동
            사람 분 이용자 시민 주민
            수수료 요금 비용 돈 금액 값 사용료
            좌석 자리
            차 차량 자동차
            책 도서
            집 주택 가정 가구 세대
            신청 접수
            반려견 개 강아지
            대출 빌리
            통장 계좌
            반납 돌려주
            문자 메시지
            휴대전화 핸드폰 전화
            인터넷 온라인 누리집 홈페이지
            직원 근로자
            납부 내
            중고등학교 중학교 고등학교
            부모 아빠 엄마
        """.strip().splitlines()
    ),
    general=words(
        """
        가능 가량 각각 감면 개 개방 개인 거기 결과 경우 공짜 규정 그것 그때 그리고 금액 금지 기간
        기준 나머지 납부 납입 낮 내 내용 년 다만 다음 단 달마다 당 당일 대상 대여 대출 동안 뒤
        등록 때 때문 또한 마지막 매년 매달 매월 매일 매주 면제 명 모두 모집 무료 미만 밖 반값 반납
        발급 밤 방문 방법 배정 배출 번 변경 별도 보조 본인 부과 부담 분 비용 사람 사용 상태 서류
        설치 수거 수령 시간 시작 신청 아래 아침 안 앞 약 여기 연간 옆 오전 오후 완료 우선 운영 월
        위 유료 의무 이것 이내 이때 이상 이용 이유 이전 이하 이후 일 일부 자신 장 저녁 적용 전
        전날 전부 전체 절반 절차 정도 제거 제공 제출 조건 종료 주 주차 중 지급 지불 지원 지정 직접
        진행 책임 처리 처음 첫 청구 초과 총 최고 최대 최소 최저 추가 취소 필요 하루 한번 할인 해당
        해마다 허용 확인 환불 회 후
        """
    ),
    specific=nouns,
    command=re.compile(
        r"프롬프트|개발자\s?모드|(?<![가-힣])너는\s|(?:답|답변|응답|대답)(?:하라|하십시오|하시오|해라|할\s?것)"
        r"|출력하|따라\s?하라|(?:질문|규칙)[을은]\s?(?:무시|잊)|새로?운?\s?(?:임무|지시)"
        rf"|</?(?:지시|시스템)>|지시\s?\||시스템\s?:|(?:{_ADDRESSED})(?s:.){{0,200}}?{_ORDER}",
        re.I,
    ),
)
