"""The page server is for this machine only."""

import socket
import urllib.error
import urllib.request

import pytest

from mcplan.view.server import PageServer, hosts


def test_it_serves_its_page_on_loopback():
    with PageServer("<p>hello</p>") as server:
        assert server.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.url, timeout=5) as answer:
            assert answer.read() == b"<p>hello</p>"


def test_it_does_not_listen_on_other_addresses():
    with PageServer("x") as server, socket.socket() as probe:
        probe.settimeout(2)
        # 127.0.0.2 is this machine too, so a server on all interfaces would answer there
        assert probe.connect_ex(("127.0.0.2", server.port)) != 0


def test_it_refuses_a_foreign_host_name():
    with PageServer("secret") as server:
        request = urllib.request.Request(server.url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(request, timeout=5)
        refused.value.close()


def test_a_taken_port_is_an_error_and_a_closed_one_is_free_again():
    with PageServer("x") as server, pytest.raises(OSError, match="in use"):
        PageServer("y", server.port)
    with PageServer("y", server.port) as again:
        assert again.port == server.port


def test_an_address_of_port_80_may_name_none():
    assert hosts(80) == ("127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost")
    assert hosts(8000) == ("127.0.0.1:8000", "localhost:8000")
