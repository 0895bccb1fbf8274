# ruff: noqa: ASYNC110 - tests look at the disk, and wait for what happens
"""Granted hosts, tried from inside real sandboxes. Run once more by `test_as_normal_user`."""

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.net import Answer, Authority, Seen, Serve, Server, local_rules, names, redirect, reply
from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.network import NetworkRules
from lorimer.safety.sandbox import choose, os_level
from lorimer.safety.sandbox.egress import PORT, Attempt, Egress
from lorimer.safety.sandbox.netns import listen_inside
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
PYTHON = (Path(sys.prefix), Path(sys.base_prefix))
HERE = names({n: ["127.0.0.1"] for n in ("a.example", "b.example", "x.b.example")})
Run = Callable[..., Awaitable[SandboxResult]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    async def sandboxed(command: str, egress: Egress | None, **options: Any) -> SandboxResult:
        shell = options.pop("shell", False)
        limits = Limits(**{"wall_s": 20, **options.pop("limits", {})})
        spec = SandboxSpec(
            tmp_path, read_only=(*PYTHON, *options.pop("read_only", ())), limits=limits,
            egress=egress, **options,
        )  # fmt: skip
        argv = ["/bin/sh", "-c"] if shell else [sys.executable, "-I", "-c"]
        return await os_level.run([*argv, command], spec=spec)

    return sandboxed


def grant(*servers: Server, told: list[Attempt] | None = None, **options: Any) -> Egress:
    rules = {"allow_hosts": ("a.example", "*.b.example"), **options.pop("rules", {})}
    note = None if told is None else told.append
    return Egress(local_rules(*servers, **rules), note, resolver=HERE, **options)


def said(result: SandboxResult) -> str:
    return result.stdout.text() + result.stderr.text()


GET = """
import urllib.request, urllib.error, sys
for url in {urls!r}:
    try:
        with urllib.request.urlopen(url, timeout=10, context={context}) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as fault:
        print(fault.code, fault.reason, fault.read().decode())
    except OSError as fault:
        print(type(fault).__name__, fault)
"""


def get(*urls: str, context: str = "None") -> str:
    return GET.format(urls=urls, context=context)


async def test_an_allowed_host_is_reached(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply(b"hello"))
    told: list[Attempt] = []
    result = await run(get(f"http://A.example:{server.port}/p?q"), grant(server, told=told))
    assert said(result) == "200 hello\n"
    (request,) = server.seen
    assert request.line == "GET /p?q HTTP/1.1"
    assert request.headers["host"] == f"a.example:{server.port}"
    assert not {"proxy-connection", "proxy-authorization"} & set(request.headers)
    (attempt,) = told
    assert (attempt.host, attempt.port, attempt.method) == ("a.example", server.port, "GET")
    assert (attempt.verdict, attempt.reason, attempt.address) == ("allowed", "", "127.0.0.1")
    assert attempt.bytes_up > 0 and attempt.bytes_down > len(b"hello")


async def test_tls_goes_through_a_tunnel_end_to_end(
    run: Run, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    server = serve(lambda _: reply(b"safe"), tls=authority.issue("x.b.example"))
    (tmp_path / "ca.pem").write_text(authority.pem)
    told: list[Attempt] = []
    context = f"__import__('ssl').create_default_context(cafile={str(tmp_path / 'ca.pem')!r})"
    result = await run(
        get(f"https://x.b.example:{server.port}/", context=context), grant(server, told=told)
    )
    assert said(result) == "200 safe\n"
    assert [(a.method, a.host, a.verdict) for a in told] == [("CONNECT", "x.b.example", "allowed")]


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="needs curl")
async def test_curl_finds_the_proxy(
    run: Run, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    plain = serve(lambda s: reply(s.body or b"plain"))
    secure = serve(lambda _: reply(b"safe"), tls=authority.issue("a.example"))
    (tmp_path / "ca.pem").write_text(authority.pem)
    result = await run(
        f"curl -sS http://a.example:{plain.port}/; echo; "
        f"curl -sS --data-binary @ca.pem -H 'Transfer-Encoding: chunked' -H 'Expect: 100-continue' "
        f"http://a.example:{plain.port}/ | wc -l;"
        f"curl -sS --cacert ca.pem https://a.example:{secure.port}/; echo; "
        "curl -sS http://denied.example/; curl -sS https://denied.example/",
        grant(plain, secure), shell=True,
    )  # fmt: skip
    out = said(result)
    assert out.startswith("plain\n")
    assert "\nsafe\n" in out
    assert "denied.example is not among the allowed hosts (a.example, *.b.example)" in out
    assert "CONNECT" in out and "403" in out


REFUSED = [
    ("http://denied.example/", "not among the allowed hosts"),
    ("http://b.example/", "not among the allowed hosts"),
    ("http://a.example:22/", "port 22 of a.example is not allowed"),
    ("http://127.0.0.2/", "not among the allowed hosts"),
    ("http://[::1]/", "not among the allowed hosts"),
    ("http://169.254.169.254/", "not among the allowed hosts"),
]


@pytest.mark.parametrize(("url", "words"), REFUSED)
async def test_another_host_gets_a_403_that_teaches(
    run: Run, serve: Serve, url: str, words: str
) -> None:
    server = serve(lambda _: reply(b"hello"))
    told: list[Attempt] = []
    secure = url.replace("http:", "https:").replace(":22", ":23")
    result = await run(get(url, secure), grant(server, told=told))
    plain, tunnel = said(result).split("no other way to the network")
    assert plain.startswith("403 ") and words in plain
    assert "Tunnel connection failed: 403" in tunnel
    assert words.replace("22", "23") in tunnel
    assert [a.verdict for a in told] == ["refused", "refused"]
    assert all(words.split(" ")[-1] in a.reason for a in told)
    assert server.connections == 0


async def test_names_that_resolve_to_private_addresses_are_refused(run: Run) -> None:
    told: list[Attempt] = []
    resolver = names({"a.example": ["93.184.215.14", "10.0.0.1"], "c.example": ["169.254.169.254"]})
    egress = Egress(NetworkRules(), told.append, resolver=resolver)
    result = await run(get("http://a.example/", "http://c.example/", "http://no.example/"), egress)
    lines = said(result)
    assert "10.0.0.1, which is private" in lines
    assert "169.254.169.254" in lines and "credentials" in lines
    assert "502 The host no.example could not be looked up" in lines
    assert [a.verdict for a in told] == ["refused", "refused", "failed"]


async def test_denied_hosts_are_not_even_looked_up(run: Run) -> None:
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        raise OSError("none")

    rules = NetworkRules(allow_hosts=("a.example",))
    await run(
        get("http://secret-data.evil.example/", "http://a.example/"),
        Egress(rules, resolver=resolver),
    )
    assert asked == ["a.example"]


DIRECT = """
import errno, socket
def attempt(name, work):
    try:
        work()
        print("OPEN", name)
    except OSError as fault:
        print(name, errno.errorcode.get(fault.errno, fault))
def tcp(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET); s.settimeout(3)
    s.connect((host, port))
def udp():
    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(3)
    s.sendto(bytes.fromhex("123401000001000000000000016101620000010001"), ("192.0.2.53", 53))
attempt("host", lambda: tcp("127.0.0.1", {port}))
attempt("v6", lambda: tcp("::1", {port}))
attempt("far", lambda: tcp("192.0.2.1", 80))
attempt("dns", udp)
attempt("name", lambda: socket.getaddrinfo("a.example", 80))
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("proxy", lambda: tcp("127.0.0.1", {proxy}))
"""


async def test_there_is_no_other_way_out(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply())
    result = await run(DIRECT.format(port=server.port, proxy=PORT), grant(server))
    lines = said(result).splitlines()
    assert [line for line in lines if line.startswith("OPEN")] == ["OPEN proxy"]
    assert len(lines) == 7
    assert (
        "host ECONNREFUSED" in lines and "far ENETUNREACH" in lines and "dns ENETUNREACH" in lines
    )
    assert server.connections == 0


async def test_without_a_grant_nothing_listens_and_no_variable_is_set(run: Run) -> None:
    result = await run(
        DIRECT.format(port=1, proxy=PORT) + "\nimport os; print([k for k in os.environ if "
        "'proxy' in k.lower()])", None,
    )  # fmt: skip
    assert "OPEN" not in said(result)
    assert said(result).endswith("[]\n")


async def test_nothing_of_ours_is_in_the_sandbox(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply())
    script = """
import json, os
print(json.dumps({
  "pids": [p for p in os.listdir("/proc") if p.isdigit()],
  "fds": [os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd")
          if os.path.exists(f"/proc/self/fd/{f}")],
  "unix": open("/proc/net/unix").read().count("\\n") if os.path.exists("/proc/net/unix") else 1,
}))
"""
    inside = json.loads(said(await run(script, grant(server))))
    without = json.loads(said(await run(script, None)))
    assert len(inside["pids"]) == len(without["pids"])
    assert not [one for one in inside["fds"] if "socket:" in one]
    assert inside["unix"] == without["unix"]


async def test_two_runs_have_grants_of_their_own(run: Run, serve: Serve) -> None:
    one, two = serve(lambda _: reply(b"one")), serve(lambda _: reply(b"two"))
    out: dict[str, str] = {}

    async def go(name: str, egress: Egress) -> None:
        urls = [f"http://a.example:{server.port}/" for server in (one, two)]
        out[name] = said(await run(get(*urls, *urls), egress))

    async with anyio.create_task_group() as group:
        group.start_soon(go, "one", grant(one))
        group.start_soon(go, "two", grant(two))
    assert out["one"].count("200 one") == 2 and out["one"].count("403 ") == 2
    assert out["two"].count("200 two") == 2 and out["two"].count("403 ") == 2


def open_sockets() -> set[str]:
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def endless(server: list[Server]) -> Callable[[Seen], Answer]:
    def respond(_: Seen) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while not server[0].done.wait(0.01):
            yield b"x" * 1000

    return respond


@pytest.mark.parametrize("how", ["ends", "timeout", "cancelled"])
async def test_nothing_is_left_when_the_run_ends(run: Run, serve: Serve, how: str) -> None:
    holder: list[Server] = []
    holder.append(serve(endless(holder)))
    told: list[Attempt] = []
    before = open_sockets()
    egress = grant(holder[0], told=told)
    wait = "" if how == "ends" else "import signal; signal.pause()"
    script = f"""
import urllib.request
a = urllib.request.urlopen("http://a.example:{holder[0].port}/")
a.read(5000); print("begun", flush=True)
{wait}
"""
    limits = {"wall_s": 1.0 if how == "timeout" else 20.0}
    if how == "cancelled":
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run(script, egress, limits=limits))
            while not holder[0].seen:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    else:
        result = await run(script, egress, limits=limits)
        assert "begun" in said(result)
        assert result.killed == ("timeout" if how == "timeout" else "")
    assert [(a.host, a.verdict) for a in told] == [("a.example", "allowed")]
    assert told[0].bytes_down >= (0 if how == "cancelled" else 5000)
    left = open_sockets() - before
    assert len(left) <= 1 + holder[0].connections  # the test server's own ends


async def test_a_redirect_inside_is_a_new_wish(run: Run, serve: Serve) -> None:
    server = serve(lambda _: redirect("http://denied.example/"))
    result = await run(get(f"http://a.example:{server.port}/"), grant(server))
    assert "denied.example is not among the allowed hosts" in said(result)


async def test_bodies_and_long_answers_pass_whole(run: Run, serve: Serve) -> None:
    size = 3_000_000

    def respond(seen: Seen) -> Answer:
        return reply(seen.body + b"!" * size)

    server = serve(respond)
    result = await run(
        f"""
import urllib.request
body = bytes(range(256)) * 10000
r = urllib.request.Request("http://a.example:{server.port}/", body, method="PUT")
got = urllib.request.urlopen(r).read()
print(got == body + b"!" * {size})
""",
        grant(server),
    )
    assert said(result) == "True\n"


async def test_bytes_and_connections_are_bounded(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply(b"x" * 50_000))
    told: list[Attempt] = []
    url = f"http://a.example:{server.port}/"
    result = await run(get(*[url] * 4), grant(server, told=told, bytes_down=120_000))
    assert said(result).count("200 xxx") == 2
    assert "used up" in said(result)
    assert [a.verdict for a in told][:2] == ["allowed", "allowed"]
    assert {a.verdict for a in told[2:]} == {"failed"}
    assert sum(a.bytes_down for a in told) < 120_000 + 4 * 65536

    holder: list[Server] = []
    holder.append(serve(endless(holder)))
    url = f"http://a.example:{holder[0].port}/"
    result = await run(
        f"""
import urllib.request, urllib.error
kept = [urllib.request.urlopen("{url}") for _ in range(3)]
try:
    urllib.request.urlopen("{url}")
except urllib.error.HTTPError as fault:
    print(fault.code, fault.read().decode())
kept.pop().close()
""",
        grant(holder[0], connections=3),
    )
    assert said(result).startswith("503 There are too many connections")


async def test_many_idle_connections_do_not_use_up_our_descriptors(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply())
    most = [0]

    async def watch() -> None:
        while True:
            most[0] = max(most[0], len(open_sockets()))
            await anyio.sleep(0.005)

    before = len(open_sockets())
    script = f"""
import socket, select
kept = [socket.create_connection(("127.0.0.1", {PORT})) for _ in range(100)]
print(len(kept), flush=True)
"""
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        result = await run(script, grant(server, connections=4))
        group.cancel_scope.cancel()
    assert said(result) == "100\n"
    assert most[0] - before <= 4 + 16 + 8


async def test_attempts_are_bounded_and_the_end_is_told(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply(b"ok"))
    told: list[Attempt] = []
    urls = [f"http://a.example:{server.port}/", "http://denied.example/"] * 3
    result = await run(get(*urls), grant(server, told=told, attempts=3))
    assert said(result).count("200 ok") == 2
    assert "Connection refused" in said(result) or "reset" in said(result)
    assert [a.verdict for a in told if a.host] == ["allowed", "refused", "allowed"]
    assert [a.reason for a in told if not a.host] == ["after 3 attempts the network was closed"]


async def test_a_silent_connection_is_ended(run: Run, serve: Serve) -> None:
    holder: list[Server] = []

    def respond(_: Seen) -> Iterator[bytes]:
        holder[0].done.wait()
        yield b""

    holder.append(serve(respond))
    told: list[Attempt] = []
    result = await run(
        get(f"http://a.example:{holder[0].port}/"), grant(holder[0], told=told, idle_s=0.2)
    )
    assert said(result).startswith("504 a.example was silent")
    assert told[0].verdict == "failed"


async def test_what_cannot_be_recorded_ends_the_run(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply())

    def broken(_: Attempt) -> None:
        raise RuntimeError("the audit is full")

    rules = local_rules(server, allow_hosts=("a.example",))
    egress = Egress(rules, broken, resolver=HERE)
    with pytest.raises(RuntimeError, match="audit is full"):
        await run(get(f"http://a.example:{server.port}/") + "import signal; signal.pause()", egress)


RAW = """
import socket
for text in {texts!r}:
    s = socket.create_connection(("127.0.0.1", {proxy})); s.settimeout(10)
    s.sendall(text.encode("latin-1"))
    out = b""
    while piece := s.recv(65536):
        out += piece
    print(out.split(b" ")[1].decode() if out else "closed")
"""


async def test_what_is_no_proxy_request_is_refused(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply(b"hello"))
    host = f"a.example:{server.port}"
    wishes = {
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n": "403",
        f"GET https://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        "GET ftp://a.example/ HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        f"GET http://me:pw@{host}/ HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        f"GET http://{host}\\@denied.example/ HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        "CONNECT a.example HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        "CONNECT a.example:0 HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        "CONNECT a.example:99999 HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        f"CONNECT 0x7f.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        f"CONNECT {host}@denied.example:80 HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        f"CONNECT {host}/x HTTP/1.1\r\nHost: x\r\n\r\n": "403",
        "\x16\x03\x01\x02\x00\x01\r\n\r\n": "400",
        "\x05\x01\x00\r\n\r\n": "400",
        "GET http://a.example/\r\n\r\n": "400",
        f"GET http://{host}/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n": "400",
        "GET http://a.example/ HTTP/1.1\r\nX: " + "y" * 100_000 + "\r\n\r\n": "431",
    }
    granted = grant(server, rules={"allow_hosts": ("a.example", "127.0.0.1")})
    result = await run(RAW.format(texts=list(wishes), proxy=PORT), granted)
    got = said(result).split()
    want = ["400" if code == "431" else code for code in wishes.values()]
    assert dict(zip(wishes, got, strict=True)) == dict(zip(wishes, want, strict=True))
    assert server.connections == 0


SNI = """
import socket, ssl
def tunnel():
    s = socket.create_connection(("127.0.0.1", {proxy})); s.settimeout(10)
    s.sendall(b"CONNECT a.example:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert b" 200 " in s.recv(65536)
    return s
context = ssl.create_default_context(cafile={ca!r})
context.check_hostname = False
for name in ("a.example", "A.EXAMPLE", "denied.example", "x.b.example", None):
    try:
        with context.wrap_socket(tunnel(), server_hostname=name) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n")
            print(name, s.recv(100).split()[1].decode())
    except OSError as fault:
        print(name, getattr(fault, "reason", fault))
s = tunnel()
s.sendall(b"\\x16\\x03\\x01\\x00\\x05\\x02hell")
print("nonsense", s.recv(100).hex(), s.recv(100))
"""


async def test_tls_in_a_tunnel_must_be_meant_for_its_host(
    run: Run, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    server = serve(lambda _: reply(b"safe"), tls=authority.issue("a.example"))
    (tmp_path / "ca.pem").write_text(authority.pem)
    told: list[Attempt] = []
    script = SNI.format(proxy=PORT, port=server.port, ca=str(tmp_path / "ca.pem"))
    result = await run(script, grant(server, told=told))
    lines = said(result).splitlines()
    assert lines[:2] == ["a.example 200", "A.EXAMPLE 200"]
    assert [line.split(" ", 1)[1] for line in lines[2:5]] == ["TLSV1_UNRECOGNIZED_NAME"] * 3
    assert lines[5] == "nonsense 15030300020270 b''"
    assert [a.verdict for a in told] == ["allowed"] * 2 + ["refused"] * 4
    assert "meant for denied.example, not for a.example" in told[2].reason
    assert len(server.seen) == 2


async def test_other_protocols_pass_a_tunnel(run: Run, serve: Serve) -> None:
    server = serve(lambda seen: reply(seen.path.encode()))
    text = (
        f"CONNECT a.example:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /early HTTP/1.1\r\nHost: a.example\r\n\r\n"
    )
    result = await run(RAW.format(texts=[text], proxy=PORT), grant(server))
    assert said(result) == "200\n"
    assert server.seen[0].path == "/early"


async def test_the_host_header_cannot_name_another_host(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply(b"hello"))
    host = f"a.example:{server.port}"
    smuggled = (
        f"GET http://{host}/one HTTP/1.1\r\nHost: denied.example\r\nConnection: X-Drop, host\r\n"
        "X-Drop: 1\r\nProxy-Authorization: Basic x\r\n\r\n"
        "GET /two HTTP/1.1\r\nHost: denied.example\r\n\r\n"
    )
    result = await run(RAW.format(texts=[smuggled], proxy=PORT), grant(server))
    assert said(result).split() == ["200"]
    (request,) = server.seen
    assert request.line == "GET /one HTTP/1.1"
    assert request.headers["host"] == host
    assert not {"x-drop", "proxy-authorization"} & set(request.headers)


async def test_an_answer_that_is_not_http_is_told(run: Run, serve: Serve) -> None:
    server = serve(lambda _: b"SSH-2.0-x\r\n\r\n")
    told: list[Attempt] = []
    result = await run(get(f"http://a.example:{server.port}/"), grant(server, told=told))
    assert said(result).startswith("502 The answer of a.example is not HTTP")
    assert told[0].verdict == "failed"


async def test_nobody_listens_there(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told: list[Attempt] = []
    result = await run(get(f"http://a.example:{port}/"), grant(Server(port), told=told))
    assert said(result).startswith("502 No connection to a.example")
    assert [(a.verdict, a.address) for a in told] == [("failed", "")]


def test_programs_find_the_proxy_by_every_usual_name() -> None:
    found = Egress.to("example.com").environment()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert found[name] == found[name.lower()] == f"http://127.0.0.1:{PORT}"
    assert found["NO_PROXY"] == found["no_proxy"] == "localhost,127.0.0.1,::1"


@pytest.mark.parametrize("level", ["landlock", "container"])
async def test_other_levels_refuse_grants(serve: Serve, tmp_path: Path, level: Any) -> None:
    spec = SandboxSpec(tmp_path, egress=grant())
    with pytest.raises(SandboxUnavailable) as info:
        await choose.run(["true"], spec=spec, level=level)
    assert level in info.value.message and info.value.next


async def test_a_namespace_that_cannot_be_entered_is_told() -> None:
    before = open_sockets()
    with pytest.raises(SandboxUnavailable) as info:
        await listen_inside(os.getpid(), PORT)
    assert "could not be entered" in info.value.message
    assert open_sockets() == before


async def test_local_servers_inside_are_reached_without_the_proxy(run: Run, serve: Serve) -> None:
    server = serve(lambda _: reply())
    told: list[Attempt] = []
    script = """
import http.server, threading, urllib.request
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{s.server_port}/").status)
"""
    result = await run(script, grant(server, told=told))
    assert result.stdout.text() == "200\n"
    assert told == []
