"""The service of the keyword index, in a thread of this process, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr
from served import served

from callslip.api.keyword_wsgi import create_app
from callslip.config.settings import ApiSettings, ChromaSettings, KeywordSettings, Settings

KEY = SecretStr("the-secret-of-the-service")


@contextmanager
def keyword_service(folder: Path) -> Iterator[KeywordSettings]:
    """A service on a free port that has the indexes in the folder; its settings for a client."""
    settings = Settings(
        data_dir=folder, chroma=ChromaSettings(index_dir=folder), keyword=KeywordSettings(key=KEY)
    )
    with served(create_app(settings), ApiSettings(keep_alive_seconds=60)) as server:
        host, port = server.address
        yield KeywordSettings(url=f"http://{host}:{port}", key=KEY)


def with_service(settings: Settings, keyword: KeywordSettings) -> Settings:
    """The settings of a part that uses the service."""
    return settings.model_copy(update={"keyword": keyword})
