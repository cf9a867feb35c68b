"""HTTP to checked addresses only: a URL from outside must not lead into the server's own network.

The transport resolves a host name once, checks all its addresses, and connects to a checked
address: a later change of the DNS name has no effect. Each redirect is checked in the same way. The
certificate is still checked against the name.
"""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from callslip.errors import AddressNotAllowed, SourceDown
from callslip.http.transport import direct

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

Resolve = Callable[[str, int], Sequence[str]]
"""Returns every address of a host, in the order of the attempts."""

_NAT64 = ip_network("64:ff9b::/96")
"""IPv6 addresses that lead to the IPv4 address in their last four bytes."""


_NOT_PUBLIC = tuple(map(ip_network, ("fec0::/10", "192.0.0.0/24", "192.88.99.0/24")))
"""Networks that `ipaddress` calls global, all or in part: site-local addresses (RFC 3879), protocol
assignments (RFC 6890) and the relays of 6to4 (RFC 7526)."""


def resolve(host: str, port: int) -> list[str]:
    """Return every address of a host once; raise SourceDown if there is none."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceDown(f"{host!r} has no address: {error}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def network_of(address: str) -> str:
    """The address of a client; of IPv6 its network of 64 bits: one machine has all its addresses.

    Of an IPv4 client of a server that listens on `::` it is the IPv4 address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))


def is_allowed(address: str, allowed: Sequence[Network]) -> bool:
    """Whether the address is public or in one of the additionally allowed networks."""
    return all(
        _is_public(one) or any(one in network for network in allowed)
        for one in _led_to(ip_address(address.partition("%")[0]))
    )


def _led_to(address: Address) -> list[Address]:
    """The address and, for a tunnel address, the addresses that it leads to."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner: list[Address] = []
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFF_FFFF)]
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    return [address, *inner]


def _is_public(address: Address) -> bool:
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or any(address in network for network in _NOT_PUBLIC)
    )


class CheckedTransport(httpx.BaseTransport):
    """Sends each request to a checked address."""

    def __init__(self, allowed: Sequence[Network], resolver: Resolve = resolve) -> None:
        self._allowed, self._resolve = allowed, resolver
        self._inner = direct()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raise AddressNotAllowed before any data is sent."""
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        addresses = self._resolve(host, port)
        for address in addresses:
            if not is_allowed(address, self._allowed):
                raise AddressNotAllowed(f"{host!r} leads to {address}, which is not public")
        failed: Exception | None = None
        for address in addresses:
            try:
                return self._inner.handle_request(_to(request, address, host))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error
        raise failed or SourceDown(f"{host!r} has no address")

    def close(self) -> None:
        """Close every connection."""
        self._inner.close()


def _to(request: httpx.Request, address: str, host: str) -> httpx.Request:
    """The request with an address for the name; Host header and TLS check keep the name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=request.extensions | {"sni_hostname": host},
    )
