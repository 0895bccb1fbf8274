"""Fetching from real servers: pinned, checked at every hop, bounded."""

import gzip
import itertools
import socket
import ssl
import urllib.parse
import zlib
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from harness.net import (
    Answer,
    Authority,
    Responder,
    Seen,
    Serve,
    Server,
    local_rules,
    names,
    redirect,
    reply,
)
from lorimer.core.errors import ConfigError
from lorimer.safety.network import (
    Fetched,
    FetchLimits,
    NetworkRefused,
    NetworkRules,
    Why,
    check_url,
    decoding,
    fetch,
)
from lorimer.safety.network.fetching import joined

pytestmark = pytest.mark.anyio
HERE = names({name: ["127.0.0.1"] for name in ("a.example", "b.example", "one.two.example")})


async def get(url: str, rules: NetworkRules, **options: Any) -> Fetched:
    return await fetch(url, rules=rules, **{"resolver": HERE, **options})


async def refused(url: str, rules: NetworkRules, **options: Any) -> NetworkRefused:
    with pytest.raises(NetworkRefused) as info:
        await get(url, rules, **options)
    assert info.value.next, info.value
    return info.value


async def test_an_answer_comes_back(serve: Serve) -> None:
    server = serve(lambda _: reply(b"hello", headers=["X-One: 1", "Set-Cookie: a=b"]))
    found = await get(f"http://A.example:{server.port}/x/../p?q=1#f", local_rules(server))
    assert (found.status, found.body, found.header("x-one")) == (200, b"hello", "1")
    assert found.url == f"http://a.example:{server.port}/p?q=1"
    assert [(h.method, h.status, h.address) for h in found.hops] == [("GET", 200, "127.0.0.1")]
    assert found.changes
    (request,) = server.seen
    assert request.line == "GET /p?q=1 HTTP/1.1"
    assert request.headers["host"] == f"a.example:{server.port}"


async def test_a_body_is_sent_as_it_is(serve: Serve) -> None:
    server = serve(lambda seen: reply(seen.body[::-1], status="201 Created"))
    found = await get(
        f"http://a.example:{server.port}/", local_rules(server), method="post",
        body=b"\x00\xffabc", headers={"Content-Type": "application/x", "X-Sign": "s"},
    )  # fmt: skip
    assert (found.status, found.body) == (201, b"cba\xff\x00")
    assert server.seen[0].headers["x-sign"] == "s"
    assert server.seen[0].headers["content-length"] == "5"


async def test_an_error_status_is_an_answer(serve: Serve) -> None:
    server = serve(lambda _: reply(b"no", status="404 Not Found"))
    assert (await get(f"http://a.example:{server.port}/", local_rules(server))).status == 404


async def test_head_and_no_content_have_no_body(serve: Serve) -> None:
    server = serve(
        lambda seen: (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: gzip\r\n\r\n"
            if seen.line.startswith("HEAD")
            else reply(status="204 No Content", length=False)
        )
    )
    for method in ("HEAD", "DELETE"):
        found = await get(f"http://a.example:{server.port}/", local_rules(server), method=method)
        assert found.body == b""


async def test_without_a_rule_loopback_is_not_reached(serve: Serve) -> None:
    server = serve(lambda _: reply(b"secret"))
    fault = await refused(f"http://a.example:{server.port}/", NetworkRules(ports=(server.port,)))
    assert (fault.why, fault.host, fault.sent) == (Why.ADDRESS, "a.example", False)
    assert server.connections == 0


async def test_the_connection_goes_to_the_checked_address(serve: Serve) -> None:
    """The name changes its address after the check (DNS rebinding): one look-up, and no other."""
    inner = serve(lambda _: reply(b"inner"), address="127.0.0.2")
    asked = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.3"]

    rules = NetworkRules(allow_networks=("127.0.0.2/32",), ports=(inner.port,))
    url = f"http://rebind.example:{inner.port}/"
    found = await get(url, rules, resolver=resolver)
    assert (found.body, asked) == (b"inner", ["rebind.example"])
    assert found.hops[0].address == "127.0.0.2"
    fault = await refused(url, rules, resolver=resolver)  # the next look-up is checked again
    assert fault.why is Why.ADDRESS
    assert len(inner.seen) == 1


