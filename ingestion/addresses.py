"""Where a URL from outside may lead: to the internet, not into the network around this machine.

A name is resolved once, the address is checked, and the connection goes to that very address: a
name that answers otherwise the second time (DNS rebinding) leads nowhere else.
"""

import ipaddress
import socket
from collections.abc import Sequence

import httpx

from callslip.errors import AddressNotAllowed, InvalidRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def networks(text: str) -> tuple[Network, ...]:
    """The networks that a setting names, e.g. `127.0.0.0/8, 10.1.0.0/16`; ValueError otherwise."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


def check_url(url: str) -> httpx.URL:
    """A URL that could be called; InvalidRequest for one without a host or of another scheme."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise InvalidRequest("url is no URL") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequest("url must begin with https:// or http:// and name a host")
    if parsed.userinfo:
        raise InvalidRequest("url holds a user name or password", hint="Leave it out.")
    return parsed


def resolve(host: str, port: int, allowed: Sequence[Network]) -> str:
    """The address to connect to. AddressNotAllowed where any address of the name is inside.

    OSError where the name has no address.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not may_reach(ipaddress.ip_address(address.partition("%")[0]), allowed):
            raise AddressNotAllowed(f"{host} is at {address}, which is not on the internet")
    return addresses[0]


def may_reach(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the address is on the internet, or in a network that the settings allow."""
    real = _embedded(address)
    if any(real in network for network in allowed if network.version == real.version):
        return True
    return real.is_global and not real.is_multicast


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


class GuardedTransport(httpx.BaseTransport):
    """HTTP to addresses that may be reached; the certificate is still that of the name."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send to the checked address of the request's host."""
        url = request.url
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            address = resolve(host.strip("[]"), port, self._allowed)
        except (OSError, UnicodeError):
            raise httpx.ConnectError(f"{host} has no address", request=request) from None
        pinned = httpx.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=dict(request.extensions) | {"sni_hostname": host},
        )
        return self._inner.handle_request(pinned)

    def close(self) -> None:
        """Close every connection."""
        self._inner.close()
