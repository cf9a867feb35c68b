"""Rules of languages behind one contract: German beside English and Korean, and without it."""

from datetime import date
from typing import get_args

import pytest
from pydantic import ValidationError

from callslip.config.settings import Settings
from callslip.ingestion.chunks.boundaries import sentence_end
from callslip.ingestion.enrich.validity import Validity, of_chunk
from callslip.ingestion.sections.headings import find_headings
from callslip.languages import BUILT_IN, DEFAULT, language, languages
from callslip.languages.contract import Cue, Intent
from callslip.models.entities import Recognizer
from callslip.models.entities.dates import days
from callslip.models.text.analyzer import VERSION, Analyzer, version_of
from callslip.models.text.language import lang
from callslip.retrieval.evidence.sentences import sentences
from callslip.retrieval.query.followups import Standing, stand
from callslip.retrieval.query.time_expressions import read_time
from callslip.retrieval.query.understand import understand

GERMAN = (*DEFAULT, "de")
TODAY = date(2026, 3, 15)
NOT_GERMAN = [
    "How long is parental leave as of March 3, 2020?",
    "in 2019 the fee was 1,000 dollars",
    "It's e.g. section 3.1 of the act.",
    "2020년 3월 기준 출산 장려금은 얼마인가요?",
    "제12조의2에 따라 100만원을 지급한다.",
]


@pytest.mark.parametrize("code", BUILT_IN)
def test_every_language_keeps_the_contract(code: str) -> None:
    rules = language(code)
    assert rules.code == code
    assert rules.function_words
    assert (rules.terms.stem is None) != (rules.terms.of_text is None)
    assert len(rules.calendar.months) in (0, 12)
    for form in rules.calendar.days:
        assert "(?P<year>" in form
        assert "(?P<day>" in form
    assert set(rules.questions.intents) <= set(get_args(Intent))
    assert set(rules.validity.before) | set(rules.validity.after) <= set(get_args(Cue))
    if rules.relative_times.named:
        assert {unit for _, unit, _ in rules.relative_times.named} <= {
            *("year", "quarter", "month", "week", "day")
        }


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(KeyError):
        languages(("en", "xx"))


# What German changes nothing of


@pytest.mark.parametrize("text", NOT_GERMAN)
def test_english_and_korean_are_analyzed_alike_with_and_without_german(text: str) -> None:
    assert Analyzer(GERMAN).analyze(text) == Analyzer().analyze(text)
    assert lang(text, GERMAN) == lang(text)
    assert read_time(text, TODAY, GERMAN) == read_time(text, TODAY)
    assert sentences(text, GERMAN) == sentences(text)
    assert stand(text, [], GERMAN) == stand(text, [])


def test_without_the_setting_german_is_read_as_before() -> None:
    assert lang("Wie lange ist der Urlaub?") == "en"
    assert read_time("Urlaub, Stand 2019", TODAY) is None
    assert Analyzer().version == VERSION
    assert Analyzer().analyze("die Häuser") == "die hauser"


# German


def test_german_adds_stems_and_takes_none_away() -> None:
    english, german = Analyzer(), Analyzer(GERMAN)
    text = "Die Häuser und das Haus der Mitarbeiterinnen"
    terms = german.analyze(text).split()
    assert set(english.analyze(text).split()) <= set(terms)
    assert terms.count("haus") == 2
    assert german.version == version_of(GERMAN) == f"{VERSION}+de"


def test_a_single_german_word_meets_the_text_that_it_stands_in() -> None:
    german = Analyzer(GERMAN)
    text = set(german.analyze("Die Kündigungen sind mit der Post zu senden").split())
    assert set(german.analyze("Kündigung").split()) & text


def test_german_thousands_are_one_number() -> None:
    german = Analyzer(GERMAN)
    assert "1000000" in german.analyze("Das sind 1.000.000,50 Euro für die Stadt").split()
    assert "1000" in german.analyze("Es kostet 1.000 Euro und nicht mehr").split()
    assert "3141" not in german.analyze("the value of pi is 3.141 and a bit").split()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Wie lange ist der Urlaub?", "de"),
        ("how long is the leave?", "en"),
        ("Elternzeit", "en"),
        ("출산 장려금", "ko"),
        ("1234", ""),
    ],
)
def test_the_language_of_latin_script_is_told_by_its_function_words(text: str, code: str) -> None:
    assert lang(text, GERMAN) == code