async def test_the_next_address_is_tried_when_one_does_not_answer(serve: Serve) -> None:
    server = serve(lambda _: reply(b"ok"), address="127.0.0.2")
    resolver = names({"a.example": ["127.0.0.1", "127.0.0.2"]})
    found = await get(f"http://a.example:{server.port}/", local_rules(server), resolver=resolver)
    assert found.hops[0].address == "127.0.0.2"


async def test_nobody_listens(serve: Serve) -> None:
    server = serve(lambda _: reply(), address="127.0.0.2")
    fault = await refused(f"http://a.example:{server.port}/", local_rules(server))
    assert (fault.why, fault.sent) == (Why.CONNECTION, False)
    assert "127.0.0.1" in fault.message and "refused" in fault.message.lower()


async def test_proxies_of_the_environment_are_not_used(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve(lambda _: reply(b"proxy")), serve(lambda _: reply(b"server"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    found = await get(f"http://a.example:{server.port}/", local_rules(server))
    assert found.body == b"server"
    assert proxy.connections == 0


def forwarding(target: str, port: int) -> Responder:
    """A proxy for plain HTTP that knows one host; everything else is refused."""

    def respond(seen: Seen) -> Answer:
        if not seen.path.startswith(f"http://{target}/"):
            return reply(b"no", status="403 Forbidden")
        with socket.create_connection(("127.0.0.1", port)) as far:
            far.sendall(f"GET /via HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            return b"".join(iter(lambda: far.recv(65536), b""))

    return respond


async def test_a_proxy_is_used_where_the_rules_name_one(serve: Serve, authority: Authority) -> None:
    server = serve(lambda _: reply(b"server"))
    proxy = serve(forwarding("far.example", server.port))
    rules = NetworkRules(allow_hosts=("*.example",), proxy=f"http://a.example:{proxy.port}")
    found = await get("http://far.example/x", rules)  # no look-up of far.example here
    assert found.body == b"server"
    assert proxy.seen[0].line == "GET http://far.example/x HTTP/1.1"
    fault = await refused("https://far.example/", rules, tls=authority.client())
    assert (fault.why, fault.sent) == (Why.CONNECTION, False)
    assert "proxy answered 403" in fault.message
    assert (await refused("http://far.other/", rules)).why is Why.HOST
    assert (await refused("http://10.0.0.1/", rules)).why is Why.HOST
    assert len(proxy.seen) == 2


@pytest.mark.parametrize(
    "options",
    [{"proxy": "http://p.example:3128"}]
    + [{"proxy": text, "allow_hosts": ("a.example",)} for text in (
        "p.example:3128", "https://p.example:3128", "http://p.example", "http://u:p@p.example:1",
        "http://0x7f.1:3128", "http://p.example:0", "http://p.example:99999", "")],
)  # fmt: skip
async def test_a_proxy_that_makes_no_sense_stops_the_start(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        NetworkRules(**options)


# redirects


async def test_a_relative_redirect_is_followed(serve: Serve) -> None:
    server = serve(lambda s: redirect("../b?x=ü") if s.path == "/a/c"
                   else reply(b"there"))  # fmt: skip
    found = await get(
        f"http://a.example:{server.port}/a/c", local_rules(server),
        headers={"Authorization": "Bearer t", "Cookie": "a=b"},
    )  # fmt: skip
    assert found.body == b"there"
    assert found.url.endswith("/b?x=%C3%BC")
    assert [h.status for h in found.hops] == [302, 200]
    assert server.seen[1].headers["authorization"] == "Bearer t"  # the same origin


@pytest.mark.parametrize("back", [False, True])
async def test_credentials_do_not_follow_to_another_origin(serve: Serve, back: bool) -> None:
    def second(seen: Seen) -> bytes:
        return redirect(f"http://a.example:{first.port}/end") if back else reply(b"end")

    other = serve(second)

    def answer(seen: Seen) -> bytes:
        return reply(b"end") if seen.path == "/end" else redirect(
            f"http://a.example:{other.port}/x"
        )  # fmt: skip

    first = serve(answer)
    found = await get(
        f"http://a.example:{first.port}/", local_rules(first, other),
        headers={"Authorization": "Bearer t", "cookie": "a=b", "X-Api-Key": "k", "Accept": "x/y",
                 "X-Custom": "c"},
    )  # fmt: skip
    assert found.body == b"end"
    for request in [*other.seen, *first.seen[1:]]:
        assert request.headers["accept"] == "x/y"
        assert not {"authorization", "cookie", "x-api-key", "x-custom"} & set(request.headers)
    assert set(found.hops[1].dropped) == {"Authorization", "cookie", "X-Api-Key", "X-Custom"}


async def test_the_user_of_the_url_goes_to_its_own_origin_only(serve: Serve) -> None:
    other = serve(lambda _: reply(b"end"))
    first = serve(lambda _: redirect(f"http://b.example:{other.port}/"))
    await get(f"http://me:p%40ss@a.example:{first.port}/", local_rules(first, other, userinfo=True))
    assert first.seen[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    assert "authorization" not in other.seen[0].headers


async def test_cookies_of_an_answer_are_never_sent_back(serve: Serve) -> None:
    server = serve(lambda s: reply(b"end") if s.path == "/b" else
                   reply(status="302 Found", headers=["Location: /b", "Set-Cookie: a=b; Path=/"])
                   )  # fmt: skip
    await get(f"http://a.example:{server.port}/a", local_rules(server))
    assert "cookie" not in server.seen[1].headers


@pytest.mark.parametrize(
    "where",
    ["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/",
     "http://10.0.0.1/", "http://0x7f.1/", "http://private.example/", "http://denied.example/",
     "http://b.example:22/", "file:///etc/passwd", "ftp://b.example/", "gopher://b.example/",
     "http://user:pw@b.example/", "//evil.example\\@b.example/", "http://b.example\\x",
     "http://b.exa mple/", "http:///x", "http://[::1", "javascript:alert(1)"],
)  # fmt: skip
async def test_a_redirect_is_checked_like_a_first_url(serve: Serve, where: str) -> None:
    server = serve(lambda _: redirect(where))
    resolver = names({"a.example": ["127.0.0.9"], "private.example": ["10.0.0.1"]})
    own = serve(lambda _: redirect(where), address="127.0.0.9")
    rules = NetworkRules(
        allow_networks=("127.0.0.9/32",), deny_hosts=("denied.example",), ports=(80, own.port)
    )
    fault = await refused(f"http://a.example:{own.port}/", rules, resolver=resolver)
    assert fault.why in (Why.REDIRECT, Why.ADDRESS)
    assert fault.sent  # the first request had gone out
    assert len(own.seen) == 1
    assert server.connections == 0


async def test_redirects_are_counted_and_loops_are_seen(serve: Serve) -> None:
    counter = itertools.count()
    server = serve(lambda s: redirect("/b" if s.path == "/a" else "/a") if s.path in ("/a", "/b")
                   else redirect(f"/{next(counter)}"))  # fmt: skip
    fault = await refused(f"http://a.example:{server.port}/a", local_rules(server))
    assert (fault.why, len(server.seen)) == (Why.REDIRECT, 2)
    fault = await refused(f"http://a.example:{server.port}/x", local_rules(server, max_redirects=3))
    assert (fault.why, len(server.seen)) == (Why.REDIRECT, 2 + 4)
    fault = await refused(f"http://a.example:{server.port}/y", local_rules(server, max_redirects=0))
    assert len(server.seen) == 2 + 4 + 1


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [("301 x", "POST", "GET"), ("302 x", "POST", "GET"), ("303 x", "PUT", "GET"),
     ("303 x", "HEAD", "HEAD"), ("307 x", "POST", "POST"), ("308 x", "PUT", "PUT")],
)  # fmt: skip
async def test_method_and_body_after_a_redirect(
    serve: Serve, status: str, method: str, after: str
) -> None:
    server = serve(lambda s: redirect("/end", status) if s.path == "/" else reply())
    body = None if method == "HEAD" else b"body"
    await get(
        f"http://a.example:{server.port}/", local_rules(server), method=method, body=body,
        headers={"Content-Type": "text/plain"},
    )  # fmt: skip
    second = server.seen[1]
    assert second.line.split()[0] == after
    assert second.body == (body if after == method and body else b"")
    assert ("content-type" in second.headers) == (status[:3] in ("307", "308"))


async def test_a_body_never_follows_to_another_origin(serve: Serve) -> None:
    other = serve(lambda _: reply())
    first = serve(lambda _: redirect(f"http://b.example:{other.port}/", "307 x"))
    fault = await refused(
        f"http://a.example:{first.port}/", local_rules(first, other), method="POST", body=b"secret"
    )
    assert fault.why is Why.REDIRECT
    assert other.connections == 0


# TLS


async def test_the_certificate_is_checked_for_the_name(serve: Serve, authority: Authority) -> None:
    server = serve(lambda _: reply(b"safe"), tls=authority.issue("a.example"))
    rules, client = local_rules(server), authority.client()
    found = await get(f"https://a.example:{server.port}/", rules, tls=client)
    assert found.body == b"safe"
    assert server.seen[0].server_name == "a.example"
    assert server.seen[0].headers["host"] == f"a.example:{server.port}"
    fault = await refused(f"https://b.example:{server.port}/", rules, tls=client)
    assert (fault.why, fault.sent) == (Why.TLS, False)
    fault = await refused(f"https://a.example:{server.port}/", rules)  # not our authority
    assert (fault.why, fault.sent) == (Why.TLS, False)
    assert len(server.seen) == 1


async def test_the_certificate_is_checked_for_an_address(
    serve: Serve, authority: Authority
) -> None:
    server = serve(lambda _: reply(b"safe"), tls=authority.issue("127.0.0.1"))
    url = f"https://127.0.0.1:{server.port}/"
    assert (await get(url, local_rules(server), tls=authority.client())).body == b"safe"


@pytest.mark.parametrize("what", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_authorities_of_the_environment_are_not_trusted(
    serve: Serve, authority: Authority, what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    server = serve(lambda _: reply(b"safe"), tls=authority.issue("a.example"))
    (tmp_path / "ca.pem").write_text(authority.pem)
    monkeypatch.setenv(what, str(tmp_path / "ca.pem" if what.endswith("FILE") else tmp_path))
    fault = await refused(f"https://a.example:{server.port}/", local_rules(server))
    assert fault.why is Why.TLS


async def test_a_context_that_checks_nothing_is_refused() -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    assert (await refused("https://a.example/", NetworkRules(), tls=context)).why is Why.TLS


async def test_https_does_not_fall_back_to_http(serve: Serve, authority: Authority) -> None:
    plain = serve(lambda _: reply(b"plain"))
    server = serve(
        lambda _: redirect(f"http://a.example:{plain.port}/"), tls=authority.issue("a.example")
    )
    fault = await refused(
        f"https://a.example:{server.port}/", local_rules(server, plain), tls=authority.client()
    )
    assert fault.why is Why.REDIRECT
    assert plain.connections == 0
    up = serve(lambda _: redirect(f"https://a.example:{server.port}/"))
    rules = local_rules(server, up, max_redirects=1)
    fault = await refused(f"http://a.example:{up.port}/", rules, tls=authority.client())
    assert len(server.seen) == 2  # upwards is followed


async def test_plain_http_where_only_https_is_allowed(serve: Serve) -> None:
    server = serve(lambda _: reply())
    fault = await refused(
        f"http://a.example:{server.port}/", local_rules(server, schemes=("https",))
    )
    assert fault.why is Why.URL


# what a hostile server can do

SMALL = FetchLimits(
    total_s=5, head_s=3, idle_s=2, connect_s=2, wire_bytes=100_000, body_bytes=200_000
)


def drip(server: list[Server], begin: bytes, piece: bytes) -> Iterator[bytes]:
    yield begin
    while not server[0].done.wait(0.01):
        yield piece


async def hostile(
    serve: Serve, answer: bytes | Any, limits: FetchLimits = SMALL
) -> tuple[NetworkRefused, Server]:
    holder: list[Server] = []

    def respond(_: Seen) -> Answer:
        made: Answer = answer(holder) if callable(answer) else answer
        return made

    holder.append(serve(respond))
    url = f"http://a.example:{holder[0].port}/"
    return await refused(url, local_rules(holder[0]), limits=limits), holder[0]


@pytest.mark.parametrize(
    ("begin", "piece", "limits"),
    [
        (b"", b"", {"idle_s": 0.1}),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", {"head_s": 0.2}),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", {"head_s": 0.2}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"", {"idle_s": 0.1}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x", {"total_s": 0.3}),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", {"total_s": 0.3}),
    ],
)
async def test_a_slow_server_is_left(
    serve: Serve, begin: bytes, piece: bytes, limits: dict[str, float]
) -> None:
    bounds = FetchLimits(**{"total_s": 20, "head_s": 20, "idle_s": 20, **limits})  # type: ignore[arg-type]
    fault, _ = await hostile(serve, lambda h: drip(h, begin, piece), bounds)
    assert (fault.why, fault.sent) == (Why.TIME, True)
    assert f"{next(iter(limits.values())):g} s" in fault.message or "silent" in fault.message


async def test_a_server_that_never_finishes_the_handshake_is_left(
    serve: Serve, authority: Authority
) -> None:
    server = serve(lambda _: reply())  # reads, and never answers in TLS
    fault = await refused(
        f"https://a.example:{server.port}/", local_rules(server), tls=authority.client(),
        limits=FetchLimits(connect_s=0.2),
    )  # fmt: skip
    assert (fault.why, fault.sent) == (Why.TIME, False)


def endless(head: str) -> Any:
    def pieces(_: object) -> Iterator[bytes]:
        yield f"HTTP/1.1 200 OK\r\n{head}\r\n".encode()
        while True:
            yield b"2710\r\n" + b"x" * 10_000 + b"\r\n" if "chunked" in head else b"x" * 10_000

    return pieces


@pytest.mark.parametrize(
    "answer",
    [
        endless("Transfer-Encoding: chunked\r\n"),
        endless(""),
        reply(b"x", headers=["Content-Length: 100001"], length=False),
        reply(b"x" * 100_001),
    ],
)
async def test_a_body_that_is_too_long_is_not_taken(serve: Serve, answer: Any) -> None:
    fault, _ = await hostile(serve, answer)
    assert (fault.why, fault.sent) == (Why.SIZE, True)
    assert "100,000" in fault.message


def packed(body: bytes, coding: str, count: int = 1) -> bytes:
    for _ in range(count):
        if coding == "gzip":
            body = gzip.compress(body, 9, mtime=0)
        elif coding == "deflate":
            body = zlib.compress(body, 9)
        else:
            codec = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
            body = codec.compress(body) + codec.flush()
    name = "deflate" if coding == "raw" else coding
    return reply(body, headers=[f"Content-Encoding: {', '.join([name] * count)}"])


TEXT = "".join(f"line {n}\n" for n in range(5000)).encode()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_coded_body_is_unpacked(serve: Serve, coding: str, count: int) -> None:
    server = serve(lambda _: packed(TEXT, coding, count))
    found = await get(f"http://a.example:{server.port}/", local_rules(server), limits=SMALL)
    assert found.body == TEXT
    assert found.wire_bytes < len(TEXT)
    assert server.seen[0].headers["accept-encoding"].startswith("gzip, deflate")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_bomb_does_not_go_off(serve: Serve, coding: str, count: int) -> None:
    bomb = packed(bytes(20_000_000), coding, count)
    assert len(bomb) < 100_000
    fault, _ = await hostile(serve, bomb)
    assert fault.why is Why.SIZE


async def test_a_bomb_that_goes_off_inside_and_leaves_nothing(serve: Serve) -> None:
    nothing = gzip.compress(b"", mtime=0)
    bomb = gzip.compress(nothing * 500_000, 9)  # 10 MB between the layers, no byte at the end
    fault, _ = await hostile(
        serve, reply(bomb, headers=["Content-Encoding: gzip, gzip"]),
        FetchLimits(wire_bytes=len(bomb), body_bytes=200_000),
    )  # fmt: skip
    assert fault.why is Why.SIZE


async def test_a_body_without_coding_is_bounded_by_both_limits(serve: Serve) -> None:
    limits = FetchLimits(wire_bytes=200_000, body_bytes=100_000)
    fault, _ = await hostile(serve, reply(b"x" * 150_000), limits)
    assert fault.why is Why.SIZE
    assert "100,000" in fault.message


@pytest.mark.parametrize("coding", ["br", "zstd"])
async def test_other_codings_where_a_module_for_them_is_installed(
    serve: Serve, coding: str
) -> None:
    if coding not in decoding.accepted():
        server = serve(lambda _: reply(b"x", headers=[f"Content-Encoding: {coding}"]))
        fault = await refused(f"http://a.example:{server.port}/", local_rules(server))
        assert fault.why is Why.ENCODING
        pytest.skip(f"no module for {coding}; the refusal was checked")
    pack = decoding._installed("brotli" if coding == "br" else "compression.zstd", "backports.zstd")
    for body, limit in ((TEXT, None), (bytes(20_000_000), Why.SIZE)):
        made = reply(pack.compress(body), headers=[f"Content-Encoding: {coding}"])
        server = serve(lambda _, made=made: made)
        url = f"http://a.example:{server.port}/"
        if limit is None:
            assert (await get(url, local_rules(server), limits=SMALL)).body == body
        else:
            assert (await refused(url, local_rules(server), limits=SMALL)).why is limit
        cut = reply(pack.compress(TEXT)[:-9], headers=[f"Content-Encoding: {coding}"])
        server = serve(lambda _, cut=cut: cut)
        fault = await refused(f"http://a.example:{server.port}/", local_rules(server))
        assert fault.why is Why.ENCODING


GZIP = gzip.compress(TEXT, mtime=0)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (GZIP[:-9], "gzip"),
        (GZIP[:100], "gzip"),
        (GZIP + b"garbage", "gzip"),
        (b"not gzip at all", "gzip"),
        (GZIP[:50] + b"\x00" * 50 + GZIP[100:], "gzip"),
        (zlib.compress(TEXT)[:-1], "deflate"),
        (zlib.compress(TEXT) + b"x", "deflate"),
        (b"\xff" * 20, "deflate"),
        (b"x", "snappy"),
        (b"x", "gzip, snappy"),
        (b"x", "gzip, gzip, gzip"),
    ],
)
async def test_a_broken_coding_is_not_taken(serve: Serve, body: bytes, coding: str) -> None:
    fault, _ = await hostile(serve, reply(body, headers=[f"Content-Encoding: {coding}"]))
    assert (fault.why, fault.sent) == (Why.ENCODING, True)


async def test_members_of_gzip_in_a_row_and_no_body_are_fine(serve: Serve) -> None:
    bodies = [GZIP + gzip.compress(b"more"), b""]
    server = serve(lambda _: reply(bodies.pop(0), headers=["Content-Encoding: gzip"]))
    url, rules = f"http://a.example:{server.port}/", local_rules(server)
    assert (await get(url, rules)).body == TEXT + b"more"
    assert (await get(url, rules)).body == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x01\x02\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        reply(b"short", headers=["Content-Length: 10"], length=False),
        reply(b"short", headers=["Content-Length: 5", "Content-Length: 6"], length=False),
        reply(b"short", headers=["Content-Length: -5"], length=False),
        reply(b"short", headers=["Content-Length: 5x"], length=False),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nA B: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
    ],
)
async def test_a_broken_answer_is_not_taken(serve: Serve, answer: bytes) -> None:
    fault, _ = await hostile(serve, answer)
    assert (fault.why, fault.sent) == (Why.PROTOCOL, True)


async def test_what_follows_the_announced_length_is_not_read(serve: Serve) -> None:
    server = serve(lambda _: reply(b"hello") + b"HTTP/1.1 200 OK\r\n\r\nsmuggled")
    assert (await get(f"http://a.example:{server.port}/", local_rules(server))).body == b"hello"


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"content-length": "3"}, {"Transfer-Encoding": "chunked"},
     {"Connection": "upgrade"}, {"X-A": "b\r\nX-C: d"}, {"X A": "b"}, {"X-A\r\nB": "c"},
     {"": "x"}, {"X-A": "\x00"}, {"X-A": "ключ"}, {"X-A": " b"}, {"Proxy-Authorization": "x"}],
)  # fmt: skip
async def test_headers_that_could_change_the_request_are_refused(
    serve: Serve, headers: dict[str, str]
) -> None:
    server = serve(lambda _: reply())
    url = f"http://a.example:{server.port}/"
    fault = await refused(url, local_rules(server), headers=headers)
    assert (fault.why, fault.sent, server.connections) == (Why.REQUEST, False, 0)


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x HTTP/1.1\r\nX:", ""])
async def test_other_methods_are_refused(method: str) -> None:
    fault = await refused("http://a.example/", NetworkRules(), method=method)
    assert fault.why is Why.REQUEST


