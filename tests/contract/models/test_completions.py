"""What a language model is asked for and answers, over HTTP, and every fault of its server."""

import logging
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from chroma_server import free_port
from openai_server import (
    OpenAIServer,
    Scripted,
    Sent,
    cut_off,
    echo,
    fails,
    huge,
    raw,
    refuses,
    reply,
    slow,
    trickle,
)
from pydantic import BaseModel, ConfigDict, SecretStr

from callslip.config.settings import LlmSettings
from callslip.errors import BadReply, InvalidRequest, LanguageModelDown, SettingsError
from callslip.models.language_models.client import MOST_BYTES, LanguageModel
from callslip.models.language_models.completion import Completion, Usage, estimated, prompt_tokens

pytest_plugins = ["openai_fixtures"]

INSTRUCTION, CONTENT = "Answer in JSON.", "The SECRETWORD is a swallow."


class Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    numbers: list[int] = []


def settings(url: str, key: str = "key") -> LlmSettings:
    return LlmSettings(base_url=url, model="small", api_key=SecretStr(key))


def ask(
    server: OpenAIServer | str, timeout: float = 5.0, content: str = CONTENT
) -> Completion[Said]:
    url = server if isinstance(server, str) else server.url
    model = LanguageModel(settings(url))
    return model.complete(INSTRUCTION, content, Said, max_tokens=50, timeout=timeout)


def test_the_model_is_asked_once_and_its_json_is_read(openai_server: OpenAIServer) -> None:
    openai_server.script.append(reply({"text": "20일", "numbers": [1]}, usage=(31, 7)))
    found = ask(openai_server)
    assert found == Completion(Said(text="20일", numbers=[1]), Usage(31, 7), "small-2026", "stop")
    (request,) = openai_server.requests
    assert request.body == {
        "model": "small",
        "temperature": 0,
        "max_tokens": 50,
        "messages": [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": CONTENT},
        ],
    }
    assert request.headers["Authorization"] == "Bearer key"


@pytest.mark.parametrize(
    "content",
    [
        '```json\n{"text": "x"}\n```',
        '```\n{"text": "x"}\n```\n',
        '```json {"text": "x"}```',
        '\n {"text": "x"}  ',
    ],
)
def test_a_fence_around_the_json_is_taken_off(openai_server: OpenAIServer, content: str) -> None:
    openai_server.script.append(reply(content))
    assert ask(openai_server).value == Said(text="x")


