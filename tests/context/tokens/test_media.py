"""Images and files: the size from the header, the tokens by the provider's rule."""

from __future__ import annotations

import base64
import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lorimer.context.tokens.image_size import image_size, size_of_base64
from lorimer.context.tokens.media import media_count, media_rules, rule_for
from lorimer.context.tokens.pdf_pages import pages_of_base64, pdf_pages
from lorimer.core.messages import FilePart, ImagePart


def encoded(kind: str, width: int, height: int, **more: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(out, kind, **more)
    return out.getvalue()


def image(data: bytes, media_type: str = "image/png") -> ImagePart:
    return ImagePart(media_type, base64.b64encode(data).decode())


FORMS = [
    ("PNG", {}),
    ("GIF", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("JPEG", {"exif": b"Exif\0\0" + b"x" * 60_000}),
    ("JPEG", {"icc_profile": b"\0" * 200_000}),  # the size stands behind it, far from the start
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": b"Exif\0\0x"}),  # the extended form
]


@pytest.mark.parametrize(("kind", "more"), FORMS)
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (3000, 17)])
def test_the_size_is_read_from_the_header(
    kind: str, more: dict[str, object], size: tuple[int, int]
) -> None:
    data = encoded(kind, *size, **more)
    assert image_size(data) == size
    assert size_of_base64(base64.b64encode(data).decode()) == size
    assert size_of_base64(base64.b64encode(data).decode().rstrip("=")) == size


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(FORMS), st.integers(0, 400))
def test_damaged_headers_give_no_size_and_no_error(
    noise: bytes, form: tuple[str, dict[str, object]], at: int
) -> None:
    data = encoded(form[0], 30, 20)
    for one in (noise, data[:at], data[:at] + noise):
        found = image_size(one)
        assert found is None or min(found) > 0


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # https://platform.claude.com/docs/en/build-with-claude/vision: ceil(w/28) * ceil(h/28)
        ("anthropic:claude-haiku-4-5", (200, 200), 64),
        ("anthropic:claude-haiku-4-5", (1092, 1092), 1521),
        ("anthropic:claude-opus-5-5", (1000, 1000), 1296),
        ("anthropic:claude-opus-5-5", (1932, 1092), 69 * 39),
        ("openrouter:anthropic/claude-sonnet-5", (1000, 1000), 1296),
        # https://developers.openai.com/api/docs/guides/images-vision, its worked examples
        ("openai:gpt-4o", (1024, 1024), 765),
        ("openai:gpt-4o", (2048, 4096), 1105),
        ("openai:gpt-5", (1024, 1024), 70 + 4 * 140),
        ("openai:gpt-4.1-mini", (1024, 1024), 1659),
        ("openai:gpt-4.1-mini", (1800, 2400), 2353),
        ("openai:gpt-5.6-terra", (3200, 3200), 12_000),
        # https://ai.google.dev/gemini-api/docs/media-resolution and …/tokens
        ("gemini:gemini-3.8-flash", (4000, 3000), 1120),
        ("gemini:gemini-2.5-pro", (384, 384), 258),
        ("gemini:gemini-2.5-pro", (1536, 800), 4 * 258),
    ],
)
def test_tokens_by_each_providers_rule(model: str, size: tuple[int, int], tokens: int) -> None:
    assert rule_for(model).image(*size) == tokens


@pytest.mark.parametrize(
    ("model", "most", "least"),
    [("anthropic:claude-haiku-4-5", 1568, 1500), ("anthropic:claude-opus-5-5", 4784, 4600)],
)
def test_a_huge_image_is_made_smaller_first(model: str, most: int, least: int) -> None:
    """Measured on claude-opus-4-6: photos of any size above count 1,558 to 1,561
    (https://www.claudecodecamp.com/p/images-cost-3x-more-tokens-in-claude-opus-4-7)."""
    for size in ((8000, 6000), (5000, 5000), (3000, 4000)):
        assert least <= rule_for(model).image(*size) <= most


@settings(deadline=None)
@given(
    st.sampled_from([rule.models for rule in media_rules()]),
    st.integers(1, 100_000),
    st.integers(1, 100_000),
)
def test_every_rule_gives_a_sane_number_for_every_size(
    models: str, width: int, height: int
) -> None:
    rule = next(rule for rule in media_rules() if rule.models == models)
    tokens = rule.image(width, height)
    assert tokens >= 1
    if rule.most:
        assert tokens <= rule.most * rule.multiplier + 1


