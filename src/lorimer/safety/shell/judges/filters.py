"""jq and yq: their programs can read the environment and other files."""

from __future__ import annotations

import re

from lorimer.core.effects import Concern
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, by_table
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word

_JQ = frozenset({"jq", "gojq", "jaq"})
_YQ = frozenset({"yq", "tomlq", "xq"})
_ENVIRONMENT = re.compile(r"""(?<![.\w"])(?:str)?env\b(?!\s*:)|(?<![.\w"])ENV\b|\benvsubst\b""")
_LOADS = re.compile(
    r"(?<![.\w])(?:load\w*|import|include|modulemeta|get_search_list|__prog_\w*|eval|system)\b"
)
_ENDLESS = re.compile(r"(?<![.\w\"])(?:repeat|infinite|until|while)\b")
_NAME = re.compile(r"(?<![.\w$@%])[A-Za-z_]\w*")
_FILE = re.compile(r"(?!-)[\w./-]*\.(?:ya?ml|json|toml|xml|properties|csv|tsv)|-")
_HARMLESS = frozenset(
    {
        "add", "alias", "all", "anchor", "and", "any", "array_to_map", "arrays", "as",
        "ascii", "ascii_downcase", "ascii_upcase", "booleans", "capture", "ceil",
        "column", "comments", "contains", "debug", "del", "delpaths", "di",
        "document_index", "done", "downcase", "each", "elif", "else", "empty", "end",
        "ends", "endswith", "error", "explode", "false", "fi", "file_index", "filename",
        "first", "flatten", "floor", "footComment", "foot_comment", "foreach",
        "from_entries", "from_json", "from_props", "from_xml", "from_yaml", "fromjson",
        "getpath", "group_by", "gsub", "has", "headComment", "head_comment", "if",
        "implode", "in", "index", "indices", "inside", "is_key", "iterables", "join",
        "key", "keys", "keys_unsorted", "kind", "last", "leaf_paths", "length", "limit",
        "line", "lineComment", "line_comment", "ltrimstr", "map", "map_values", "match",
        "max", "max_by", "min", "min_by", "not", "null", "nulls", "numbers", "objects",
        "omit", "or", "parent", "path", "paths", "pick", "pivot", "range", "recurse",
        "reduce", "reverse", "round", "rtrimstr", "scalars", "scan", "select", "setpath",
        "shuffle", "sort", "sort_by", "sort_keys", "split", "splitDoc", "split_doc",
        "splits", "startswith", "strings", "style", "sub", "tag", "test", "then",
        "to_entries", "to_json", "to_number", "to_props", "to_string", "to_unix",
        "to_xml", "to_yaml", "tojson", "tonumber", "tostring", "trim", "true", "try",
        "type", "tz", "unique", "unique_by", "upcase", "values", "with", "with_dtf",
        "with_entries",
    }
)  # fmt: skip
"""Functions and words of yq that work on the document alone."""


def _filter(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words: list[Word] = []
    rest = list(call.arguments)
    while rest:
        word = rest.pop(0)
        text = word.text or word.head
        named = text in ("--arg", "--argjson") or text.startswith(("--rawf", "--slurpf"))
        if named and len(rest) > 1:
            rest.pop(0)
            value = rest.pop(0)
            if text.startswith(("--rawf", "--slurpf")):
                analysis.read(value, call.source)
            continue
        words.append(word)
    call = call.with_words([call.words[0], *words])
    parsed = options.parse(program, words)
    if parsed.has("-f", "--from-file"):
        analysis.unknown("its filter stands in a file that is not looked at", call.source)
    programs = parsed.operands
    if name in _JQ and not parsed.has("-f", "--from-file"):
        programs = parsed.operands[:1]
    if name in _YQ and programs and programs[0].text in ("e", "eval", "ea", "eval-all"):
        programs = programs[1:]
        call = call.with_words([w for w in call.words if w is not parsed.operands[0]])
    if name in _YQ:
        programs = [w for n, w in enumerate(programs) if n == 0 or re.search(r"[(|$]", w.known)]
    for word in programs:
        _look(analysis, call, name, word)
    return by_table(analysis, call, name, program)


def _look(analysis: Analysis, call: Invocation, name: str, word: Word) -> None:
    """Look through one program."""
    text, where = word.known, call.source
    if word.text is None and word.kind is Kind.ANY:
        analysis.unknown(f"a part of the filter is not known before it runs: {word.source}", where)
    if _FILE.fullmatch(text) and name not in _JQ:
        return
    if _ENVIRONMENT.search(text):
        analysis.ask(Concern.SECRETS, "its filter reads the environment", where)
    if _LOADS.search(text):
        analysis.unknown("its filter reads other files", where)
    if name in _JQ and _ENDLESS.search(text):
        analysis.unknown("its filter may never end", where)
    if name in _YQ:
        _allowed(analysis, text, where)
    elif name not in _JQ and "(" in text and name != "xmllint":
        analysis.unknown(f"what the filter of {name} does is not in the table", where)


def _allowed(analysis: Analysis, text: str, where: str) -> None:
    """Every function of yq has to be one that works on the document alone."""
    plain = re.sub(r'"(?:[^"\\\\]|\\\\[^(])*"', '""', text)
    plain = re.sub(r"(?:^|(?<=[{,]))\s*\w+\s*:", ":", plain)
    odd = [n for n in _NAME.findall(plain) if n not in _HARMLESS]
    if odd or "\\(" in plain:
        analysis.unknown(f"{odd[0] if odd else text} of the filter is not in the table", where)


JUDGES = {"filter": _filter}
