"""What makes two Korean statements with the same words differ: opposites, and measures."""

import re

from callslip.languages.measures import measures

OPPOSITES = tuple(
    (re.compile(one), re.compile(other))
    for one, other in (
        (r"이상|넘[는은을]|부터", r"미만|이하|넘지|까지"),
        (r"이하|최대|까지|넘지|최고", r"이상|최소|최저"),
        (r"\s전에|전까지", r"\s후에|뒤에|다음에"),
        (r"\s전(?:에)?\s", r"\s(?:후|뒤)(?:에)?\s"),
        (r"무료|공짜", r"유료"),
        (r"인상", r"인하"),
        (r"접수|승인|수리", r"반려|거부|기각"),
        (r"[여해]야\s?(?:한다|합니다|해요)|의무", r"[할될]\s수\s있"),
    )
)

MEASURES = measures(
    {
        **{"usd": r"달러|불(?=[\s을이에은로,.]|$)", "eur": r"유로", "gbp_lb": r"파운드"},
        **{"krw": r"원", "jpy": r"엔(?![가-힣]{2})", "am": r"자정", "pm": r"정오"},
        "points": r"(?:%|퍼센트)\s?(?:p\b|포인트)",
        **{"percent": r"%|퍼센트|프로(?!젝|그)", "kg": r"킬로그램|킬로(?!미터)", "g": r"그램"},
        **{"km": r"킬로미터", "m": r"미터", "mile": r"마일"},
    },
    {"am": r"오전|새벽|아침", "pm": r"오후|낮|저녁", "night": r"밤"},
)
