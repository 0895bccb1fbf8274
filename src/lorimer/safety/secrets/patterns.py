r"""Shapes of well-known keys, as data. A shape is here only if ordinary text does not have it.

`begins` are the literal texts that a match starts with, one of them each: a text without them costs
next to nothing. `shape` is matched there. With a group `s`, only that part is taken out. Sources:
the issuers' own documents of their key formats, and the tokens that their consoles give out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

_APART = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\[[0-9]m)|(?<=[\[;][0-9]{2}m))"
)
"""A key begins where no word goes on: also after `\n` in JSON, `%3D` in a URL, a colour code."""


@dataclass(frozen=True)
class Pattern:
    """One shape. `shape` runs in time linear in the text: no repetition inside a repetition can be
    split in two ways. `counts` has the last word on a match.

    For text that comes in pieces: `spaced`, whether there may be spaces between its beginning and
    the secret; `ends`, characters after which what had begun is none.
    """

    what: str
    begins: tuple[str, ...]
    shape: str
    counts: Callable[[re.Match[str]], bool] | None = None
    spaced: bool = False
    ends: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Made when the first text has one of `begins`."""
        return re.compile(self.shape, re.ASCII)


def _key(what: str, begins: str, rest: str, *, common: str = "") -> Pattern:
    """A key that begins with one of `begins` (separated by spaces), and goes on with `rest`. Only
    `common`, which all of them begin with, is searched, where it is rare enough."""
    starts = tuple(begins.split())
    alternatives = "|".join(map(re.escape, starts))
    return Pattern(what, (common,) if common else starts, f"{_APART}(?:{alternatives}){rest}")


_PLACEHOLDERS = frozenset(
    ("password", "passwd", "passphrase", "pass", "secret", "token", "changeme", "example", "test",
     "user", "username", "admin", "guest", "anonymous", "apikey", "api_key", "mypassword",
     "yourpassword", "your_password", "foobar", "port", "redacted", "hidden")
)  # fmt: skip
_RESERVED_HOST = re.compile(
    r"(?:[^\s/:]*\.)?(?:example(?:\.com|\.org|\.net)?|test|invalid)(?![\w.-])"
)
"""RFC 2606: nobody has an account there."""


def _is_password(match: re.Match[str]) -> bool:
    """Whether a password in a URL is more than a stand-in (`${PASS}`, `%s`, `****`), the user's
    name again, or for a host that cannot exist."""
    user, text, host = match["user"], match["s"], match["host"]
    if text.lower() in _PLACEHOLDERS or len(set(text)) < 3 or text == user:
        return False
    if text[0] in "$%" and not re.match("%[0-9A-Fa-f]{2}", text):
        return False
    return not any(mark in text for mark in "{}<>|\\`…") and not _RESERVED_HOST.match(host)


def _is_random(match: re.Match[str]) -> bool:
    """Mixed like an encoding of bytes: not words, not a number."""
    text = match["s"]
    digits = sum(c.isdigit() for c in text)
    mixed = text.lower() != text and text.upper() != text
    return len(set(text)) >= 8 and digits < len(text) - 2 and (digits >= 2 or mixed)


