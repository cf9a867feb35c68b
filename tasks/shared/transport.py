"""Celery's connection to a Redis broker, which makes one client instead of one for each message."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from kombu.transport.redis import Channel, Transport


class OneClientChannel(Channel):
    """A channel that uses one client of its pool for all messages that it sends and acknowledges.

    Kombu makes a client for each, which takes a quarter of the time of sending. A client may be
    shared: it takes a connection from the pool for each command.
    """

    _sender: redis.Redis | None = None

    @contextmanager
    def conn_or_acquire(self, client: redis.Redis | None = None) -> Iterator[redis.Redis]:
        """Yield the client, or else the one of the channel."""
        if client is None:
            client = self._sender
            if client is None or client.connection_pool is not self.pool:  # new after a fork
                make = self._create_client
                client = self._sender = make()  # type: ignore[no-untyped-call]  # kombu has no types
        yield client


class OneClientTransport(Transport):
    """Kombu's transport for `redis://` with these channels."""

    Channel = OneClientChannel


NAME = f"{__name__}:{OneClientTransport.__name__}"
"""The transport's name in Celery's settings."""
