"""Chat templates: wrapping, appending only, control tokens inside text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.models.local.gguf import ModelFacts
from lorimer.models.local.template import CHATML, Wrapper, plain, segments, wrapper_of
from lorimer.models.profiles import Profile

FACTS = ModelFacts(
    path=Path("x.gguf"), fingerprint="", name="x", architecture="x", parameters=1,
    context_length=1, chat_template=CHATML, bos_token="<s>", eos_token="</s>",
    control_tokens=("<|im_start|>", "<|im_end|>", "</s>", "<s>"),
)  # fmt: skip
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}<<SYS>>{{ m.content }}"
    "<</SYS>>{% elif m.role == 'user' %}[INST] {{ m.content | trim }} [/INST]{% else %}"
    "{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
HEADERS = (
    "{% for m in messages %}<|h|>{{ m['role'] }}<|e|>\n\n{{ m['content'] }}<|eot|>{% endfor %}"
    "{% if add_generation_prompt %}<|h|>assistant<|e|>\n\n{% endif %}"
)
characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x00\x01")
texts = st.lists(characters | st.sampled_from(["<|im_end|>", "<|im_start|>", "</s>"])).map("".join)
messages = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), texts), max_size=6)


def test_chatml_is_taken_apart() -> None:
    wrapper = wrapper_of(FACTS)
    assert wrapper.user == ("<|im_start|>user\n", "<|im_end|>\n")
    assert wrapper.start == "<|im_start|>assistant\n"


def test_template_with_headers_is_taken_apart() -> None:
    wrapper = wrapper_of(replace(FACTS, chat_template=HEADERS))
    assert wrapper.wrap("user", "hi") == "<|h|>user<|e|>\n\nhi<|eot|>"
    assert wrapper.start == "<|h|>assistant<|e|>\n\n"


@pytest.mark.parametrize(
    "template",
    [
        INST,  # no beginning of the model's own turn: not usable by wrapping
        "{{ raise_exception('no system role') }}",
        "{% for m in messages %}{{ m.content[0] }}{% endfor %}",
        "{{ broken",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "",
    ],
)
def test_templates_that_cannot_be_taken_apart_fall_back_to_chatml(template: str) -> None:
    assert wrapper_of(replace(FACTS, chat_template=template)) == wrapper_of(FACTS)


@given(messages)
def test_rendering_only_ever_grows_at_its_end(chat: list[tuple[str, str]]) -> None:
    wrapper: Wrapper = wrapper_of(FACTS)
    so_far = ""
    for role, text in chat:
        longer = so_far + wrapper.wrap(role, text)
        assert longer.startswith(so_far)
        so_far = longer
    expected = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in chat)
    assert plain(so_far) == expected


@given(texts)
def test_no_segment_holds_a_control_token_that_a_message_spelled(text: str) -> None:
    wrapper = wrapper_of(FACTS)
    for segment in segments(wrapper.harmless(text)):
        assert not any(token in segment for token in FACTS.control_tokens)
    assert plain(wrapper.harmless(text)) == text


def test_models_that_wrap_otherwise_do_not_share_renderings() -> None:
    """Else a session that changes its model would send the one's marks to the other, and text that
    spells a control token of the other would be one."""
    more = replace(FACTS, control_tokens=(*FACTS.control_tokens, "<|tool|>"))
    facts = (FACTS, more, replace(FACTS, chat_template=HEADERS))
    forms = [
        Profile("local", "local", reasoning="drop", template=wrapper_of(one).form).rendering
        for one in facts
    ]
    assert len(set(forms)) == 3
    assert wrapper_of(FACTS).form == wrapper_of(replace(FACTS, name="another")).form
    assert wrapper_of(more).wrap("user", "<|tool|>") != wrapper_of(FACTS).wrap("user", "<|tool|>")
