"""The report of a socket that nobody closed."""

import gc
import socket
import sys

import open_sockets
import pytest


def test_where_a_socket_was_made_that_nobody_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "__init__", socket.socket.__init__)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    open_sockets.follow()
    assert open_sockets.found() == ""
    with _new():
        pass
    cycle = [_new()]
    cycle.append(cycle)  # type: ignore[arg-type]
    del cycle
    gc.collect()
    text = open_sockets.found()
    assert text.count("was made at") == 1
    assert "in _new\n" in text
    assert open_sockets.found() == ""


def _new() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