@pytest.mark.parametrize("text", ["am 3. März 2020", "3.3.2020", "3. Mrz. 2020", "03.03.2020"])
def test_german_days_are_read(text: str) -> None:
    assert [day.day for day in days(text, GERMAN)] == [date(2020, 3, 3)]


@pytest.mark.parametrize(
    ("question", "day", "words"),
    [
        ("Wie hoch war der Mindestlohn, Stand 2019?", date(2019, 12, 31), "Stand 2019"),
        ("Welche Regeln galten am 3. März 2020?", date(2020, 3, 3), "am 3. März 2020"),
        ("Gesetz zum Stand vom 1. Januar 2018", date(2018, 1, 1), "zum Stand vom 1. Januar 2018"),
        ("Welche Gebühren galten im Mai 2021?", date(2021, 5, 31), "im Mai 2021"),
        ("Regeln für Urlaub vor 2015", date(2014, 12, 31), "vor 2015"),
        ("Regeln für Urlaub seit 2015", TODAY, "seit 2015"),
        ("Regeln im 2. Quartal 2020", date(2020, 6, 30), "im 2. Quartal 2020"),
        ("Regeln von 2015 bis 2018", date(2018, 12, 31), "von 2015 bis 2018"),
        ("Urlaubsregeln im letzten Jahr", date(2025, 12, 31), "im letzten Jahr"),
        ("Urlaubsregeln vor zwei Jahren", date(2024, 3, 15), "vor zwei Jahren"),
    ],
)
def test_german_times_are_read(question: str, day: date, words: str) -> None:
    time = read_time(question, TODAY, GERMAN)
    assert time is not None
    assert (time.day, time.words) == (day, words)


@pytest.mark.parametrize("question", ["Sind es 2010 Euro?", "Wer ist 1990 geboren?", "RFC 2019"])
def test_german_numbers_and_times_of_the_subject_are_no_times(question: str) -> None:
    assert read_time(question, TODAY, GERMAN) is None


def test_a_german_question_is_understood() -> None:
    read = understand("Wie lange ist der Urlaub, Stand 2019?", TODAY, Recognizer(GERMAN))
    assert (read.lang, read.intent, read.as_of) == ("de", "legal", date(2019, 12, 31))
    assert "2019" not in read.topic


def test_a_german_follow_up_stands_by_itself() -> None:
    before = [Standing("Wie lange ist der Urlaub?")]
    assert stand("Und für Auszubildende?", before, GERMAN).text == (
        "Wie lange ist der Urlaub für Auszubildende?"
    )
    assert "Urlaub" in stand("Wer genehmigt ihn?", before, GERMAN).text


def test_german_sentences_end_behind_no_abbreviation_or_ordinal() -> None:
    text = "Der Antrag ist z. B. am 3. März zu stellen. Er gilt gem. Abs. 2 sofort."
    assert [text[a:b] for a, b in sentences(text, GERMAN)] == [
        "Der Antrag ist z. B. am 3. März zu stellen.",
        "Er gilt gem. Abs. 2 sofort.",
    ]
    text = "Das gilt gem. Nr. 3 ab sofort. Über den Rest bzw. Ä wird entschieden."
    assert [text[: m.end()] for m in sentence_end(GERMAN).finditer(text)] == [text[:31]]


def test_german_headings_are_found() -> None:
    text = "Abschnitt 1 Urlaub\n\n§ 1\nDer Urlaub ist lang.\n\n§ 2\nEr ist kurz.\n\nAnhang A\n\nx"
    found = [(text[h.start : h.end], h.level) for h in find_headings(text, (), GERMAN)]
    assert ("§ 1", 5) in found
    assert ("Abschnitt 1 Urlaub", 1) in found


def test_german_validity_is_read() -> None:
    assert of_chunk("Diese Satzung tritt am 1. Mai 2020 in Kraft.", GERMAN) == Validity(
        date(2020, 5, 1), None
    )
    assert of_chunk("Gültig bis zum 31. Dezember 2025.", GERMAN) == Validity(None, date(2026, 1, 1))


def test_the_setting_adds_languages_to_the_default_ones() -> None:
    assert Settings().language_codes == DEFAULT
    assert Settings(languages="de").language_codes == GERMAN
    assert Settings(languages="de, en").language_codes == GERMAN
    with pytest.raises(ValidationError, match="no rules for xx"):
        Settings(languages="xx")
