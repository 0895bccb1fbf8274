"""git: the sub-command decides, its options and the configuration given with it count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options, places, table
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, apply, judge_options
from lorimer.safety.shell.judges.network import host_of
from lorimer.safety.shell.judges.wrappers import inner
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word

_HARMLESS_KEY = re.compile(
    r"(?i)^(color\.\w+|core\.(quotepath|abbrev|autocrlf|eol|ignorecase|filemode|commentchar)"
    r"|user\.(name|email)|log\.\w+|advice\.\w+|column\.\w+|diff\.(renames|renamelimit|noprefix"
    r"|mnemonicprefix|algorithm|context|colormoved|wserrorhighlight|suppressblankempty)"
    r"|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|push\.default|pull\.(rebase|ff)"
    r"|merge\.(ff|conflictstyle)|grep\.\w+|status\.\w+|blame\.\w+|safe\.bareRepository|gc\.auto"
    r"|rebase\.autosquash|fetch\.prune|i18n\.\w+|pager\.\w+)(=.*)?$",
    re.DOTALL,
)
_RUNNING_KEY = re.compile(
    r"(?i)^(core\.(?!quotepath)|alias\.|diff\.(external|.+\.(command|textconv))|difftool|mergetool"
    r"|merge\..+\.driver|filter\.|credential|gpg\.|sequence\.|sendemail|uploadpack|receive|protocol\."
    r"|remote\..+\.(uploadpack|receivepack|proxy|vcs)|include|url\.|http\.|pager\.|browser|man\."
    r"|instaweb|web|interactive\.difffilter|trailer|submodule|init\.templatedir|.+\.(\w*program"
    r"|\w*cmd|\w*command|\w*path|\w*tool|\w*editor|\w*pager)$)"
)
_SECRET_KEY = re.compile(r"(?i)extraheader|token|passw|secret|credential|insteadof|proxy$")
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_LISTS = frozenset({"ls-files", "ls-tree"})
_NAME_LISTS = frozenset({"diff", "show", "log", "grep", "diff-tree", "diff-index", "diff-files"})


def judge(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments, permute=False)
    where = call.source
    before = analysis.state
    analysis.state = before.copy()
    try:
        _global_options(analysis, call, name, program, parsed)
        why = _not_trusted(analysis)
        if why:
            analysis.ask(
                Concern.RUNS_CODE, f"repository configuration can run code, and {why}", where
            )
        words = parsed.operands
        if not words:
            if not parsed.has("--exec-path"):
                analysis.raise_to(Effects.READ)
            return Output()
        return _sub_command(analysis, call, words)
    finally:
        analysis.state = before


def _not_trusted(analysis: Analysis) -> str | None:
    """Why the configuration that git obeys here is not one that the person trusts."""
    if analysis.state.folders is None or analysis.state.deeper:
        return "which repository it works in is not known"
    for folder in map(places.resolve, analysis.state.folders):
        roots = [r for r in analysis.roots if places.is_below(folder, r)]
        if not roots:
            return "this repository lies outside the workspace"
        trusted = (
            analysis.trusted if isinstance(analysis.trusted, bool) else analysis.trusted(folder)
        )
        if not trusted:
            return "this folder is not trusted"
        root = max(roots, key=len)
        if places.other_repository(folder, root):
            return f"{folder} belongs to another repository than the workspace"
        if folder != root and analysis.findings.level is not Effects.READ:
            # What ran before it may have put a repository there.
            return f"what stands in {folder} was changed by this command"
    return None


def _global_options(
    analysis: Analysis, call: Invocation, name: str, program: Program, parsed: options.Parsed
) -> None:
    where = call.source
    judge_options(analysis, call, name, program, parsed)
    for option, value, _ in parsed.options:
        if option in ("-c", "--config-env") and value is not None:
            _configuration(analysis, value.text or "", value.known, where)
        elif option == "-C" and value is not None:
            folders = analysis.state.folders
            if value.text is None or folders is None:
                analysis.state.folders = None
                analysis.unknown("which repository it works in is not known", where)
            else:
                joined = [value.text if value.text.startswith("/") else f"{f}/{value.text}"
                          for f in folders]  # fmt: skip
                analysis.state.folders = tuple(places.resolve(j) for j in joined)


def _configuration(analysis: Analysis, text: str, known: str, where: str) -> None:
    """`-c key=value`, `config key value`: most keys that are not listed here name programs."""
    if _HARMLESS_KEY.match(text) and not re.match(
        r"(?i)pager\.\w+=(?!(true|false|0|1|cat|less)$)", text
    ):
        return
    key, _, value = (text or known).partition("=")
    if value.strip() in ("cat", "less", "", "true", "false") and re.search(r"(?i)pager$", key):
        return
    analysis.unknown(f"the setting {key} can name a program", where)
    if not _RUNNING_KEY.match(key) and not value.startswith("!"):
        return
    analysis.forbid(f"`git -c {key}` can make git run a command", where)
    if value:
        with analysis.inside_of("git -c"):
            analysis.run_text(value.lstrip("!"))


def _sub_command(analysis: Analysis, call: Invocation, words: Sequence[Word]) -> Output:
    first, where = words[0], call.source
    sub = first.text
    found = table.table().get(f"git {sub}") if sub is not None else None
    if sub is None or found is None:
        analysis.unknown(f"`git {first}` is not in the table (it may be an alias)", where)
        return Output()
    for word in words[1:] if sub != "config" else ():
        if word.origins & {"secret"} or word.kind is None:
            _operand(analysis, word, where)
    if found.sub:
        return _nested(analysis, call, sub, found, words[1:])
    if sub == "bisect" and len(words) > 2 and words[1].text == "run":
        inner(analysis, call, words[2:], "git bisect run")
    parsed = options.parse(found, words[1:])
    apply(analysis, _named(found.always, sub), where)
    judge_options(analysis, call, f"git {sub}", found, parsed)
    _operands(analysis, call, sub, found, parsed)
    _signatures(analysis, sub, words[1:], where)
    given = {n for n, _, _ in parsed.options} | set(parsed.unknown)
    names = sub in _LISTS or (sub in _NAME_LISTS and "--name-only" in given)
    names = names or (sub == "grep" and bool(given & {"-l", "--files-with-matches"}))
    kind = Kind.NAMES if names else Kind.ANY
    marks = set()
    if names:
        if sub == "ls-files" and given & {"-o", "--others", "-i", "--ignored"}:
            marks.add("hidden")
        if any(places.secretive(w.known.lstrip("-:"), analysis.home) for w in words[1:]):
            marks.add("aimed")
    return Output(None, kind, call.given.origins | marks)


def _signatures(analysis: Analysis, sub: str, words: Sequence[Word], where: str) -> None:
    """Some marks of a format print what a program finds that git runs."""
    if any(re.search(r"%[-+ ]?G[\w?]|%\(signature", w.known) for w in words):
        analysis.ask(
            Concern.RUNS_CODE, f"`git {sub}` runs the program that checks signatures", where
        )


def _named(found: table.Tags | None, sub: str) -> table.Tags | None:
    return replace(found, text=f"`git {sub}` {found.text}") if found is not None else None


def _nested(
    analysis: Analysis, call: Invocation, sub: str, found: Program, words: Sequence[Word]
) -> Output:
    """`git stash list`, `git branch -D x`: bare, by verb, or by option."""
    where = call.source
    parsed = options.parse(found, words)
    judge_options(analysis, call, f"git {sub}", found, parsed)
    _signatures(analysis, sub, words, where)
    operands = parsed.operands
    reads = parsed.has(*found.lists)
    verb = operands[0].text if operands else None
    if not operands:
        acts = any(rule.effect in ("ask", "run") for _, _, rule in parsed.options)
        if not acts:
            apply(analysis, _named(found.bare, sub), where)
        return Output()
    if sub == "config" and any(_SECRET_KEY.search(w.known) for w in operands):
        analysis.ask(Concern.SECRETS, "this setting may hold a password or a token", where)
    if verb == "foreach":
        with analysis.inside_of("git submodule foreach"):
            analysis.run_text(" ".join(w.text or w.known for w in operands[1:]))
    tags = found.sub.get(verb) if verb is not None else None
    if sub == "config" and tags is None and len(operands) == 1 and verb and "." in verb:
        reads = True
    if tags is None:
        key = "*" if not (reads and "-*" in found.sub) else "-*"
        tags = found.sub.get(key)
    if tags is None:
        analysis.unknown(f"`git {sub} {operands[0]}` is not in the table", where)
        return Output()
    apply(analysis, replace(tags, text=f"`git {sub}` {tags.text}"), where)
    _hosts(analysis, operands, tags, where)
    if sub == "config" and verb not in ("get", "list") and "*" in found.sub and not reads:
        texts = [w.text or w.known for w in operands if w.text not in ("set", "unset", "add")]
        if len(texts) > 1:
            _configuration(analysis, f"{texts[0]}={texts[1]}", "", where)
    return Output()


def _hosts(analysis: Analysis, words: Sequence[Word], tags: table.Tags | None, where: str) -> None:
    if tags is None or Concern.NETWORK not in tags.concerns:
        return
    for word in words:
        text = word.text or ""
        far = _SCP.match(text)
        if "://" in text:
            host = host_of(text)
            if host:
                analysis.findings.host(host)
            if text.startswith("ext::") or re.match(r"\w+::", text):
                analysis.forbid("a remote helper of git runs a command", where)
        elif far:
            analysis.findings.host(far[1])
        if re.match(r"(ext|fd)::", text):
            analysis.forbid("a remote helper of git runs a command", where)
            with analysis.inside_of("git ext::"):
                analysis.run_text(text.partition("::")[2])


def _operands(
    analysis: Analysis, call: Invocation, sub: str, found: Program, parsed: options.Parsed
) -> None:
    where = call.source
    words = parsed.operands
    _hosts(analysis, words, found.always, where)
    if found.operands == "write":
        for word in words:
            analysis.write(word, where)
    elif found.operands == "delete":
        for word in words:
            analysis.delete(word, where, tree=parsed.has("-r"))
    if sub == "push":
        for word in words[1:]:
            if (word.text or word.head).startswith(("+", ":")):
                analysis.ask(Concern.DESTRUCTIVE, "it replaces or deletes a branch there", where)
    if sub == "checkout" and any(w.text in (".", "--", "*") for w in call.words):
        analysis.ask(Concern.DESTRUCTIVE, "it throws away changes that are not committed", where)
    if sub == "checkout" and any("." in (w.text or "") or "/" in (w.text or "") for w in words):
        text = "it may throw away changes of a file"
        if not parsed.has("-b", "-B"):
            analysis.ask(Concern.DESTRUCTIVE, text, where)


def _operand(analysis: Analysis, word: Word, where: str) -> None:
    """A revision or a path: paths that lead outside, and secrets, are read."""
    text = word.text or ""
    if re.match(r"^(-|[a-z+]+://)", text) or (
        _SCP.match(text) and "/" not in text.split(":")[0] and "@" in text
    ):
        value = re.match(r"--[\w-]+=(.+)", text)
        if not value:
            return
        text = value[1]
    path = re.sub(r"^:(?:\([^)]*\)|[/!^]*)", "", text) if text.startswith(":") else text
    path = path.partition(":")[2] or path
    if path.startswith(("/", "../", "~")) or path == "..":
        if re.fullmatch(r"\.\.[\w./-]*", path) and not path.startswith("../"):
            return
        analysis.read(path, where)
    elif places.secret("/" + path, analysis.home):
        analysis.read(path, where)
