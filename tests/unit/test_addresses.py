"""Where a URL from outside may lead."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import AddressNotAllowed, InvalidRequest
from ingestion.addresses import check_url, may_reach, networks, resolve


@pytest.mark.parametrize(
    "inside",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.1"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"),
    ],
)
def test_addresses_inside_are_not_reached(inside: str) -> None:
    assert not may_reach(ipaddress.ip_address(inside), ())


@pytest.mark.parametrize("outside", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_addresses_on_the_internet_are_reached(outside: str) -> None:
    assert may_reach(ipaddress.ip_address(outside), ())


@given(st.ip_addresses(v=4))
def test_an_address_in_the_clothes_of_ipv6_is_judged_as_it_is(
    address: ipaddress.IPv4Address,
) -> None:
    dressed = ipaddress.IPv6Address(f"::ffff:{address}")
    assert may_reach(dressed, ()) == may_reach(address, ())


def test_a_network_that_the_settings_name_is_reached() -> None:
    allowed = networks("10.1.0.0/16, ::1/128")
    assert may_reach(ipaddress.ip_address("10.1.2.3"), allowed)
    assert may_reach(ipaddress.ip_address("::1"), allowed)
    assert not may_reach(ipaddress.ip_address("10.2.0.1"), allowed)


def test_one_address_inside_is_enough_to_refuse_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object, **__: object) -> list[object]:
        return [(0, 0, 0, "", ("8.8.8.8", 80)), (0, 0, 0, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with pytest.raises(AddressNotAllowed, match=r"name\.example is at 127\.0\.0\.1"):
        resolve("name.example", 80, ())
    assert resolve("name.example", 80, networks("127.0.0.0/8")) == "8.8.8.8"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://u:p@example.org/",
        "http://[::1",
        "javascript:alert(1)",
    ],
)
def test_what_is_no_url_to_call_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check_url(url)