def test_base64_is_never_counted_as_text() -> None:
    import random

    noise = Image.frombytes("RGB", (600, 400), random.Random(1).randbytes(600 * 400 * 3))
    out = io.BytesIO()
    noise.save(out, "PNG")
    found = media_count(image(out.getvalue()), "anthropic:claude-opus-5-5")
    assert len(out.getvalue()) > 700_000
    assert found.tokens == 22 * 15
    assert (found.text, found.guess) == ("", "")


def test_what_cannot_be_seen_is_guessed_and_said() -> None:
    by_url = media_count(ImagePart("image/png", url="https://example.org/a.png"), "openai:gpt-4o")
    assert by_url.tokens == 1105
    assert "by its address" in by_url.guess
    broken = media_count(image(b"no image"), "anthropic:claude-haiku-4-5")
    assert broken.tokens == 1568
    assert "cannot be read" in broken.guess
    unknown = media_count(image(encoded("PNG", 280, 280)), "ollama:some-vision-model")
    assert unknown.tokens == 100
    assert "no rule of ollama:some-vision-model" in unknown.guess


def test_every_rule_has_a_date_and_a_source_or_says_that_it_has_none() -> None:
    for rule in media_rules():
        assert rule.as_of
        assert "http" in rule.source or rule.models == ""


def pdf_of(pages: int, *, packed: bool) -> bytes:
    """A PDF with its page objects plain, or inside a compressed object stream (PDF 1.5)."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = b" ".join(b"%d 0 R" % (3 + n) for n in range(pages))
    objects.append(b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages))
    objects += [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"] * pages
    if not packed:
        body = b"".join(b"%d 0 obj\n%b\nendobj\n" % (n, o) for n, o in enumerate(objects, 1))
        return b"%PDF-1.4\n" + body + b"trailer << /Root 1 0 R >>\n%%EOF"
    inner = zlib.compress(b"1 0 2 40 3 90 " + b" ".join(objects))
    return (
        b"%%PDF-1.7\n9 0 obj\n<< /Type /ObjStm /N %d /First 14 /Filter /FlateDecode /Length %d >>\n"
        b"stream\r\n%b\nendstream\nendobj\n%%%%EOF" % (len(objects), len(inner), inner)
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("pages", [1, 3, 250])
def test_pages_of_a_pdf(pages: int, packed: bool) -> None:
    assert pdf_pages(pdf_of(pages, packed=packed)) == pages


def test_pages_of_a_pdf_that_another_program_wrote() -> None:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    out = io.BytesIO()
    with PdfPages(out) as pages:
        for _ in range(4):
            pages.savefig(Figure((2, 2)))
    assert pages_of_base64(base64.b64encode(out.getvalue()).decode()) == 4


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 500))
def test_a_damaged_pdf_gives_no_error(noise: bytes, at: int) -> None:
    whole = pdf_of(3, packed=True)
    for one in (noise, b"%PDF-1.7" + noise, whole[:at], whole[:at] + noise):
        pages = pdf_pages(one)
        assert pages is None or pages > 0


def test_a_small_pdf_that_inflates_without_end_is_bounded() -> None:
    bomb = zlib.compress(b"\0" * 200_000_000, 9)
    file = b"%PDF-1.7\n<< /Type /ObjStm >>\nstream\n" + bomb
    assert pdf_pages(file * 20) is None


def test_files_count_by_pages_text_or_a_guess() -> None:
    def part(media_type: str, data: bytes) -> FilePart:
        return FilePart(media_type, "x", base64.b64encode(data).decode())

    claude = "anthropic:claude-opus-5-5"
    assert media_count(part("application/pdf", pdf_of(3, packed=False)), claude).tokens == 3 * 2350
    scrambled = media_count(part("application/pdf", b"%PDF-1.7" + b"?" * 200_000), claude)
    assert scrambled.tokens == 5 * 2350
    assert "by its size" in scrambled.guess
    text = media_count(part("text/csv", b"a,b\n1,2\n"), claude)
    assert (text.tokens, text.text) == (0, "a,b\n1,2\n")
    odd = media_count(part("application/zip", b"PK"), claude)
    assert odd.tokens > 0
    assert "no rule is known" in odd.guess
