"""An app behind the worker of the API, in a thread of this process, and clients on the wire."""

import os
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flask import Flask
from gunicorn.config import Config
from gunicorn.glogging import Logger

from callslip.api.server.answering import Response, wsgi
from callslip.api.server.worker import Worker
from callslip.config.settings import ApiSettings

SECONDS = 10.0
"""How long a test waits for what comes at once."""


@dataclass(frozen=True)
class Served:
    """The worker and its address."""

    worker: Worker
    address: tuple[str, int]

    def connect(self, *, receive_buffer: int = 0) -> socket.socket:
        """A connection, with a small receive buffer if it is to read slowly."""
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(SECONDS)
        client.connect(self.address)
        return client

    def exchange(self, request: bytes) -> bytes:
        """All that the server sends for these bytes until it closes the connection."""
        with self.connect() as client:
            client.sendall(request)
            return rest(client)


@contextmanager
def served(app: Flask, api: ApiSettings) -> Iterator[Served]:
    """Serve the app with two threads."""
    config = Config()
    config.set("threads", 2)
    config.set("worker_connections", api.connections)
    config.set("keepalive", api.keep_alive_seconds)
    config.set("sendfile", False)
    config.set("graceful_timeout", 1)
    config.set("loglevel", "critical")
    before, wsgi.Response = wsgi.Response, Response
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        worker = Worker(0, os.getppid(), [listener], None, 1.0, config, Logger(config))
        worker._settings = api
        worker.wsgi, worker.tpool = app, worker.get_thread_pool()
        worker.poller = selectors.DefaultSelector()
        worker.method_queue.init()
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield Served(worker, listener.getsockname())
        finally:
            worker.handle_exit(None, None)
            thread.join()
            worker.tmp.close()
            wsgi.Response = before


def rest(client: socket.socket) -> bytes:
    """What arrives until the connection ends."""
    blocks = bytearray()
    try:
        while block := client.recv(1 << 16):
            blocks += block
    except ConnectionError:
        pass  # reset: the server closed it with bytes unread
    return bytes(blocks)
