"""The client class with all methods."""

from callslip.client._async.chunks import Chunks
from callslip.client._async.collections import Collections
from callslip.client._async.following import Following
from callslip.client._async.memory import Memory
from callslip.client._async.searching import Searching
from callslip.client._async.service import Service


class AsyncClient(Chunks, Collections, Following, Searching, Memory, Service):
    """A server, for those who await.

    async with AsyncClient() as client:
        found = await client.search("main", "how long is parental leave?", top=3)
    """
