"""What each kind of reranker does when its server, its file or its time fails it."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_server import free_port
from rerank_parts import DictCache, RerankServer, write_cross_encoder

from callslip.config.sections.ranking import RerankSettings
from callslip.errors import RerankerDown, SettingsError
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.local import E5Embedder
from callslip.models.rerankers.api import THREADS, RerankApi
from callslip.models.rerankers.cross_encoder import CrossEncoder
from callslip.models.rerankers.late_interaction import MaxSimReranker

SECRET = "sesame-4711"
PASSAGES = ["a grant", "a volcano", "a harbour"]


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer() as made:
        yield made


def api(url: str, **values: Any) -> RerankApi:
    return RerankApi(
        RerankSettings.model_validate(
            {"provider": "api", "url": url, "api_key": SECRET, "model": "m", **values}
        )
    )


def answering(body: Any, status: int = 200) -> Callable[[Any, Any], None]:
    return lambda handler, _: handler.say(status, body)


def results(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": i, "relevance_score": score} for i, score in pairs]}


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_a_busy_server_may_answer_later(server: RerankServer, status: int) -> None:
    server.fault = answering({"error": "a grant"}, status)
    with pytest.raises(RerankerDown, match=rf"status {status}(\n|$)"):
        api(server.url()).scores("grant", PASSAGES, 5)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_a_server_that_refuses_is_an_error_of_the_settings(
    server: RerankServer, status: int
) -> None:
    server.fault = answering({"error": "a grant"}, status)
    with pytest.raises(SettingsError, match=rf"status {status}(\n|$)") as caught:
        api(server.url()).scores("grant", PASSAGES, 5)
    assert "a grant" not in caught.value.detail


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (b"<html>", "no JSON"),
        (b'{"results": [{"index": 0, "rel', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"9" * 5000, "no JSON"),
        ({"data": []}, "no list of results"),
        ("results", "no list of results"),
        ({"results": {"0": 1}}, "no list of results"),
        ({"results": [1, 2, 3]}, "no object"),
        (results((0, 0.5), (1, 0.5)), "2 scores for 3 passages"),
        (results(), "0 scores for 3 passages"),
        (results((0, 0.5), (1, 0.5), (3, 0.5)), "an index that no passage has"),
        (results((0, 0.5), (1, 0.5), (-1, 0.5)), "an index that no passage has"),
        (results((0, 0.5), (1, 0.5), (1, 0.5)), "or one twice"),
        (results((0, 0.5), (1, 0.5), (True, 0.5)), "an index that no passage has"),
        (results(("0", 0.5), (1, 0.5), (2, 0.5)), "an index that no passage has"),
        (results((0, float("nan")), (1, 0.5), (2, 0.5)), "no finite number"),
        (results((0, float("inf")), (1, 0.5), (2, 0.5)), "no finite number"),
        (results((0, 10**400), (1, 0.5), (2, 0.5)), "no finite number"),
        (results((0, "0.5"), (1, 0.5), (2, 0.5)), "no finite number"),
        (results((0, None), (1, 0.5), (2, 0.5)), "no finite number"),
    ],
)
def test_an_answer_that_is_none_is_named(server: RerankServer, body: Any, reply: str) -> None:
    server.fault = answering(body)
    with pytest.raises(RerankerDown, match=reply):
        api(server.url()).scores("grant", PASSAGES, 5)


def test_an_answer_cut_off_is_a_server_that_does_not_answer(server: RerankServer) -> None:
    def cut(handler: Any, found: Any) -> None:
        answer = json.dumps({"results": found}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer[:20])
        handler.close_connection = True

    server.fault = cut
    with pytest.raises(RerankerDown, match="RemoteProtocolError"):
        api(server.url()).scores("grant", PASSAGES, 5)


def test_an_answer_without_end_is_not_read_to_its_end(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.models.rerankers.api.MOST_BYTES", 100_000)

    def flood(handler: Any, _: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _n in range(100_000):
            handler.wfile.write(b" " * 10_000)

    server.fault = flood
    with pytest.raises(RerankerDown, match="no JSON"):
        api(server.url()).scores("grant", PASSAGES, 20)


def drip(handler: Any, _: Any) -> None:
    """An answer of a byte now and then, each in time by itself."""
    handler.send_response(200)
    handler.end_headers()
    for _n in range(100):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def slow(handler: Any, found: Any) -> None:
    time.sleep(1)
    handler.say(200, {"results": found})


@pytest.mark.parametrize("late", [slow, drip])
def test_a_slow_server_is_given_up_in_time(
    server: RerankServer, late: Callable[[Any, Any], None]
) -> None:
    server.fault = late
    start = time.monotonic()
    with pytest.raises(RerankerDown):
        api(server.url()).scores("grant", PASSAGES, 0.3)
    assert time.monotonic() - start < 0.8


def test_callers_of_a_server_that_hangs_do_not_pile_up(server: RerankServer) -> None:
    before = threading.active_count()
    server.fault = slow
    reranker = api(server.url())
    for _ in range(3 * THREADS):
        with pytest.raises(RerankerDown):
            reranker.scores("grant", PASSAGES, 0.02)
    server.fault = None
    # Each request in the air has a thread here and, as this process is the server too, one there.
    assert threading.active_count() - before <= THREADS + 3 * THREADS
    time.sleep(1.2)
    assert reranker.scores("grant", PASSAGES, 5)[0] == 1


def test_nobody_at_the_address_is_a_server_that_does_not_answer() -> None:
    with pytest.raises(RerankerDown, match="ConnectError"):
        api(f"http://127.0.0.1:{free_port()}/rerank").scores("grant", PASSAGES, 5)


@pytest.mark.parametrize("url", ["", "rerank", "ftp://host/x", "http://", "http://[::1"])
def test_an_address_that_is_none_is_an_error_of_the_settings(url: str) -> None:
    with pytest.raises(SettingsError, match=r"rerank\.url"):
        api(url)


def test_the_key_is_sent_and_never_shown(
    server: RerankServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = server.url().replace("127", "user:" + SECRET + "@127", 1) + "?key=" + SECRET
    server.fault = answering({"error": SECRET}, 429)
    with pytest.raises(RerankerDown) as caught:
        api(server.url()).scores("grant", PASSAGES, 5)
    assert server.requests[0][0]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in caught.value.detail
    with pytest.raises(RerankerDown) as caught:
        api(url).scores("grant", PASSAGES, 5)
    assert SECRET not in caught.value.detail + api(url).name
    assert f"Bearer {SECRET}" not in caplog.text


def test_no_proxy_is_taken_from_the_environment(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert api(server.url()).scores("grant", PASSAGES, 5)[0] == 1


def test_each_protocol_is_spoken_as_its_servers_want_it(server: RerankServer) -> None:
    api(server.url()).scores("grant", PASSAGES, 5)
    api(server.url("tei"), protocol="tei").scores("grant", ["x"] * 40, 5)
    cohere, *tei = (request for _, request in server.requests)
    assert cohere == {"model": "m", "query": "grant", "documents": PASSAGES, "top_n": 3}
    assert [len(request["texts"]) for request in tei] == [32, 8]
    assert tei[0].keys() == {"query", "texts", "truncate"}


def encoder(folder: Path, **values: Any) -> CrossEncoder:
    files = {"onnx_file": folder / "overlap.onnx", "tokenizer_file": folder / "tokenizer.json"}
    return CrossEncoder(RerankSettings.model_validate({"provider": "onnx", **files, **values}))


def test_a_missing_file_is_known_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing: .*overlap\.onnx"):
        encoder(tmp_path)


@pytest.mark.parametrize("file", ["overlap.onnx", "tokenizer.json"])
def test_a_file_of_another_kind_is_named(tmp_path: Path, file: str) -> None:
    write_cross_encoder(tmp_path)
    (tmp_path / file).write_bytes(b"{}")
    with pytest.raises(SettingsError, match=file):
        encoder(tmp_path).scores("grant", PASSAGES, 5)


def test_a_model_of_other_inputs_is_named(tmp_path: Path) -> None:
    write_cross_encoder(
        tmp_path, inputs=["input_ids", "attention_mask", "token_type_ids", "pixels"]
    )
    with pytest.raises(SettingsError, match="other inputs"):
        encoder(tmp_path).scores("grant", PASSAGES, 5)


def test_a_model_of_three_classes_is_no_cross_encoder(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, logits=3)
    with pytest.raises(SettingsError, match=r"shape \(3, 3\)"):
        encoder(tmp_path).scores("grant", PASSAGES, 5)


def test_a_model_whose_vocabulary_is_another_fails_with_its_reason(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["grant"] = 4000
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(SettingsError, match="failed on its input"):
        encoder(tmp_path).scores("grant", PASSAGES, 5)


def test_a_score_that_is_no_number_is_not_passed_on(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, bias=float("nan"))
    with pytest.raises(RerankerDown, match="not a number"):
        encoder(tmp_path).scores("grant", PASSAGES, 5)


@pytest.mark.long
def test_a_run_of_the_network_is_ended_when_the_time_is_over(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, detour=1500)
    reranker = encoder(tmp_path)
    reranker.scores("grant", PASSAGES, 60)  # loads
    start = time.monotonic()
    reranker.scores("grant", PASSAGES, 60)
    whole = time.monotonic() - start
    start = time.monotonic()
    with pytest.raises(RerankerDown, match="read 0 of 3 passages"):
        reranker.scores("grant", PASSAGES, whole / 8)
    assert time.monotonic() - start < 0.75 * whole


@pytest.mark.parametrize("logits", [1, 2])
def test_a_logit_becomes_a_probability(tmp_path: Path, logits: int) -> None:
    write_cross_encoder(tmp_path, logits=logits)
    scores = encoder(tmp_path).scores("grant", ["grant", "door"], 5)
    # One logit of 8 against 0, or two of -4 and 4 against 0 and 0: the sigmoid of 8, and a half.
    assert scores == pytest.approx([1 / (1 + np.exp(-8)), 0.5], abs=1e-6)


def test_padding_and_batches_do_not_change_a_score(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path)
    reranker = encoder(tmp_path)
    passages = ["grant " * (n % 90 + 1) + "door" for n in range(60)]
    together = reranker.scores("grant parents", passages, 60)
    alone = [reranker.scores("grant parents", [passage], 60)[0] for passage in passages]
    assert together == pytest.approx(alone, abs=1e-6)


@pytest.fixture(scope="module")
def embedder(models_dir: Path) -> E5Embedder:
    return E5Embedder(models_dir, Tokenizer(models_dir))


def test_what_was_read_before_the_time_was_over_is_not_read_again(embedder: E5Embedder) -> None:
    cache = DictCache()
    reranker = MaxSimReranker(embedder, cache)
    passages = [f"papers {n} of the closed stacks " * 8 for n in range(16)]
    embedder.query("stacks")  # loads
    with pytest.raises(RerankerDown) as caught:
        reranker.scores("papers", passages, 0.05)
    read = len(cache.kept)
    assert 0 < read < 16
    assert caught.value.detail == f"the reranker read {read} of 16 passages in 0.05 s"
    scores = reranker.scores("papers", passages, 60)
    assert len(cache.kept) == 16
    assert scores == reranker.scores("papers", passages, 60)


def test_late_interaction_is_the_mean_of_the_nearest_cosines(embedder: E5Embedder) -> None:
    request = embedder.query_tokens("closed stacks")
    passage = embedder.passage_tokens("The stacks of the library are closed.")
    np.testing.assert_allclose(np.linalg.norm(request, axis=1), 1, atol=1e-5)
    expected = np.mean([max(float(a @ p) for p in passage) for a in request])
    (score,) = MaxSimReranker(embedder, DictCache()).scores(
        "closed stacks", ["The stacks of the library are closed."], 30
    )
    assert 2 * score - 1 == pytest.approx(expected, abs=1e-5)


def test_tokens_of_prefix_and_ends_have_no_vector(embedder: E5Embedder, models_dir: Path) -> None:
    text = "closed stacks of a library"
    assert len(embedder.query_tokens(text)) == Tokenizer(models_dir).count(text)
    assert len(embedder.passage_tokens(text)) == Tokenizer(models_dir).count(text)
