"""The host part of a URL or argument, in the one spelling that rules and connections use.

Different programs read the same odd host differently (`0x7f.1`, `127.1`, `①②⑦.0.0.1`); here every
spelling that anybody reads as an address becomes that address, and what is left is a plain name.
Numbers and lengths: RFC 1035 2.3.4 (labels of 63, names of 253), inet_aton(3) for old IPv4 forms,
RFC 5891 and UTS 46 for international names.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass

from lorimer.safety.network.refused import NetworkRefused, Why

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LAST_IS_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
_LONGEST_GIVEN = 1024
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Host:
    """A host that was understood.

    Attributes:
        name: lower case ASCII without a trailing dot; for an address its usual text, no brackets.
        address: when the host is an address and not a name.
        given: as it was written.
        odd: whether it is an address in a spelling that programs read differently.
    """

    name: str
    address: Address | None
    given: str
    odd: bool = False

    def __str__(self) -> str:
        """As it stands in a URL: IPv6 in brackets."""
        return f"[{self.name}]" if isinstance(self.address, ipaddress.IPv6Address) else self.name

    @property
    def change(self) -> str:
        """What was changed, in words, or empty."""
        return "" if self.given == str(self) else f"the host {self.given!r} is {self}"


def parse_host(text: str) -> Host:
    """Understand the host `text` (IPv6 in brackets, as in a URL).

    Raises:
        NetworkRefused: it is not a host, or one that cannot be known.
    """
    if not text:
        raise _bad(text, "The host is empty", "Give a host, e.g. https://example.com/.")
    if len(text) > _LONGEST_GIVEN:
        raise _bad(text[:60], f"The host has {len(text):,} characters", "Give a real host name.")
    if text.startswith("[") and "%" in text:
        raise _bad(
            text,
            f"The host {text!r} has a zone, which means one network card of this machine",
            "Write the address without the part from the percent sign on.",
        )
    for char in text:
        if is_unseen(char) or char in "\\/?#@%\"'<>^`{|}$*!&();,=+~":
            raise _bad(
                text,
                f"The host {text!r} contains {named(char)}, which no host name has",
                "Write the plain host name.",
            )
    if text.startswith("["):
        return _bracketed(text)
    name = text.lower() if text.isascii() else _international(text)
    if name.endswith("."):
        name = name[:-1]
    labels = name.split(".")
    if _LAST_IS_NUMBER.fullmatch(labels[-1]):
        address = _old_ipv4(labels)
        if address is None:
            raise _bad(
                text,
                f"The host {text!r} ends in a number and is not an IPv4 address",
                "Write an address as four numbers from 0 to 255, or a name.",
            )
        return Host(str(address), address, text, odd=str(address) != text)
    wrong = next((label for label in labels if not _LABEL.fullmatch(label)), None)
    if wrong is not None or len(name) > _LONGEST_NAME:
        what = f"the part {wrong!r}" if wrong is not None else f"{len(name)} characters"
        raise _bad(
            text,
            f"The host {text!r} is not a host name: it has {what}",
            "A name has parts of 1 to 63 letters, digits and inner hyphens, joined by single dots.",
        )
    return Host(name, None, text)


def text_of(address: Address) -> str:
    """The usual text of an address, the same on every Python version."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)


def is_unseen(char: str) -> bool:
    """Control, format (zero-width, bidi), surrogate, private or separator characters."""
    return unicodedata.category(char)[0] in "CZ"


def named(char: str) -> str:
    """A character so that a reader can tell which it is."""
    seen = "" if is_unseen(char) else f"{char!r} "
    name = unicodedata.name(char, "")
    return f"{seen}U+{ord(char):04X}{f' ({name.lower()})' if name else ''}"


def _bracketed(text: str) -> Host:
    inner = text[1:-1] if text.endswith("]") else ""
    try:
        address = ipaddress.IPv6Address(inner) if inner.isascii() else None
    except ValueError:
        address = None
    if address is None:
        raise _bad(
            text,
            f"The host {text!r} is not an IPv6 address in brackets",
            "Write e.g. [2001:db8::1].",
        )
    return Host(text_of(address), address, text)


def _international(text: str) -> str:
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as fault:
        raise _bad(
            text,
            f"The host {text!r} is not an international name: {fault}",
            "Write it in its ASCII form (xn--…).",
        ) from fault


def _old_ipv4(parts: list[str]) -> ipaddress.IPv4Address | None:
    """Read 1 to 4 decimal, octal (0…) or hexadecimal (0x…) parts as inet_aton does."""
    if len(parts) > 4:
        return None
    numbers = []
    for part in parts:
        try:
            if part.startswith("0x"):
                numbers.append(int(part[2:] or "0", 16))
            elif re.fullmatch(r"[0-9]{1,64}", part):
                numbers.append(int(part, 8 if part.startswith("0") and part != "0" else 10))
            else:
                return None
        except ValueError:
            return None
    value = numbers.pop()
    if any(n > 255 for n in numbers) or value >= 256 ** (4 - len(numbers)):
        return None
    for place, number in enumerate(numbers):
        value += number << (24 - 8 * place)
    return ipaddress.IPv4Address(value)


def _bad(host: str, message: str, what_next: str) -> NetworkRefused:
    return NetworkRefused(f"{message}.", why=Why.URL, host=host, next=what_next)
