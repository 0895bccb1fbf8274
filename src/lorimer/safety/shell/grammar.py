"""Shell text to a syntax tree, and a check that the tree and bash agree on every byte.

Only node kinds listed here are understood; anything else makes the text "not understood". Beyond
the kinds, each token is held against bash's own rules for it: no byte may be lost between tokens,
no word may contain what bash would take as an operator or a quote, a comment begins where bash
begins one, a here-document ends where bash ends it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

NODES_MAX = 6_000
DEPTH_MAX = 90
TOO_MUCH = "too much:"

NAMED = frozenset(
    {
        "program", "redirected_statement", "for_statement", "c_style_for_statement",
        "variable_assignment", "variable_assignments", "unary_expression", "binary_expression",
        "ternary_expression", "postfix_expression", "parenthesized_expression", "while_statement",
        "do_group", "if_statement", "elif_clause", "else_clause", "case_statement", "case_item",
        "function_definition", "compound_statement", "subshell", "pipeline", "list",
        "negated_command", "test_command", "declaration_command", "unset_command", "command",
        "command_name", "subscript", "file_redirect", "heredoc_redirect", "heredoc_start",
        "heredoc_body", "heredoc_content", "heredoc_end", "herestring_redirect",
        "arithmetic_expansion", "brace_expression", "concatenation", "string", "array", "number",
        "simple_expansion", "expansion", "command_substitution", "process_substitution", "word",
        "string_content", "raw_string", "ansi_c_string", "comment", "variable_name",
        "special_variable_name", "file_descriptor", "test_operator", "extglob_pattern", "regex",
    }
)  # fmt: skip
TOKENS = frozenset(
    {
    "for", "select", "in", "((", "))", ";", ",", "=", "++", "--", "+=", "-=", "*=", "/=", "%=",
    "**=", "<<=", ">>=", "&=", "^=", "|=", "||", "-o", "&&", "-a", "|", "^", "&", "==", "!=", "<",
    ">", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "**", "(", ")", "while", "until", "do",
        "done", "if", "then", "fi", "elif", "else", "case", "esac", ";;", ";&", ";;&", "function",
        "{", "}", "|&", "!", "[", "]", "[[", "]]", "declare", "typeset", "export", "readonly",
    "local", "unset", "unsetenv", "=~", "&>", "&>>", "<&", ">&", ">|", "<&-", ">&-", "<<-", "<<<",
        "?", ":", "~", "$((", "$[", "..", "``", "$", '"', "#", "${", "@", ":=", ":-", ":+", ":?",
    "%%", "//", "/#", "/%", ",,", "^^", "U", "u", "L", "Q", "E", "P", "A", "K", "a", "k", "$(",
        "`", "$`", "<(", ">(", "##", "\n",
    }
)  # fmt: skip

_BLANK = re.compile(r"(?:[ \t\n]|\\\n)*")
_WORD = re.compile(r"(?:[^\\\s\"'`$;&|<>()\n]|\\[^\n]|\\\n)*", re.DOTALL)
_LEAF = {
    "raw_string": re.compile(r"'[^']*'"),
    "ansi_c_string": re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL),
    "string_content": re.compile(r"(?:[^\"`\\$]|\\.|\\\n|\$(?![\w({@*#?$!\[-]))*", re.DOTALL),
    "variable_name": re.compile(r"[A-Za-z_]\w*|\d+", re.ASCII),
    "special_variable_name": re.compile(r"[@*#?$!_0-]"),
    "file_descriptor": re.compile(r"\d+|\{\w+\}", re.ASCII),
    "number": re.compile(r"[-+]?(?:0[xX])?[\w#@]+", re.ASCII),
    "test_operator": re.compile(r"-[a-zA-Z]+|=~|[=!]=|[<>=]"),
    "comment": re.compile(r"#[^\n]*"),
    "heredoc_start": re.compile(r"[^\n]*"),
    "heredoc_content": re.compile(r"(?:[^`\\$]|\\.|\\\n|\$(?![\w({@*#?$!\[-]))*", re.DOTALL),
    "extglob_pattern": re.compile(r"(?:[^`$;&<>\n]|\$(?![\w({]))*"),
    "regex": re.compile(r"(?:[^`$;&<>\n]|\$(?![\w({]))*"),
}
_OPENS_COMMENT = " \t\n;&|()"
_LITERAL_GAPS = frozenset({"string", "heredoc_body"})

_local = threading.local()


def parser() -> Parser:
    """This thread's parser, made once."""
    found: Parser | None = getattr(_local, "parser", None)
    if found is None:
        import tree_sitter
        import tree_sitter_bash

        found = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        _local.parser = found
    return found


def parse(text: str) -> Node:
    """The root node; never fails on any text (errors are nodes)."""
    tree = parser().parse(text.encode("utf-8", "replace"))
    if tree is None:
        raise AssertionError("a parser with a language and no limit returns a tree")
    return tree.root_node


