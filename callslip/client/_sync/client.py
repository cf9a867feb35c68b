"""Every call together."""

from callslip.client._sync.collections import Collections
from callslip.client._sync.following import Following
from callslip.client._sync.memory import Memory
from callslip.client._sync.searching import Searching
from callslip.client._sync.service import Service


class Client(Collections, Following, Searching, Memory, Service):
    """A desk, for those who await.

    with Client() as desk:
        found = desk.search("main", "how long is parental leave?", top=3)
    """
