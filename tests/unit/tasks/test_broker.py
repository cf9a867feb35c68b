"""The broker's address: which are refused, and what Celery and our clients make of the others."""

from pathlib import Path

import pytest
import redis
from click.testing import CliRunner
from redis.sentinel import SentinelConnectionPool

from callslip.cli.main import main
from callslip.config.settings import Settings
from callslip.tasks.shared.broker import celery_options, celery_url, connect
from callslip.workers import health

REFUSED = "amqp:// is not supported, because locks, replies and counters are in the broker too"


def settings_of(url: str, **broker: str) -> Settings:
    return Settings.model_validate({"broker": {"url": url, **broker}})


@pytest.fixture
def amqp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLSLIP_BROKER__URL", "amqp://guest:hush@rabbit:5672//")


@pytest.mark.usefixtures("amqp")
@pytest.mark.parametrize(
    "command", ["doctor", "up", "run api", "run ingest", "run maintenance", "status", "audit"]
)
def test_a_broker_that_is_no_redis_is_refused_by_every_command(command: str) -> None:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith(f"Error: broker.url in CALLSLIP_BROKER__URL: {REFUSED}")
    assert "use Redis or Valkey (redis://, rediss://, unix:// or sentinel://)" in result.stderr
    assert "hush" not in result.output


@pytest.mark.usefixtures("amqp")
def test_the_health_check_of_a_container_names_a_wrong_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "get_settings", health.get_settings.__wrapped__)
    assert REFUSED in health.fault("ingest")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("localhost:6379", "an address without a scheme is not supported"),
        ("sqs://key:hush@", "sqs:// is not supported"),
        ("redis://:hush@a;redis://b", "only sentinel:// has several addresses"),
        ("sentinel://:hush@a:1;redis://b:2", "expected sentinel://HOST:PORT"),
        ("sentinel://:hush@a:b", "expected sentinel://HOST:PORT"),
        ("sentinel://:hush@", "expected sentinel://HOST:PORT"),
        ("sentinel://a/queue", "expected sentinel://HOST:PORT"),
        ("sentinel://:hush@a", "needs broker.master_name"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(url: str, part: str) -> None:
    with pytest.raises(ValueError, match=part) as caught:
        settings_of(url)
    (error,) = caught.value.errors(include_input=False)  # type: ignore[attr-defined]
    assert "hush" not in error["msg"]


def test_celery_gets_credentials_and_database_with_each_sentinel() -> None:
    settings = settings_of(
        "sentinel://u:p%40ss@a:1/2;sentinel://b", master_name="m", sentinel_password="s"
    )
    assert celery_url(settings) == "sentinel://u:p%40ss@a:1/2;sentinel://u:p%40ss@b/2"
    options = celery_options(settings)
    assert (options["master_name"], options["sentinel_kwargs"]["password"]) == ("m", "s")
    client = connect(settings)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    kwargs = pool.connection_kwargs
    assert (kwargs["username"], kwargs["password"], kwargs["db"]) == ("u", "p@ss", 2)
    ports = [s.connection_pool.connection_kwargs["port"] for s in pool.sentinel_manager.sentinels]
    assert ports == [1, 26379]
    client.close()


def test_celery_and_redis_spell_a_socket_differently() -> None:
    settings = settings_of("unix:///run/valkey.sock?db=1")
    assert celery_url(settings) == "redis+socket:///run/valkey.sock?virtual_host=1"
    assert celery_options(settings) == {}
    with connect(settings) as client:
        assert isinstance(client, redis.Redis)
        assert client.connection_pool.connection_kwargs["path"] == "/run/valkey.sock"
