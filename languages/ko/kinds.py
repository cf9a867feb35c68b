"""The kinds of answers that Korean questions ask for."""

import re

from callslip.languages.contract import Kinds, Ranges, words

_WHAT = r"(?:[은는이가]?\s?(?:무엇|뭐|뭔|어떻게\s?되|몇)|[은는를]?\s?(?:알려|\?|？|$))"

KINDS = Kinds(
    questions=(
        (
            re.compile(
                r"얼마|몇|며칠|언제|기한|기간|요금|수수료|금액|비용|가격|액수|상한|하한|비율|요율|세율|년도|연도"
                r"|날짜|일자|(?<![가-힣])해(?:는|가)|시각|시간[은이]|나이|연령|높이|길이|너비|넓이|크기|면적"
                r"|무게|속도|온도|횟수|개수|인원"
            ),
            words("number"),
        ),
        (re.compile(r"언제|년도|연도|날짜|일자|(?<![가-힣])해(?:는|가)"), words("date")),
        (re.compile(r"기간|기한|얼마나\s?(?:걸|오래)|얼마\s?동안"), words("time months")),
        (re.compile(r"며칠"), words("time")),
        (
            re.compile(
                r"요금|수수료|금액|비용|가격|액수|상한액|벌금|과태료"
                r"|(?:금|료|비|액|당|급)[은는이가]?\s+얼마"
            ),
            words("money percent"),
        ),
        (re.compile(r"나이|연령"), words("age")),
        (
            re.compile(
                r"메일|전화|연락처|주소|홈페이지|누리집|어디(?:로|에)\s?(?:신고|문의|연락|보내)"
            ),
            words("address"),
        ),
    ),
    counted=re.compile(r"얼마(?!나)|(?<![가-힣])몇(?!\s?가지)"),
    number=re.compile(
        r"\d|하루|이틀|사흘|나흘|닷새|무료|(?:한|두|세|네|다섯|여섯)\s?(?:시간|번|달|해|명|점|주)"
        r"|[일이삼사오육칠팔구십백천만]{2,}\s?(?:일|개월|년|원|명|시간|분|주|퍼센트|세|회)"
    ),
    date=re.compile(r"\d\s?월|\d\s?일(?![가-힣]{0,2}반)|[월화수목금토일]요일|매[일월년주]"),
    labels=re.compile(
        r"(?<![\d.,~])(?P<number>\d{1,3})\s?(?P<name>급지|등급|학년|호선|단계|순위|[차종층동]"
        r"(?![가-힣]{2})|인\s?가구)"
    ),
    joined_before=re.compile(r"\d\s?[및와과]\s?$"),
    joined_behind=re.compile(r"\s?(?:이상|이하|초과|미만|까지|부터|이내|또는|[및와과]\s?\d)"),
    needed=(
        (re.compile(rf"(?:전화|내선)\s?번호{_WHAT}"), re.compile(r"\d{3}")),
        (re.compile(rf"메일\s?주소{_WHAT}"), re.compile("@")),
    ),
)

RANGES = Ranges(
    between=("부터", "에서"),
    lower_behind=("이상", "초과", "부터"),
    upper_behind=("이하", "미만", "까지", "이내"),
    without=re.compile("초과|미만"),
)
