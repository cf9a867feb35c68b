"""The command line of the service of the keyword index, and what its process is told."""

import pytest
from pydantic import SecretStr

from callslip.config.settings import ApiSettings, KeywordSettings, Settings
from callslip.errors import SettingsError
from callslip.workers.commands import argv, keyword_environment
from callslip.workers.health import fault, keyword_fault

KEYWORD = KeywordSettings(host="10.0.0.5", port=9000, key=SecretStr("sixteen-or-more-characters"))


def test_it_is_one_process_that_listens_where_its_section_says() -> None:
    settings = Settings(keyword=KEYWORD, api=ApiSettings(port=1, processes=4, open=True))
    command = argv("keyword", settings)
    assert command[3] == "callslip.api.keyword_wsgi:serve()"
    assert command[command.index("--bind") + 1] == "10.0.0.5:9000"
    assert command[command.index("--workers") + 1] == "1"
    variables = keyword_environment(settings)
    assert variables["CALLSLIP_API__HOST"] == "10.0.0.5"
    assert variables["CALLSLIP_API__OPEN"] == "False"
    assert not any("characters" in text for text in (*command, *variables.values()))


def test_without_a_key_it_does_not_start() -> None:
    with pytest.raises(SettingsError, match=r"keyword\.key is not set"):
        argv("keyword", Settings())
    assert keyword_fault(KeywordSettings()) == "keyword.key is not set"


@pytest.mark.parametrize("section", [{"key": "short"}, {"key": "with space " * 3}, {"url": "x"}])
def test_settings_that_cannot_work_are_refused(section: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"key|url"):
        KeywordSettings.model_validate(section)
    with pytest.raises(ValueError, match=r"keyword\.url needs keyword\.key"):
        KeywordSettings(url="http://10.0.0.5:8766")


def test_health_names_the_roles() -> None:
    assert "keyword" in fault("nobody")
