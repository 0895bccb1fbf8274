"""How a template may write a value: only in ways that keep all of it.

A format that would lose or guess anything (round, drop a time of day, choose a currency) is
refused; the template then stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from lorimer.context.answers.dates import MONTHS
from lorimer.context.answers.records import Numeral

_PLAIN_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_CURRENCY_KEYS = ("currency", "currency_code", "currencyCode")


class Refused(ValueError):
    """This format would change the value, or the value is not of its kind."""


def written(value: Any) -> str:
    """A scalar as it stands in the result.

    Raises:
        Refused: for an object, a list, or nothing at all.
    """
    match value:
        case str():
            return str(value)
        case True:
            return "true"
        case False:
            return "false"
        case None:
            raise Refused("the result has no value there (null)")
        case list():
            raise Refused(f"that is a list of {len(value)}; name one of it, or one field")
        case _:
            keys = ", ".join(list(value)[:8])
            raise Refused(f"that is an object; name a field of it ({keys})")


def formatted(name: str, value: Any, around: Mapping[str, Any]) -> str:
    """`value` in the format `name`; `around` is the object that it stands in.

    Raises:
        Refused: when there is no such format, or it would change the value.
    """
    if not name:
        return written(value)
    rule = FORMATS.get(name)
    if rule is None:
        raise Refused(f"there is no format {name!r}; there are {', '.join(sorted(FORMATS))}")
    return rule(value, around)


def _decimal(value: Any) -> Decimal:
    text = value.strip() if isinstance(value, str) else ""
    if not _PLAIN_NUMBER.fullmatch(text):
        raise Refused(f"{value!r} is no plain number")
    try:
        return Decimal(text)
    except InvalidOperation as fault:
        raise Refused(f"{value!r} is no number") from fault


def _number(value: Any, around: Mapping[str, Any]) -> str:
    return f"{_decimal(value):,f}"


def _money(value: Any, around: Mapping[str, Any]) -> str:
    amount = _decimal(value)
    exponent = amount.as_tuple().exponent
    assert isinstance(exponent, int)
    text = f"{amount:,.2f}" if exponent > -2 else f"{amount:,f}"
    for key in _CURRENCY_KEYS:
        currency = around.get(key)
        if isinstance(currency, str) and re.fullmatch(r"[A-Z]{3}", currency):
            return f"{text} {currency}"
    return text


def _percent(value: Any, around: Mapping[str, Any]) -> str:
    share = (_decimal(value) * 100).normalize()
    return f"{share:f} %"


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or isinstance(value, Numeral):
        raise Refused(f"{value!r} is no date")
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError as fault:
        raise Refused(f"{value!r} is no date as ISO 8601 writes it") from fault


def _day(moment: datetime) -> str:
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def _date(value: Any, around: Mapping[str, Any]) -> str:
    moment = _moment(value)
    if len(str(value).strip()) > 10:
        raise Refused("that has a time of day, which this format would drop; use |datetime")
    return _day(moment)


def _datetime(value: Any, around: Mapping[str, Any]) -> str:
    moment = _moment(value)
    if len(str(value).strip()) <= 10:
        return _day(moment)
    clock = f"{moment:%H:%M}"
    if moment.second or moment.microsecond:
        clock = f"{moment:%H:%M:%S}"
    if moment.microsecond:
        clock += f".{moment.microsecond:06d}".rstrip("0")
    zone = ""
    if moment.tzinfo is not None:
        offset = moment.strftime("%z")
        zone = " UTC" if offset == "+0000" else f" UTC{offset[:3]}:{offset[3:]}"
    return f"{_day(moment)}, {clock}{zone}"


def _list(value: Any, around: Mapping[str, Any]) -> str:
    if not isinstance(value, list) or not value:
        raise Refused("that is no list of values")
    return ", ".join(written(one) for one in value)


def _count(value: Any, around: Mapping[str, Any]) -> str:
    if not isinstance(value, list):
        raise Refused("that is no list; only a list can be counted")
    return str(len(value))


FORMATS: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "number": _number,
    "money": _money,
    "percent": _percent,
    "date": _date,
    "datetime": _datetime,
    "list": _list,
    "count": _count,
}