def of(node: Node) -> str:
    """The source text of `node`."""
    return (node.text or b"").decode("utf-8", "replace")


def faults(root: Node, source: bytes) -> Iterator[str]:
    """Say where tree and bash may disagree; nothing when they agree."""
    for rest in (source[: root.start_byte], source[root.end_byte :]):
        if not _BLANK.fullmatch(rest.decode("utf-8", "replace")):
            yield "text before or after all statements"
    stack = [(root, 0)]
    count = 0
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > NODES_MAX:
            yield f"{TOO_MUCH} it has more than {NODES_MAX} parts"
            return
        if depth > DEPTH_MAX:
            yield f"{TOO_MUCH} it is nested more than {DEPTH_MAX} deep"
            return
        fault = _fault(node, source)
        if fault:
            yield fault
        children = node.children
        fault = _gaps(node, children, source)
        if fault:
            yield fault
        stack.extend((child, depth + 1) for child in children)


def _fault(node: Node, source: bytes) -> str | None:
    kind = node.type
    if kind == "ERROR" or node.is_missing:
        return f"the grammar does not fit at {_short(of(node)) or 'the end'}"
    if node.is_named:
        if kind not in NAMED:
            return f"`{kind}` is a construct we do not know"
    elif kind.strip() not in TOKENS and kind != "\n":
        return f"`{_short(kind)}` is a token we do not know"
    if node.child_count:
        return None
    text = of(node)
    if kind == "word":
        return None if _WORD.fullmatch(text) else f"`{_short(text)}` is not one plain word"
    rule = _LEAF.get(kind)
    if rule and not rule.fullmatch(text):
        return f"`{_short(text)}` may be read in two ways"
    if kind == "comment" and node.start_byte:
        before = source[node.start_byte - 1 : node.start_byte].decode("latin-1")
        if before not in _OPENS_COMMENT:
            return "a # in the middle of a word is no comment to bash"
    return None


def _gaps(node: Node, children: list[Node], source: bytes) -> str | None:
    """Text between two tokens must be blank, and two arguments must not touch."""
    if not children or node.type in ("ERROR",):
        return None
    place = node.start_byte
    literal = node.type in _LITERAL_GAPS
    for number, child in enumerate([*children, None]):
        begin = child.start_byte if child else node.end_byte
        gap = source[place:begin].decode("utf-8", "replace")
        if gap and not (literal and not gap.strip()):
            if node.type == "concatenation" or not _BLANK.fullmatch(gap):
                return f"`{_short(gap)}` was lost between two parts"
            if "\\" in gap and _joins(source, place, begin):
                return "a backslash at the end of a line joins two words"
        if child is None:
            break
        if not gap and number and node.type == "command" and _touch(children[number - 1], child):
            return f"`{_short(of(child))}` touches the word before it"
        place = child.end_byte
    return None


def _touch(left: Node, right: Node) -> bool:
    ends = ("(", ")", "<", ">", ";", "&", "|", "\n")
    kinds = {"file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment"}
    if right.type in kinds or left.type in kinds:
        return left.type == "variable_assignment"
    return left.is_named and right.is_named and not of(left).endswith(ends)


def _joins(source: bytes, begin: int, end: int) -> bool:
    """Whether a backslash and new line stand directly between two words."""
    blank = b" \t\n"
    before = source[begin - 1 : begin]
    after = source[end : end + 1]
    gap = source[begin:end]
    bare = gap.replace(b"\\\n", b"")
    return not bare and before not in (b"", *(blank[i : i + 1] for i in range(3))) and after != b""


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def heredoc_faults(root: Node, source: bytes) -> Iterator[str]:
    """Hold each here-document against bash's rule for where it begins and ends."""
    lines_used: set[int] = set()
    for node in _kinds(root, "heredoc_redirect"):
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        end = next((c for c in node.children if c.type == "heredoc_end"), None)
        if start is None or end is None:
            yield "a here-document without an end"
            continue
        line = start.start_point[0]
        if line in lines_used:
            yield "two here-documents on one line"
        lines_used.add(line)
        dash = any(c.type == "<<-" for c in node.children)
        delimiter = re.sub(r"\\(.)", r"\1", re.sub(r"[\"']", "", of(start)))
        if "$" in of(start) or not delimiter:
            yield "a here-document whose end is not a plain word"
        newline = source.find(b"\n", start.end_byte)
        body = source[newline + 1 :].decode("utf-8", "replace") if newline >= 0 else ""
        length = 0
        for text in body.split("\n"):
            if (text.lstrip("\t") if dash else text) == delimiter:
                break
            length += len(text.encode("utf-8", "replace")) + 1
        place = newline + 1 + length
        indent = len(source[place:]) - len(source[place:].lstrip(b"\t")) if dash else 0
        if newline < 0 or end.start_byte not in (place, place + indent):
            yield "a here-document that ends elsewhere for bash"


def _kinds(root: Node, kind: str) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == kind:
            yield node
        stack.extend(node.children)
