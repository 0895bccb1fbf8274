"""Nodes to words: what each expansion becomes, and whatever runs inside it is judged on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lorimer.core.effects import Concern
from lorimer.safety.shell import environment, escapes
from lorimer.safety.shell.grammar import of
from lorimer.safety.shell.words import (
    Kind,
    Piece,
    Quote,
    TooManyWords,
    Unknown,
    Word,
    assemble,
    unknown,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from lorimer.safety.shell.walk import Walker

SUBSTITUTION = re.compile(r"\$\(|`|\$\{|<\(|>\(")
_VARIABLE = re.compile(r"\$[\w@*#?!$-]")
_VALUES = frozenset(
    {
        "raw_string", "string", "simple_expansion", "ansi_c_string", "expansion",
        "command_substitution", "process_substitution", "concatenation",
    }
)  # fmt: skip
_SPECIAL_NUMBERS = frozenset("?#$!")
_SETTERS = frozenset(
    {
        "read", "mapfile", "readarray", "getopts", "printf", "let", "eval", "source", ".", "wait",
        "declare", "typeset", "local", "export", "readonly", "unset", "coproc",
    }
)  # fmt: skip
_SLICE = re.compile(r"\$\{(?:\w+|[@*#?!$-])(?:\[.*?\])?:(?![-=?+])(.*)\}", re.S)
_HISTORY = re.compile(r"(?<!\[)!(?:[A-Za-z0-9!$?-])")


class Expander:
    """Works for one `Walker`, which judges the commands found inside words."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.analysis = walker.analysis

    def words(self, node: Node) -> list[Word]:
        """The words that an argument becomes: several, one or none."""
        try:
            return assemble(self.pieces(node), of(node), split=True, home=self.analysis.home)
        except TooManyWords as fault:
            self.analysis.unknown(f"{fault}", of(node))
            return [unknown(of(node))]

    def single(self, node: Node) -> Word:
        """The one word that a value or the target of a redirection becomes."""
        return assemble(self.pieces(node), of(node), split=False, home=self.analysis.home)[0]

    def pieces(self, node: Node, quote: Quote = Quote.NONE) -> list[Piece]:
        kind = node.type
        if kind == "$":
            self.analysis.unknown("not understood: a $ that stands alone", "$")
        if kind in ("word", "extglob_pattern", "regex"):
            if not node.named_child_count and SUBSTITUTION.search(re.sub(r"\\.", "", of(node))):
                self.hidden(of(node), of(node))
            return [*self._escaped(of(node), quote), *self._children(node, quote)]
        if kind == "raw_string":
            return [("", Quote.QUOTED), *_quoted(of(node)[1:-1])]
        if kind == "ansi_c_string":
            text = escapes.decode(of(node)[2:-1]).split("\0")[0]
            return [("", Quote.QUOTED), *_quoted(text)]
        if kind == "string":
            return [("", Quote.QUOTED), *self._string(node)]
        if kind == "heredoc_body":
            return self._string(node)
        if kind in ("concatenation", "command_name", "translated_string"):
            return [p for c in node.children for p in self.pieces(c, quote)]
        if kind == "simple_expansion":
            name = of(node)[1:]
            return self._variable(name, quote, of(node))
        if kind == "expansion":
            return self._expansion(node, quote)
        if kind == "command_substitution":
            return self._substitution(node, quote)
        if kind == "process_substitution":
            origins = self.walker.substitute(node).origins
            return [(Unknown(Kind.PIPE, origins), Quote.QUOTED)]
        if kind == "arithmetic_expansion":
            self.arithmetic(node)
            self.walker.assigned_in_arithmetic(node)
            return [(Unknown(Kind.NUMBER), quote)]
        if kind in ("number", "brace_expression") and not node.named_child_count:
            return [(c, quote) for c in of(node)]
        if kind == "brace_expression":
            return [(c, quote) for c in of(node)]
        if kind == "array":
            for child in node.named_children:
                self.words(child)
            return [(Unknown(), quote)]
        if node.named_child_count:
            self.visit(node)
        return [(c, quote) for c in of(node)]

    def visit(self, node: Node) -> None:
        """Judge whatever runs inside `node`, whose own value is of no interest."""
        for child in node.named_children:
            if child.type == "subscript":
                self.subscript(child)
            elif child.type == "arithmetic_expansion":
                self.arithmetic(child)
            else:
                self.pieces(child)

    def _children(self, node: Node, quote: Quote) -> list[Piece]:
        return [p for c in node.named_children for p in self.pieces(c, quote)]

    def _escaped(self, text: str, quote: Quote) -> list[Piece]:
        out: list[Piece] = []
        if _HISTORY.search(text):
            self.analysis.unknown("! recalls an earlier command where history is on", text)
        place = 0
        while place < len(text):
            if text[place] == "\\" and place + 1 < len(text):
                if text[place + 1] != "\n":
                    out.append((text[place + 1], Quote.QUOTED))
                place += 2
                continue
            out.append((text[place], quote))
            place += 1
        return out

    def _string(self, node: Node) -> list[Piece]:
        """Parts of a double-quoted string; blanks between them belong to it."""
        source = node.text or b""
        base = node.start_byte
        first, last = (1, len(source) - 1) if node.type == "string" else (0, len(source))
        out: list[Piece] = []
        place = first
        for child in node.children:
            begin, end = child.start_byte - base, child.end_byte - base
            if begin < first or end > last:
                continue
            out += self._literal_part(source[place:begin], node)
            if child.type in ("string_content", "heredoc_content"):
                text = of(child)
                if _HISTORY.search(text) and node.type == "string":
                    self.analysis.unknown("! recalls an earlier command where history is on", text)
                out += self._literal_part(source[begin:end], node)
            else:
                inner = of(child)
                out += _quoted(inner[: len(inner) - len(inner.lstrip())])
                out += self.pieces(child, Quote.QUOTED)
            place = end
        return out + self._literal_part(source[place:last], node)

    def _literal_part(self, raw: bytes, node: Node) -> list[Piece]:
        """Literal text of a string; should bash find a substitution in it, that is judged."""
        text = raw.decode("utf-8", "replace")
        if SUBSTITUTION.search(re.sub(r"\\.", "", text)) or _VARIABLE.search(
            re.sub(r"\\.", "", text)
        ):
            self.hidden(text, of(node))
            return [(Unknown(), Quote.QUOTED)]
        return _quoted(_unescape(raw))

    def _variable(self, name: str, quote: Quote, source: str) -> list[Piece]:
        analysis = self.analysis
        loose = Quote.QUOTED if quote is Quote.QUOTED else Quote.EXPANDED
        if name in _SPECIAL_NUMBERS:
            return [(Unknown(Kind.NUMBER), loose)]
        known = name in analysis.state.variables or analysis.state.anything
        value = analysis.state.lookup(name)
        if name in "@*" and analysis.state.arguments is not None:
            return self._arguments(analysis.state.arguments)
        if value is None and not known:
            if name == "IFS":
                return [(" ", loose)]
            if name == "HOME":
                return [(c, loose) for c in analysis.home]
            folders = analysis.state.folders
            if name == "PWD" and folders is not None and len(folders) == 1:
                return [(c, loose) for c in folders[0]]
            if environment.secret_name(name):
                analysis.ask(Concern.SECRETS, f"${name} may hold a secret", source)
                return [(Unknown(Kind.ANY, frozenset({"secret"})), loose)]
            if name in analysis.environment:
                return [(c, loose) for c in analysis.environment[name]]
        if value is None:
            return [(Unknown(), loose)]
        if value.text is None:
            return [(Unknown(value.kind or Kind.ANY, value.origins), loose)]
        if value.text == "" and loose is Quote.QUOTED:
            return [("", Quote.QUOTED)]
        return [(c, loose) for c in value.text]

    def _arguments(self, words: tuple[Word, ...]) -> list[Piece]:
        """`$@` and `$*` of a function or a script text whose arguments are known."""
        out: list[Piece] = []
        for number, word in enumerate(words):
            if number:
                out.append((" ", Quote.EXPANDED))
            if word.text is None:
                out.append((Unknown(word.kind or Kind.ANY, word.origins), Quote.EXPANDED))
            else:
                out += [("", Quote.QUOTED), *_quoted(word.text)]
        return out

    def _expansion(self, node: Node, quote: Quote) -> list[Piece]:
        """`${…}`: known only in its plain form, and then the variable's value."""
        parts = [c for c in node.children if c.type not in ("${", "}")]
        if len(parts) == 1 and parts[0].type in ("variable_name", "special_variable_name"):
            return self._variable(of(parts[0]), quote, of(node))
        self.visit(node)
        self._slice(of(node))
        loose = Quote.QUOTED if quote is Quote.QUOTED else Quote.EXPANDED
        operators = {c.type for c in parts if not c.is_named}
        if "!" in operators and parts[0].type == "!":
            self.analysis.unknown("the variable that it means is not known before", of(node))
        if "@" in operators:
            self.analysis.unknown("@P runs what stands in the value", of(node))
            name = next((of(c) for c in parts if c.type == "variable_name"), "")
            value = self.analysis.state.lookup(name)
            if value is not None and value.text:
                self.hidden(value.text, of(node))
        if {"=", ":="} & operators:
            name = next((of(c) for c in parts if c.type == "variable_name"), "")
            self.analysis.state.assign(name, None)
            environment.judge(self.analysis, name, None, of(node))
        for part in parts:
            if part.type == "variable_name" and environment.secret_name(of(part)):
                self.analysis.ask(Concern.SECRETS, f"${of(part)} may hold a secret", of(node))
        if parts and parts[0].type == "#" and len(parts) == 2:
            return [(Unknown(Kind.NUMBER), loose)]
        return [(Unknown(), loose)]

    def _slice(self, text: str) -> None:
        """`${s:OFFSET:LENGTH}`: both are evaluated as arithmetic."""
        found = _SLICE.fullmatch(text)
        if found is None:
            return
        plain = re.sub(r"\$\{#\w+\}", "0", found[1])
        for match in re.finditer(r"\$\{(\w+)\}|\$(\w+)|([A-Za-z_]\w*)", plain):
            value = self.analysis.state.lookup(next(n for n in match.groups() if n))
            if value is None or not (
                re.fullmatch(r"\d+", value.text) if value.text is not None
                else value.kind is Kind.NUMBER
            ):  # fmt: skip
                self.analysis.unknown("an offset is evaluated as an expression", text)
                return
        plain = re.sub(r"\$\{\w+\}|\$\w+|[A-Za-z_]\w*", "0", plain)
        if not re.fullmatch(r"(?:[\s\d()+*/%:-]|\$\(\()*", plain):
            self.analysis.unknown("an offset is evaluated as an expression", text)

    def _substitution(self, node: Node, quote: Quote) -> list[Piece]:
        loose = Quote.QUOTED if quote is Quote.QUOTED else Quote.EXPANDED
        output = self.walker.substitute(node)
        if output.text is not None and not output.origins:
            text = output.text.rstrip("\n")
            return [("", Quote.QUOTED)] if not text and quote else [(c, loose) for c in text]
        return [(Unknown(output.kind, output.origins), loose)]

    # arithmetic

    def subscript(self, node: Node) -> None:
        """`name[index]`: the index is evaluated, the name is not."""
        name = node.child_by_field_name("name")
        text = name is not None and of(name) in self.analysis.state.associative
        for child in node.named_children:
            if text and child.type == "word" and re.fullmatch(r"\w+", of(child), re.ASCII):
                continue
            if (name is None or child.id != name.id) and of(child) not in ("@", "*"):
                self.arithmetic(child, itself=True)

    def arithmetic(self, node: Node, *, itself: bool = False) -> None:
        """Judge an arithmetic expression: variables in it are expressions themselves."""
        stack = [node] if itself else list(node.named_children)
        while stack:
            child = stack.pop()
            kind = child.type
            if kind in ("variable_name", "word", "number"):
                if kind != "number":
                    self._operand(of(child), of(node))
            elif kind in _VALUES:
                self._operand_word(self.single(child), of(node))
            elif kind == "comment":
                self.analysis.unknown("a comment in arithmetic", of(node))
            else:
                stack.extend(child.named_children)

    def _operand(self, name: str, where: str) -> None:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            self.text_operand(name, where)
            return
        value = self.analysis.state.lookup(name)
        if value is not None:
            self._operand_word(value, where)
        elif name in self.analysis.state.variables or self.analysis.state.anything:
            self.analysis.unknown(f"the value of {name} is evaluated as an expression", where)
        elif not re.fullmatch(r"\d+", name):
            self.analysis.unknown(f"{name} comes from outside and is evaluated", where)

    def _operand_word(self, word: Word, where: str) -> None:
        if word.text is not None:
            self.text_operand(word.text, where)
        elif word.kind is not Kind.NUMBER:
            self.analysis.unknown(f"{word.source} is evaluated as an expression", where)

    def text_operand(self, text: str, where: str) -> None:
        """A text that bash evaluates as arithmetic or as a subscript."""
        if re.fullmatch(r"[\s\d+*/%()<>=!&|^~?:,-]*", text):
            return
        if SUBSTITUTION.search(text):
            self.hidden(text, where)
        elif "[" in text or not re.fullmatch(r"\s*\w+\s*", text, re.ASCII):
            self.analysis.unknown(f"{text} is evaluated as an expression", where)

    def hidden(self, text: str, where: str) -> None:
        """A quoted text that is expanded after all: commands in it run."""
        self.analysis.unknown("a quoted text is evaluated, and commands in it run", where)
        with self.analysis.inside_of("evaluated text"):
            self.analysis.run_text(': "' + text.replace('"', "") + '"')


