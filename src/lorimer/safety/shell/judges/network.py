"""Programs that connect: which host, what is sent, what is written."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from lorimer.core.calls import Effects
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, apply, judge_options
from lorimer.safety.shell.judges.wrappers import ssh_option
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind

RISKY = frozenset({"network"})
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+|\[[0-9a-fA-F:]+\]):(?!\\)(.*)", re.DOTALL)


def host_of(text: str) -> str | None:
    """The host (and port) of a URL, with or without its scheme."""
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host:
        return None
    return f"{host}:{port}" if port else host


def _fetch(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """curl, wget and their kind: operands are URLs."""
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    where = call.source
    urls = list(parsed.operands)
    for option, value, _ in parsed.options:
        if option == "--url" and value is not None:
            urls.append(value)
        verb = (value.text or "?").upper() if value is not None else "GET"
        if option in ("-X", "--request", "--method") and verb not in ("GET", "HEAD", "OPTIONS"):
            analysis.raise_to(Effects.IRREVERSIBLE)
    for url in urls:
        text = url.text if url.text is not None else url.head
        if text.casefold().startswith("file:"):
            analysis.read(re.sub(r"^file:(//)?", "", text, flags=re.I) or "/", where)
        host = host_of(text) if url.text is not None or "/" in text.split("://")[-1] else None
        if url.text is None and host is None:
            analysis.unknown(f"which host {name} connects to is not known before it runs", where)
        analysis.connect(host, where, f"`{name}` connects to {host or url}")
        analysis._secret_words(url, where)
    if not urls:
        analysis.connect(None, where, f"`{name}` connects")
    if name in ("wget", "aria2c", "axel") and not parsed.has("-O", "--output-document", "--spider"):
        analysis.write(".", where)
    return Output(None, Kind.ANY, RISKY)


def _hosts(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """nc, ping, dig, telnet, …: the first operand that looks like a host is one."""
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    apply(analysis, program.always, call.source)
    known = [w.text for w in parsed.operands if w.text is not None]
    host = next((t.lstrip("@") for t in known if re.search(r"[a-zA-Z.:]", t)), None)
    analysis.connect(host, call.source, f"`{name}` connects to {host or 'a host'}", sends=True)
    if any(w.text is None for w in parsed.operands):
        analysis.unknown(f"what `{name}` connects to is not known before it runs", call.source)
    return Output(None, Kind.ANY, RISKY)


def _copy(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """scp, sftp, rsync: `host:path` is over there, the rest is here."""
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    where = call.source
    for option, value, _ in parsed.options:
        if option == "-o" and value is not None and name != "rsync":
            ssh_option(analysis, call, value)
    words = parsed.operands
    remote = False
    for place, word in enumerate(words):
        text = word.text if word.text is not None else word.head
        far = _REMOTE.match(text) if "/" not in text.split(":")[0] else None
        if (
            far
            or text.startswith(("rsync://", "scp://", "sftp://"))
            or (name == "sftp" and place == 0)
        ):
            remote = True
            host = far[1] if far else host_of(text)
            analysis.connect(host, where, f"`{name}` copies over the network", sends=True)
        elif word.text is None and not word.head:
            analysis.unknown(f"what `{name}` copies is not known before it runs", where)
        elif place == len(words) - 1 and len(words) > 1 and not parsed.has("--list-only"):
            analysis.write(word, where)
            if parsed.has("--delete") and name == "rsync":
                analysis.delete(word, where, tree=True)
        else:
            analysis.read(word, where)
    origins = RISKY if remote else frozenset[str]()
    return Output(None, Kind.ANY, origins)


_HOST_PATHS = re.compile(
    r"^(/|/etc|/root|/home|/var|/usr|/proc|/sys|/dev|/boot|~|.*docker\.sock)(:|/?$|,)"
)


def _container(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """docker, podman: a host folder or a host namespace in a container is the host itself."""
    from lorimer.safety.shell.invoke import by_sub_command

    texts = [w.text if w.text is not None else w.head for w in call.arguments]
    joined = " ".join(texts)
    for place, text in enumerate(texts):
        value = ""
        if text in ("-v", "--volume", "--mount"):
            value = texts[place + 1] if place + 1 < len(texts) else ""
        elif text.startswith(("-v", "--volume=", "--mount=")):
            value = re.sub(r"^(-v|--volume=|--mount=)", "", text)
        source = re.search(r"(?:source|src)=([^,]*)", value)
        value = f"{source[1]}:" if source else value
        if value and _HOST_PATHS.match(value):
            analysis.forbid(f"{value} of this machine lies open in the container", call.source)
        elif value.startswith(("/", "~", ".")):
            analysis.read(value.split(":")[0], call.source)
    if re.search(r"--privileged|--(pid|ipc|net|network|userns|uts|cgroupns)[= ]host\b"
                 r"|--cap-add|--security-opt|--device|--volumes-from", joined):  # fmt: skip
        analysis.forbid("the container is not closed off from this machine", call.source)
    return by_sub_command(analysis, call, name, program)


JUDGES = {"fetch": _fetch, "hosts": _hosts, "copy-over": _copy, "container": _container}