@pytest.mark.parametrize(
    ("sent", "output"),
    [
        (reply("The SECRETWORD is"), "is not JSON"),
        (reply('{"text": "SECRETWORD'), "is not JSON"),
        (reply("[" * 100_000), "is not JSON"),
        (reply({"text": "SECRETWORD", "SECRETWORD": 1}), "extra_forbidden"),
        (reply({"numbers": []}), "missing"),
        (reply({"text": ["SECRETWORD"]}), "string_type"),
        (reply(["SECRETWORD"]), "requested schema"),
        (reply({"text": "x"}, finish="length"), "is longer than 50 tokens"),
        (refuses(), "is a refusal"),
        (reply({"text": "x"}, finish="content_filter"), "is a refusal"),
        (reply(None), "is empty"),
        (reply("  \n"), "is empty"),
        (raw(b'{"choices": [{"message": null}], "usage": null}'), "is empty"),
        (raw(b'{"choices": []}'), "protocol"),
        (raw(b"<html>SECRETWORD</html>"), "protocol"),
        (raw(b"\xff\xfe"), "protocol"),
        (raw(b"[" * 100_000), "protocol"),
        (raw(b""), "protocol"),
        (echo, "is not JSON"),
    ],
)
def test_a_reply_of_no_use_says_why_quotes_nothing_and_has_its_cost(
    openai_server: OpenAIServer, sent: Scripted, output: str, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.script.append(sent)
    with caplog.at_level(logging.DEBUG), pytest.raises(BadReply, match=output) as raised:
        ask(openai_server)
    error = raised.value
    assert "SECRETWORD" not in error.detail + caplog.text
    assert "SECRETWORD" not in "".join(traceback.format_exception(error))
    assert error.input_tokens in (100, prompt_tokens(INSTRUCTION, CONTENT))
    assert 0 <= error.output_tokens <= 50


def test_a_reply_of_a_hundred_megabytes_is_not_swallowed(openai_server: OpenAIServer) -> None:
    openai_server.script.append(huge(100))
    with pytest.raises(BadReply, match="larger than") as raised:
        ask(openai_server)
    assert raised.value.output_tokens == 50
    time.sleep(0.2)
    assert openai_server.bytes_sent < MOST_BYTES + 16_000_000  # and what buffers of sockets hold


def test_a_compressed_reply_is_not_unpacked(openai_server: OpenAIServer) -> None:
    openai_server.script.append(raw(b"\x1f\x8b" + b"\0" * 100, **{"Content-Encoding": "gzip"}))
    with pytest.raises(BadReply, match="protocol"):
        ask(openai_server)
    assert openai_server.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("given", [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": 10**12}])
def test_what_the_server_does_not_count_is_estimated(
    openai_server: OpenAIServer, given: dict[str, int] | None
) -> None:
    choice = b'{"message": {"content": "{\\"text\\": \\"abcdef\\"}"}, "finish_reason": "stop"}'
    usage = b"null" if given is None else str(given).replace("'", '"').encode()
    openai_server.script.append(raw(b'{"choices": [' + choice + b'], "usage": ' + usage + b"}"))
    found = ask(openai_server)
    assert found.usage == Usage(prompt_tokens(INSTRUCTION, CONTENT), 6)
    assert found.model == "small"


def test_an_estimate_of_tokens_is_a_third_of_the_bytes() -> None:
    assert (estimated(""), estimated("abcd"), estimated("육아휴직")) == (0, 2, 4)
    assert estimated("\ud800") == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (500, LanguageModelDown),
        (503, LanguageModelDown),
        (429, LanguageModelDown),
        (307, SettingsError),
        (401, SettingsError),
        (403, SettingsError),
        (404, SettingsError),
        (400, InvalidRequest),
        (413, InvalidRequest),
    ],
)
def test_a_refusal_is_a_named_error_that_quotes_no_text(
    openai_server: OpenAIServer, status: int, kind: type[Exception]
) -> None:
    openai_server.script.append(fails(status, code="context_length_exceeded"))
    output = rf"status {status} \(context_length_exceeded\)"
    with pytest.raises(kind, match=output) as raised:
        ask(openai_server)
    assert "SECRETWORD" not in str(raised.value)
    assert len(openai_server.requests) == 1


def test_a_redirect_is_not_followed(openai_server: OpenAIServer) -> None:
    there = {"Location": f"{openai_server.url}/chat/completions"}
    openai_server.script.append(Sent(b"", 307, there))
    openai_server.always = reply({"text": "x"})
    with pytest.raises(SettingsError, match="status 307"):
        ask(openai_server)
    assert len(openai_server.requests) == 1


def test_the_query_of_an_address_is_sent_and_not_shown(openai_server: OpenAIServer) -> None:
    openai_server.script += [reply({"text": "x"}), fails(503)]
    url = f"{openai_server.url}?version=3&key=a%20b"
    assert ask(url).value == Said(text="x")
    assert httpx.URL(openai_server.requests[0].path).params == httpx.QueryParams(
        version=3, key="a b"
    )
    with pytest.raises(LanguageModelDown) as raised:
        ask(url)
    assert "key" not in str(raised.value)


def test_a_busy_server_says_when_to_come_back(openai_server: OpenAIServer) -> None:
    openai_server.script += [fails(429, retry_after=17), fails(429, retry_after=86400), fails(429)]
    for seconds in (17, 600, LanguageModelDown.retry_after):
        with pytest.raises(LanguageModelDown) as raised:
            ask(openai_server)
        assert raised.value.retry_after == seconds


def test_a_server_that_is_not_there_may_come_back() -> None:
    with pytest.raises(LanguageModelDown, match="does not answer: ConnectError"):
        ask(f"http://127.0.0.1:{free_port()}/v1")


def test_an_answer_that_breaks_off_may_come_whole(openai_server: OpenAIServer) -> None:
    openai_server.script.append(cut_off(reply({"text": "x"})))
    with pytest.raises(LanguageModelDown, match="does not answer: RemoteProtocolError"):
        ask(openai_server)


ANSWER = reply({"text": "x" * 300})


@pytest.mark.parametrize(
    "sent",
    [
        slow(10, ANSWER),
        trickle(ANSWER, pace=0.1),
        trickle(ANSWER, pace=0.1, head=True),
        slow(0.8, trickle(ANSWER, pace=0.3)),
    ],
)
def test_a_call_ends_in_time_however_slowly_the_server_sends(
    openai_server: OpenAIServer, sent: Sent
) -> None:
    openai_server.script.append(sent)
    began = time.monotonic()
    with pytest.raises(LanguageModelDown, match="did not answer in 1 s"):
        ask(openai_server, timeout=1.0)
    assert time.monotonic() - began < 2.0
    assert eventually(lambda: not any(t.name == "post" for t in threading.enumerate()))


def test_a_server_that_is_slow_but_in_time_is_heard(openai_server: OpenAIServer) -> None:
    openai_server.script.append(slow(0.3, trickle(reply({"text": "x"}), pace=0.001, head=True)))
    assert ask(openai_server).value == Said(text="x")


def test_one_connection_serves_calls_one_after_the_other(openai_server: OpenAIServer) -> None:
    openai_server.always = reply({"text": "x"})
    model = LanguageModel(settings(openai_server.url))
    for _ in range(5):
        model.complete(INSTRUCTION, CONTENT, Said, max_tokens=50, timeout=5)
    assert (len(openai_server.requests), openai_server.connections) == (5, 1)


def test_a_call_that_was_given_up_disturbs_no_other(openai_server: OpenAIServer) -> None:
    openai_server.always = lambda request: (
        trickle(ANSWER, pace=0.05) if "slow" in request.content else echo(request)
    )
    model = LanguageModel(settings(openai_server.url))

    def one(n: int) -> str:
        content = f'{{"text": "{"slow" if n % 4 == 0 else n}"}}'
        try:
            return model.complete("", content, Said, max_tokens=50, timeout=2).value.text
        except LanguageModelDown:
            return "down"

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(one, range(40))) == [
            "down" if n % 4 == 0 else str(n) for n in range(40)
        ]


@pytest.mark.parametrize(
    "url", ["", "localhost:80", "ftp://x/v1", "http://", "http://x:port/v1", "http://xn--/"]
)
def test_an_address_that_is_none_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"llm\.base_url"):
        ask(url)


def test_a_key_that_no_header_takes_is_a_wrong_setting_and_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"llm\.api_key") as raised:
        LanguageModel(settings("http://127.0.0.1/v1", key="schlüssel\n"))
    assert "schl" not in str(raised.value)


def test_text_that_is_no_unicode_is_sent_as_question_marks(openai_server: OpenAIServer) -> None:
    openai_server.script.append(reply({"text": "x"}))
    ask(openai_server, content="a\ud800b")
    assert openai_server.requests[0].content == "a?b"


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()