def _quoted(text: str) -> list[Piece]:
    return [(c, Quote.QUOTED) for c in text]


_DQ_ESCAPE = re.compile(r'\\([$`"\\])|\\\n')


def _unescape(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return _DQ_ESCAPE.sub(lambda m: m[1] or "", text)


def names_assigned(node: Node) -> Iterator[tuple[str, bool]]:
    """(name, whether only numbers are assigned) for every assignment below `node`."""
    stack = [node]
    while stack:
        child = stack.pop()
        if child.type == "variable_assignment":
            name = child.child_by_field_name("name")
            value = child.child_by_field_name("value")
            number = value is not None and value.type in ("number", "arithmetic_expansion")
            if name is not None:
                yield of(name).split("[")[0], number
        elif child.type == "for_statement":
            name = child.child_by_field_name("variable")
            if name is not None:
                yield of(name), False
        elif child.type == "command":
            words = [re.sub(r"[\\\"']", "", of(c)) for c in child.named_children]
            if _SETTERS.intersection(words):
                for word in words:
                    found = re.fullmatch(r"(-\w)?([A-Za-z_]\w*?)(?:[-+*/%&|^<>[=].*)?", word, re.S)
                    if found is not None:
                        yield found[2], False
                yield from ((name, False) for name in ("REPLY", "MAPFILE", "OPTARG", "OPTIND"))
        elif child.type in ("declaration_command", "unset_command"):
            for part in child.named_children:
                if part.type in ("variable_name", "word", "string", "raw_string", "concatenation"):
                    found = re.match(r"[\"']?([A-Za-z_]\w*)", of(part), re.ASCII)
                    if found is not None:
                        yield found[1], False
        elif child.type in ("postfix_expression", "binary_expression", "unary_expression"):
            pass
        stack.extend(child.children)
