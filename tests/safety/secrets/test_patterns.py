"""Shapes of keys: what they find, and what they leave alone."""

from __future__ import annotations

import base64
import random
import string
import sysconfig
from pathlib import Path

import pytest

from lorimer.safety.secrets.patterns import PATTERNS
from lorimer.safety.secrets.redactor import Redactor

_SOURCE = random.Random(20261130)
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
HEX = "0123456789abcdef"


def some(alphabet: str, length: int) -> str:
    """A random text with at least a digit and both cases where the alphabet has them."""
    while True:
        out = "".join(_SOURCE.choice(alphabet) for _ in range(length))
        if out[0].isalnum() and out[-1].isalnum() and any(map(str.isdigit, out)):
            return out


def b64(length: int) -> str:
    return base64.b64encode(_SOURCE.randbytes(length)).decode()


def pem(kind: str, header: str = "") -> str:
    body = b64(330)
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {kind}-----\n{header}{lines}\n-----END {kind}-----"


def jwt() -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(b'{"sub":"1234567890","name":"A"}').decode().rstrip("=")
    return f"{head}.{body}.{some(URLSAFE, 43)}"


TRUE = {
    "private key": [
        pem("RSA PRIVATE KEY"), pem("PRIVATE KEY"), pem("OPENSSH PRIVATE KEY"),
        pem("EC PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789AB\n\n"),
        pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\n\n"),
        pem("PRIVATE KEY").replace("\n", "\\n"),
        pem("PRIVATE KEY").replace("\n", "\r\n"),
    ],
    "age key": ["AGE-SECRET-KEY-1" + some(string.ascii_uppercase + string.digits, 58)],
    "aws key": ["AKIAIOSFODNN7EXAMPLE", "ASIA" + some(string.ascii_uppercase + "234567", 16)],
    "github token": [*(f"gh{k}_{some(ALNUM, 36)}" for k in "pousr"),
                     f"github_pat_{some(ALNUM, 22)}_{some(ALNUM, 59)}"],
    "gitlab token": [f"glpat-{some(URLSAFE, 20)}", f"glrt-{some(URLSAFE, 27)}.01.{some(HEX, 9)}"],
    "slack token": [f"xoxb-123456789012-1234567890123-{some(ALNUM, 24)}",
                    f"xoxp-{'1' * 12}-{'2' * 12}-{'3' * 12}-{some(HEX, 32)}",
                    f"xapp-1-A012ABCDEF3-1234567890123-{some(HEX, 64)}"],
    "stripe key": [f"sk_live_{some(ALNUM, 24)}", f"rk_test_{some(ALNUM, 99)}"],
    "stripe webhook secret": [f"whsec_{some(ALNUM, 32)}"],
    "google api key": [f"AIza{some(URLSAFE, 35)}"],
    "google client secret": [f"GOCSPX-{some(URLSAFE, 28)}"],
    "google access token": [f"ya29.{some(URLSAFE, 120)}"],
    "anthropic key": [f"sk-ant-api03-{some(URLSAFE, 93)}AA", f"sk-ant-oat01-{some(URLSAFE, 93)}"],
    "openrouter key": [f"sk-or-v1-{some(HEX, 64)}"],
    "openai key": [f"sk-proj-{some(URLSAFE, 156)}", f"sk-svcacct-{some(URLSAFE, 120)}"],
    "api key": [f"sk-{some(ALNUM, 20)}T3BlbkFJ{some(ALNUM, 20)}", f"sk-{some(HEX, 32)}"],
    "hugging face token": [f"hf_{some(ALNUM, 34)}"],
    "groq key": [f"gsk_{some(ALNUM, 52)}"],
    "xai key": [f"xai-{some(ALNUM, 80)}"],
    "perplexity key": [f"pplx-{some(ALNUM, 48)}"],
    "replicate token": [f"r8_{some(ALNUM, 37)}"],
    "npm token": [f"npm_{some(ALNUM, 36)}"],
    "pypi token": [f"pypi-AgEIcHlwaS5vcmc{some(URLSAFE, 120)}"],
    "rubygems key": [f"rubygems_{some(HEX, 48)}"],
    "docker token": [f"dckr_pat_{some(URLSAFE, 27)}"],
    "sendgrid key": [f"SG.{some(URLSAFE, 22)}.{some(URLSAFE, 43)}"],
    "digitalocean token": [f"dop_v1_{some(HEX, 64)}"],
    "shopify token": [f"shpat_{some(HEX, 32)}"],
    "linear key": [f"lin_api_{some(ALNUM, 40)}"],
    "notion token": [f"ntn_{some(ALNUM, 46)}"],
    "figma token": [f"figd_{some(URLSAFE, 40)}"],
    "doppler token": [f"dp.pt.{some(ALNUM, 43)}", f"dp.st.dev_main.{some(ALNUM, 40)}"],
    "vault token": [f"hvs.{some(URLSAFE, 95)}"],
    "databricks token": [f"dapi{some(HEX, 32)}"],
    "grafana token": [f"glsa_{some(ALNUM, 32)}_{some(HEX, 8)}"],
    "postman key": [f"PMAK-{some(HEX, 24)}-{some(HEX, 34)}"],
    "atlassian token": [f"ATATT3xFfGF0{some(URLSAFE, 180)}"],
    "supabase token": [f"sbp_{some(HEX, 40)}"],
    "jwt": [jwt()],
}  # fmt: skip
"""By kind, whole texts that are the secret."""