_B64 = r"[A-Za-z0-9+/]"
_LINE_END = r"(?:\\[nr]|[\s\"'+,>|]|[0-9]{1,7}[\t:|]){1,24}+"
_KEY_BODY = (
    r"(?:(?:\\[nr]|\s){1,6}[A-Za-z][A-Za-z-]{1,30}: ?[^\n\\]{1,200}){0,6}+"
    rf"{_LINE_END}{_B64}{{40,4096}}+={{0,2}}(?:{_LINE_END}{_B64}{{16,4096}}+={{0,2}})*+"
    rf"(?:{_LINE_END}=?{_B64}{{1,15}}={{0,2}}(?={_LINE_END}-----END|\s{{0,4}}\Z))?"
    rf"(?:{_LINE_END}-----END [A-Z0-9 ]{{1,40}}-----)?"
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "private key",
        ("-----BEGIN ",),
        rf"-----BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY(?: BLOCK)?-----{_KEY_BODY}",
    ),
    Pattern(
        "private key",
        ("Private-Lines: ",),
        rf"Private-Lines: [0-9]{{1,3}}{_LINE_END}(?P<s>{_B64}{{40,64}}+={{0,2}}"
        rf"(?:{_LINE_END}{_B64}{{4,64}}+={{0,2}}(?![A-Za-z0-9+/=-]))*+)",
    ),
    _key("age key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}(?![A-Za-z0-9])"),
    _key("aws key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9/+=])"),
    Pattern(
        "aws secret key",
        ("secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"),
        r"(?:secret_access_key|SECRET_ACCESS_KEY|[Ss]ecretAccessKey)[\\\"']{0,3}\s{0,8}[=:]\s{0,8}"
        r"[\\\"']{0,3}(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        spaced=True,
    ),
    Pattern(
        "aws session token",
        ("session_token", "SESSION_TOKEN", "SessionToken"),
        r"(?:session_token|SESSION_TOKEN|SessionToken)[\\\"']{0,3}\s{0,8}[=:]\s{0,8}[\\\"']{0,3}"
        r"(?P<s>[A-Za-z0-9/+]{100,4096}={0,2})",
        spaced=True,
    ),
    Pattern(
        "azure storage key",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{42,86}={1,2})",
    ),
    _key("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,255}"),
    _key("github token", "github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _key(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- gloas-",
        r"[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?", common="gl"),
    _key("slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-",
         r"(?:[0-9]-)?[0-9]{8,13}-[A-Za-z0-9-]{10,200}", common="xox"),
    _key("slack token", "xapp-", r"[0-9]-[A-Z0-9]{8,15}-[0-9]{8,15}-[a-f0-9]{32,64}"),
    Pattern(
        "slack webhook",
        ("hooks.slack.com/services/",),
        r"hooks\.slack\.com/services/(?P<s>T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,30})",
    ),
    Pattern(
        "discord webhook",
        ("/api/webhooks/",),
        r"/api/webhooks/[0-9]{17,20}/(?P<s>[A-Za-z0-9_-]{60,72})",
    ),
    Pattern(
        "telegram token",
        (":AA",),
        r"(?<=[0-9]{8}):(?P<s>AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
    ),
    _key("stripe key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[A-Za-z0-9]{20,250}"),
    _key("stripe webhook secret", "whsec_", r"[A-Za-z0-9+/]{32,64}={0,2}"),
    _key("google api key", "AIza", r"[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _key("google client secret", "GOCSPX-", r"[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])"),
    _key("google access token", "ya29.", r"[A-Za-z0-9_-]{40,1500}"),
    _key("anthropic key", "sk-ant-", r"[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{40,200}", common="sk-"),
    _key("openrouter key", "sk-or-v1-", r"[a-f0-9]{64}", common="sk-"),
    _key("openai key", "sk-proj- sk-svcacct- sk-admin- sk-None-",
         r"[A-Za-z0-9_-]{40,300}", common="sk-"),
    _key("api key", "sk-", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{32,64}(?![A-Za-z0-9_-])"),
    _key("hugging face token", "hf_", r"[A-Za-z0-9]{34,40}(?![A-Za-z0-9_])"),
    _key("groq key", "gsk_", r"[A-Za-z0-9]{52}(?![A-Za-z0-9])"),
    _key("xai key", "xai-", r"[A-Za-z0-9]{80}(?![A-Za-z0-9])"),
    _key("perplexity key", "pplx-", r"[A-Za-z0-9]{48}(?![A-Za-z0-9])"),
    _key("replicate token", "r8_", r"[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    _key("npm token", "npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    _key("pypi token", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw",
         r"[A-Za-z0-9_-]{50,400}", common="pypi-Ag"),
    _key("rubygems key", "rubygems_", r"[a-f0-9]{48}(?![A-Za-z0-9])"),
    _key("docker token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{27,40}", common="dckr_"),
    _key("sendgrid key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _key("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),
    _key("shopify token", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}", common="shp"),
    _key("linear key", "lin_api_", r"[A-Za-z0-9]{40}"),
    _key("notion token", "ntn_", r"[A-Za-z0-9]{40,60}"),
    _key("figma token", "figd_", r"[A-Za-z0-9_-]{40}"),
    _key("doppler token", "dp.pt. dp.st. dp.ct. dp.sa.",
         r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", common="dp."),
    _key("vault token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,300}", common="hv"),
    _key("databricks token", "dapi", r"[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    _key("grafana token", "glsa_", r"[A-Za-z0-9]{32}_[a-fA-F0-9]{8}"),
    _key("postman key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    _key("atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{180,250}"),
    _key("supabase token", "sbp_", r"[a-f0-9]{40}(?![A-Za-z0-9])"),
    Pattern(
        "jwt",
        ("eyJ",),
        rf"(?<![_-]){_APART}"
        r"eyJ[A-Za-z0-9_-]{10,4000}+\.eyJ[A-Za-z0-9_-]{6,8000}+\.[A-Za-z0-9_-]{16,2000}+",
    ),
    Pattern(
        "password in a URL",
        ("://",),
        r"://(?P<user>[^\s/?#:@\"'<>]{0,100}+):(?P<s>[^\s/?#@\"'<>]{4,200}+)@"
        r"(?=(?P<host>[A-Za-z0-9\[][A-Za-z0-9.-]{0,200}))",
        _is_password,
        ends="/?#",
    ),
    Pattern(
        "authorization header",
        ("uthorization", "UTHORIZATION"),
        r"(?:uthorization|UTHORIZATION)[\\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\\"']{0,3}"
        r"(?i:bearer|basic|token)\s{1,4}(?P<s>[A-Za-z0-9._~+/=-]{16,4000}+)",
        _is_random,
        spaced=True,
    ),
)  # fmt: skip
