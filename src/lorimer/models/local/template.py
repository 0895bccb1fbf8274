"""Chat templates: what stands before and after a message of each role.

A model's own template (jinja, from its file) is rendered once with marker messages in a sandbox,
and what it puts around each marker is kept. A message is then wrapped, never passed through jinja:
its text cannot be trimmed or changed by a template, and the rendering of the first n messages is
always a prefix of the rendering of n + 1.

Text inside a message that spells a control token (such as `<|im_end|>`) is split with a mark, so
that the tokenizer reads it as plain text: nobody can end a message from inside it. `segments`
undoes the mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lorimer.core.canonical import digest
from lorimer.models.local.errors import CorruptModelFile
from lorimer.models.local.gguf import ModelFacts

_MARK = "\x00\x01"
_NUL = "\x00\x00"
_MARKED = re.compile("\x00[\x00\x01]")

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""For models without a template, and in place of templates that do more than wrap messages. Qwen2.5
and SmolLM2 use this form; the tool part of their own templates is not used (one of them shows the
call format with doubled braces), because tools are described in the system message by us."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What stands around each role, and what begins the model's own turn (`start`)."""

    system: tuple[str, str]
    user: tuple[str, str]
    assistant: tuple[str, str]
    start: str
    control_tokens: tuple[str, ...]

    @property
    def form(self) -> str:
        """Names this wrapper: text that was rendered by another one may spell control tokens of
        this model."""
        parts = (self.system, self.user, self.assistant, self.start, self.control_tokens)
        return digest(repr(parts).encode("utf-8", "surrogatepass"))[:12]

    def wrap(self, role: str, text: str) -> str:
        """`text` as one message of `role`, control tokens inside it made harmless."""
        before, after = {"system": self.system, "user": self.user, "assistant": self.assistant}[
            role
        ]
        return before + self.harmless(text) + after

    def harmless(self, text: str) -> str:
        """`text` with a mark inside everything that would be read as a control token."""
        text = text.replace("\x00", _NUL)
        for token in self.control_tokens:
            if token in text:
                text = text.replace(token, token[0] + _MARK + token[1:])
        return text


def segments(rendered: str) -> list[str]:
    """The pieces of a rendering, cut at the marks; each is tokenized on its own."""
    pieces = [""]
    at = 0
    for mark in _MARKED.finditer(rendered):
        pieces[-1] += rendered[at : mark.start()]
        at = mark.end()
        if mark[0] == _NUL:
            pieces[-1] += "\x00"
        else:
            pieces.append("")
    pieces[-1] += rendered[at:]
    return pieces


def plain(rendered: str) -> str:
    """A rendering without its marks, for people."""
    return "".join(segments(rendered))


def wrapper_of(facts: ModelFacts) -> Wrapper:
    """The wrapper of a model.

    Raises:
        CorruptModelFile: its template cannot be rendered at all.
    """
    control = tuple(t for t in facts.control_tokens if len(t) > 1)
    return _wrapper(facts.chat_template or CHATML, facts.bos_token, facts.eos_token, control)


@lru_cache(maxsize=8)
def _wrapper(template: str, bos: str, eos: str, control: tuple[str, ...]) -> Wrapper:
    found = _extract(template, bos, eos, control)
    return found or _must(_extract(CHATML, bos, eos, control))


def _must(wrapper: Wrapper | None) -> Wrapper:
    if wrapper is None:
        raise CorruptModelFile("The chat template of this model cannot be rendered.")
    return wrapper


_S, _U, _A, _V, _B = ("\u2402s\u2402", "\u2402u\u2402", "\u2402a\u2402", "\u2402v\u2402",
                      "\u2402b\u2402")  # fmt: skip


def _extract(template: str, bos: str, eos: str, control: tuple[str, ...]) -> Wrapper | None:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

    def fail(message: str) -> None:
        raise TemplateError(message)

    environment.globals["raise_exception"] = fail

    def render(messages: Sequence[tuple[str, str]], start: bool = False) -> str:
        return environment.from_string(template).render(
            messages=[{"role": role, "content": content} for role, content in messages],
            add_generation_prompt=start,
            bos_token=bos,
            eos_token=eos,
        )

    chat = [("system", _S), ("user", _U), ("assistant", _A), ("user", _V), ("assistant", _B)]
    try:
        whole = render(chat)
        begun = render(chat[:4], start=True)
        closed = render(chat[:4])
    except (TemplateError, TypeError, ValueError, KeyError, AttributeError):
        return None
    return _cut(whole, closed, begun, control)


def _cut(whole: str, closed: str, begun: str, control: tuple[str, ...]) -> Wrapper | None:
    pattern = "(.*)".join(re.escape(marker) for marker in (_S, _U, _A, _V, _B))
    found = re.fullmatch("(.*)" + pattern + "(.*)", whole, re.DOTALL)
    if not found or not begun.startswith(closed):
        return None
    lead, after_system, after_user, after_assistant, _, end = found.groups()
    start = begun[len(closed) :]
    after_v = closed[closed.index(_V) + len(_V) :]
    before_assistant = after_user.removeprefix(after_v)
    before_user = after_assistant.removeprefix(end)
    wrapper = Wrapper(
        system=(lead, after_system.removesuffix(before_user)),
        user=(before_user, after_v),
        assistant=(before_assistant, end),
        start=start,
        control_tokens=control,
    )
    joined = "".join(
        wrapper.wrap(role, marker)
        for role, marker in zip(
            ("system", "user", "assistant", "user", "assistant"), (_S, _U, _A, _V, _B), strict=True
        )
    )
    return wrapper if joined == whole and start else None
