"""What the server receives and sends, in pieces of any size: bodies, deadlines, responses."""

import socket
import threading
import time
from contextlib import suppress

import pytest
from gunicorn.config import Config
from gunicorn.http.body import Body as GunicornBody
from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.unreader import IterUnreader
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.api.server.body import LONGEST_LINE, Body, BrokenChunks
from callslip.api.server.outgoing import BLOCK, Outgoing
from callslip.api.server.pace import Pace

PIECES = st.lists(st.integers(1, 40), min_size=1, max_size=30)

NEARLY_CHUNKS = st.lists(
    st.sampled_from(
        (
            *(b"3\r\nabc\r\n", b"A ;e=1\r\n0123456789\r\n", b"0\r\n\r\n", b"0\r\nT: 1\r\n\r\n"),
            *(b"3\nabc\n", b"zz\r\n", b"-1\r\n", b"1\r\nab\r\n", b"2\r\na", b"0x1\r\nA\r\n"),
            *(b"\r\n", b"\r", b"f"),
        )
    ),
    max_size=6,
).map(b"".join)


def fed(body: Body, sent: bytes, pieces: list[int]) -> tuple[bool, bytes]:
    """Whether the body is complete after these bytes, and what follows it."""
    received, at, complete = bytearray(), 0, False
    while at < len(sent) and not complete:
        for size in pieces:
            received += sent[at : at + size]
            at += size
            if complete := body.feed(received):
                break
    return complete, bytes(received) + sent[at:]


def content(body: Body) -> bytes:
    body.file.seek(0)
    with body.file:
        return body.file.read()


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.binary(max_size=9), PIECES)
def test_chunks_are_decoded_however_they_are_cut(
    chunks: list[bytes], following: bytes, pieces: list[int]
) -> None:
    sent = b"".join(b"%X\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    body = Body(None)
    assert fed(body, sent + b"0\r\n\r\n" + following, pieces) == (True, following)
    assert content(body) == b"".join(chunks)


@given(st.binary(min_size=1, max_size=90), st.binary(max_size=9), PIECES)
def test_a_counted_body_ends_at_its_length(
    sent: bytes, following: bytes, pieces: list[int]
) -> None:
    body = Body(len(sent))
    assert fed(body, sent + following, pieces) == (True, following)
    assert content(body) == sent


@given(NEARLY_CHUNKS | st.binary(max_size=60), PIECES)
@settings(max_examples=300)
def test_what_the_server_accepts_as_chunks_gunicorn_reads_alike(
    sent: bytes, pieces: list[int]
) -> None:
    body = Body(None)
    try:
        complete, _ = fed(body, sent, pieces)
    except BrokenChunks:
        body.file.close()
        return
    decoded = content(body)
    if not complete:
        return
    request = type("Request", (), {"parse_headers": lambda *_, **__: [], "cfg": Config()})()
    reader = GunicornBody(ChunkedReader(request, IterUnreader([sent])))
    with suppress(NoMoreData, ParseException):
        assert reader.read() == decoded


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    body = Body(None)
    with body.file, pytest.raises(BrokenChunks):
        fed(body, b"1" * (3 * LONGEST_LINE), [100])
    body = Body(None)
    with body.file, pytest.raises(BrokenChunks):
        fed(body, b"0\r\n" + b"Trailer: 1\r\n" * 10_000, [100])


@given(st.floats(0.1, 20), st.integers(1, 10**6), st.floats(1.4, 8), st.integers(1, 200))
def test_a_steady_transfer_at_the_least_rate_never_expires(
    seconds: float, rate: int, faster: float, steps: int
) -> None:
    pace, now, step = Pace(seconds, rate, 0.0), 0.0, seconds / 4
    for _ in range(steps):
        now += step
        assert now < pace.deadline
        pace.moved(int(rate * faster * step) + 1, now)


@given(
    st.floats(0.1, 20),
    st.integers(1, 10**6),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 10**7)), max_size=40),
)
def test_what_moved_before_pays_for_no_pause(
    seconds: float, rate: int, moves: list[tuple[float, int]]
) -> None:
    """After any bytes at any time the deadline is one period away at most."""
    pace, now = Pace(seconds, rate, 0.0), 0.0
    for pause, count in moves:
        now += pause
        before = pace.deadline
        pace.moved(count, now)
        assert before <= pace.deadline or pace.deadline == now + seconds
        assert pace.deadline <= now + seconds
        if count >= seconds * rate:
            assert pace.deadline == now + seconds


def test_a_response_waits_for_its_reader_and_arrives_in_order() -> None:
    ours, theirs = socket.socketpair()
    woken = threading.Event()
    with ours, theirs:
        ours.setblocking(False)
        outgoing = Outgoing(ours, lambda: Pace(10, 1, time.monotonic()), woken.set)
        blocks = [bytes([n % 256]) * (n * 1000) for n in range(100)]
        for block in blocks:
            outgoing.sendall(block)  # nobody reads, and it does not block
        assert woken.is_set()
        assert outgoing.pace
        received = bytearray()
        while outgoing.flush() or outgoing.pace:
            received += theirs.recv(BLOCK)
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            while block := theirs.recv(BLOCK):
                received += block
        assert received == b"".join(blocks)
        outgoing.sendall(b"end")
        assert theirs.recv(3) == b"end"
        outgoing.close()


def test_a_writer_of_a_response_that_broke_off_gets_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        outgoing = Outgoing(ours, lambda: Pace(10, 1, time.monotonic()), lambda: None)
        outgoing.abort()
        with pytest.raises(BrokenPipeError):
            outgoing.sendall(b"more")
        outgoing.close()