PARTS = {
    "aws session token": [("AWS_SESSION_TOKEN=", b64(150), ""),
                          ('"SessionToken": "', b64(150), '"')],
    "aws secret key": [("aws_secret_access_key = ",
                        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "\n"),
                       ('{"SecretAccessKey": "', some(ALNUM, 40), '"}')],
    "azure storage key": [("AccountName=a;AccountKey=", b64(64), ";EndpointSuffix=x")],
    "slack webhook": [("https://hooks.slack.com/services/",
                       f"T0123ABCD/B0123ABCD/{some(ALNUM, 24)}", " ")],
    "discord webhook": [("https://discord.com/api/webhooks/123456789012345678/",
                         some(URLSAFE, 68), " ")],
    "telegram token": [("bot1234567890:", "AA" + some(URLSAFE, 33), "/getMe")],
    "password in a URL": [("postgres://app:", "s3cr3t-pw", "@db.internal:5432/app"),
                          ("https://", "", ""), ("redis://:", "p$ss(w)rd,1;", "@10.0.0.1/0"),
                          ("https://me:", "%40%23abc", "@git.corp/x.git")],
    "authorization header": [("Authorization: Bearer ", some(ALNUM, 30), "\r\n"),
                             ('"Authorization": "Basic ', "dXNlcjpwYXNzd29yZDEyMw==", '"'),
                             ("-H 'authorization: token ", some(HEX, 32), "'")],
    "private key": [("Private-Lines: 1\n", b64(48), "\nPrivate-MAC: 00")],
}  # fmt: skip
"""By kind: what stands before the secret, the secret, what stands after it."""

FALSE = [
    "ghp_short", "AKIA is how they begin", "AKIAIOSFODNN7EXAMPLEandmore", "XAKIAIOSFODNN7EXAMPLE",
    "sk-learn", "sk-" + "a" * 40, "task-1234567890123456789012345678901234567890",
    "-----BEGIN PUBLIC KEY-----\n" + b64(96) + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + b64(96) + "\n-----END CERTIFICATE-----",
    'if "-----BEGIN PRIVATE KEY-----" in text and the rest of the line is prose:',
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0", "keyJson.eyJust.aword",
    "https://user:password@host/", "https://user:${PASS}@host/", "https://u:{password}@h/",
    "postgres://postgres:postgres@localhost/test", "https://u:%s@h/", "https://u:****@h/",
    "https://user:hunter42x@example.com/", "http://localhost:8080/@scope/pkg",
    "https://host:8443/path?user=a@b.c", "see https://docs.host/x:y@z",
    "Authorization: Bearer <token>", "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "Authorization: Basic authentication-is-required", "authorization = 1234567890123456789",
    "npm_config_registry", "npm_package_dependencies_something_long_enough", "hf_hub_download",
    "r8_something", "xoxb-not-a-token", "glpat-short", "SG.1", "dapi", "AIzaSy", "pypi-AgE",
    "whsec_short", "whatever_dop_v1_zz", "hvs.help", "dp.pt.x", "secret_access_key: str",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b", "sha256:" + "ab12" * 16,
    "550e8400-e29b-41d4-a716-446655440000", "data:image/png;base64," + b64(300),
    "integrity sha512-" + b64(64), "AccountKey=short", "session_token = request.headers['x']",
]  # fmt: skip

KINDS = {pattern.what for pattern in PATTERNS}


def test_every_shape_has_examples() -> None:
    assert {*TRUE, *PARTS} == KINDS


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in TRUE.items() for text in texts]
)
def test_a_key_is_taken_out_whole_wherever_it_stands(kind: str, text: str) -> None:
    mark = f"[redacted: {kind}]"
    for before, after in [
        ("", ""), ("key = ", "\n"), ('{"k": "', '"}'), ("TOKEN=", " next"), ("a\\n", "\\nb"),
        ("q%3D", "&x"), ("\x1b[31m", "\x1b[0m"), ("('", "')"), ("12\t", ""), ("ü ", " ü"),
    ]:  # fmt: skip
        assert Redactor().redact(before + text + after) == before + mark + after


@pytest.mark.parametrize(
    ("kind", "parts"), [(kind, parts) for kind, every in PARTS.items() for parts in every]
)
def test_only_the_secret_part_is_taken_out(kind: str, parts: tuple[str, str, str]) -> None:
    before, secret, after = parts
    mark = f"[redacted: {kind}]" if secret else ""
    assert Redactor().redact(before + secret + after) == before + mark + after


def test_a_private_key_with_line_numbers_is_taken_out() -> None:
    lines = pem("RSA PRIVATE KEY").splitlines()
    for numbered in ("\n".join(f"{n}\t{line}" for n, line in enumerate(lines, 1)),
                     "\n".join(f"> {line}" for line in lines)):  # fmt: skip
        clean = Redactor().redact(numbered)
        assert not any(line in clean for line in lines[1:-1] if len(line) > 20)


def test_a_private_key_that_is_cut_off_is_taken_out() -> None:
    cut = pem("RSA PRIVATE KEY")[:300]
    assert Redactor().redact(f"x {cut}") == "x [redacted: private key]"


@pytest.mark.parametrize("text", FALSE)
def test_ordinary_text_is_left_alone(text: str) -> None:
    for whole in (text, f"x = '{text}'\n", f"\n{text}"):
        assert Redactor().redact(whole) is whole


@pytest.mark.slow
def test_in_all_installed_python_files_hardly_anything_is_found() -> None:
    """About 10,000 files: what is found are stand-ins in documentation and in tests."""
    root = Path(sysconfig.get_paths()["purelib"])
    known, found, size = Redactor(), 0, 0
    for path in root.rglob("*.py"):
        text = path.read_bytes().decode("utf-8", "replace")
        size += len(text)
        found += len(known.find(text))
    assert found <= 2 + size / 5_000_000, f"{found} in {size:,} characters"