async def test_cancelling_closes_the_connection(serve: Serve) -> None:
    holder: list[Server] = []
    closed = anyio.Event()
    portal = anyio.from_thread.BlockingPortal()

    def respond(_: Seen) -> Iterator[bytes]:
        try:
            yield from drip(holder, b"HTTP/1.1 200 OK\r\n\r\n", b"x")
        finally:
            portal.call(closed.set)

    async with portal:
        holder.append(serve(respond))
        async with anyio.create_task_group() as group:
            group.start_soon(get, f"http://a.example:{holder[0].port}/", local_rules(holder[0]))
            while not holder[0].seen:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            await closed.wait()  # writing to a closed connection failed


async def test_secrets_of_a_url_are_in_no_message(serve: Serve) -> None:
    server = serve(lambda _: redirect("http://10.0.0.1/topsecret?k=topsecret"))
    rules = local_rules(server)
    for url in (
        f"http://a.example:{server.port}/topsecret?key=topsecret",
        "http://10.0.0.1/topsecret",
        "http://nowhere.example/topsecret",
        "http://a.example:1/topsecret",
    ):
        assert "topsecret" not in str(await refused(url, rules))


@pytest.mark.parametrize(
    ("text", "meant"),
    [("x", "/a/x"), ("../x", "/x"), ("/x", "/x"), ("?y", "/a/b?y"), ("#z", "/a/b?q"),
     ("", "/a/b?q"), (".", "/a/"), ("..", "/"), ("x/../../../y", "/y"), ("x?../y", "/a/x?../y"),
     ("x:y", None), ("./x:y", "/a/x:y")],
)  # fmt: skip
async def test_relative_places(text: str, meant: str | None) -> None:
    rules = NetworkRules()
    base = check_url("https://example.com/a/b?q", rules)
    if meant is None:
        with pytest.raises(NetworkRefused):
            check_url(joined(base, text), rules)
    else:
        assert str(check_url(joined(base, text), rules)) == f"https://example.com{meant}"
        if "../../" not in text:  # where both agree on what is allowed
            assert urllib.parse.urljoin(str(base), text).partition("#")[0].endswith(meant)
