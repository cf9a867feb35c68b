"""The client class with all methods."""

from callslip.client._sync.chunks import Chunks
from callslip.client._sync.collections import Collections
from callslip.client._sync.following import Following
from callslip.client._sync.memory import Memory
from callslip.client._sync.searching import Searching
from callslip.client._sync.service import Service


class Client(Chunks, Collections, Following, Searching, Memory, Service):
    """A server, for those who await.

    with Client() as client:
        found = client.search("main", "how long is parental leave?", top=3)
    """
