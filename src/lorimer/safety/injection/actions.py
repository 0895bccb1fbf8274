"""What a tool does, by the verb in its name, and the words by which a person asks for that.

That every value of a call is the user's own does not make it the user's wish: "summarise
report.docx" names the file that a hijacked model would delete. So the action is looked for, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lorimer.safety.injection.forms import Text

_WAYS = (
    (("add", "append", "insert", "attach"),
     "add adding append insert attach include put invite"),
    (("archive",), "archive"),
    (("book", "reserve", "rent"),
     "book booking reserve reserving reservation rent renting order"),
    (("buy", "order", "purchase", "checkout"), "buy order purchase get"),
    (("cancel",), "cancel"),
    (("close", "resolve"), "close resolve finish"),
    (("comment", "reply", "respond", "answer"), "comment reply respond answer write tell"),
    (("create", "make", "new", "open", "start", "schedule", "plan"),
     "create make add new open start schedule plan set book put write save"),
    (("delete", "remove", "erase", "drop", "destroy", "purge", "trash"),
     "delete remove erase drop destroy purge trash throw"),
    (("deploy", "release", "publish"), "deploy release publish ship"),
    (("download", "fetch", "install"), "download fetch install get"),
    (("grant", "allow", "share", "invite"),
     "grant allow share invite give add"),
    (("merge",), "merge"),
    (("move", "rename", "reschedule", "postpone"),
     "move rename reschedule postpone change shift push put"),
    (("pay", "transfer", "refund", "wire"),
     "pay paying transfer refund send wire"),
    (("post", "tweet", "publish"), "post publish write put send share tweet"),
    (("push", "upload", "submit"), "push upload submit send put"),
    (("revoke", "kick", "ban", "block", "unshare"), "revoke remove kick ban block unshare"),
    (("send", "email", "mail", "message", "forward", "notify", "dm", "text"),
     "send sending email e-mail mail message forward notify write tell pay transfer refund text"),
    (("set", "update", "edit", "change", "modify", "adjust", "write", "save", "patch", "put"),
     "set update edit change modify adjust write save replace correct put"),
)  # fmt: skip

_ASKED: dict[str, frozenset[str]] = {}
for _verbs, _words in _WAYS:
    for _verb in _verbs:
        _ASKED[_verb] = _ASKED.get(_verb, frozenset()) | frozenset({*_words.split(), _verb})


def verb_of(tool: str) -> str | None:
    """The verb in a tool's name (`gmail__send_email`, `sendEmail`): `send`; `None` without one."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", tool)
    words = [word.casefold() for word in re.split(r"[^A-Za-z]+", spaced) if word]
    return next((word for word in words if word in _ASKED), None)


def asked_for(tool: str, user: Sequence[Text], more: Mapping[str, Sequence[str]]) -> bool:
    """Whether the user's words have a word for what `tool` does. `more` gives further words by
    verb, or by the whole name of a tool."""
    verb = verb_of(tool)
    words = _ASKED.get(verb or "", frozenset()) | {*more.get(verb or "", ()), *more.get(tool, ())}
    return any(text.says(word) for text in user for word in words)
