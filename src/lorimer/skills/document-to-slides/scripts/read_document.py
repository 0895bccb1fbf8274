"""Read a document (Markdown, text, DOCX, PDF) for an outline: its parts and sizes, not all of it.

Prints headings with line numbers and word counts, tables, pictures, and lines that look like
captions. With --text the whole text is written as Markdown (read it piece by piece with
read_file), with --pictures the pictures inside are written as files.

From a PDF, --crop cuts a region of a page as a picture, for figures that are drawn with lines:
PAGE:LEFT,TOP,RIGHT,BOTTOM in percent of the page from its upper left.

Examples:
  python read_document.py paper.pdf --text paper.md --pictures figures
  python read_document.py paper.pdf --crop 3:8,10,92,45 --out figures/figure-2.png
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import re
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from needs import fail, input_file, need, output_file

_CAPTION = re.compile(r"(?:figure|fig\.|table|chart|abbildung|abb\.|tabelle)\s*\d+", re.IGNORECASE)
_SMALLEST = 120
_MOST_PICTURES = 200


@dataclass
class Document:
    """A document as Markdown, with what lies in it.

    Attributes:
        pictures: name and bytes.
        captions: where (line or page) and text.
    """

    text: str = ""
    pages: int = 0
    tables: int = 0
    pictures: list[tuple[str, bytes]] = field(default_factory=list)
    captions: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Heading:
    """One heading and what follows until the next."""

    line: int
    level: int
    title: str
    words: int


def read(path: Path) -> Document:
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"%PDF"):
        return _pdf(path)
    if start.startswith(b"PK"):
        return _docx(path)
    if suffix in (".doc", ".ppt", ".odt", ".rtf") or start.startswith(b"\xd0\xcf\x11\xe0"):
        fail(
            f"{str(path)!r} is of a kind that cannot be read ({suffix}).", "ask for .docx or .pdf."
        )
    return _text(path)


def _text(path: Path) -> Document:
    raw = path.read_bytes()
    document = Document()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        document.text = raw.decode("utf-16", "replace")
    elif b"\0" in raw[:4096]:
        fail(f"{str(path)!r} is no text.", "give a Markdown, text, .docx or .pdf file.")
    else:
        try:
            document.text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            document.text = raw.decode("cp1252", "replace")
            document.notes.append(f"encoding is a guess: byte {fault.start} is not UTF-8; cp1252")
    lines = document.text.splitlines()
    rules = [line for line in lines if re.fullmatch(r"\s*\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*", line)]
    document.tables = len(rules)
    for number, line in enumerate(lines, 1):
        for found in re.finditer(r"!\[([^\]]*)\]\(<?([^)>]+)>?\)", line):
            document.captions.append((f"line {number}", f"picture {found[2]}: {found[1]}"))
        if _CAPTION.match(line.strip("*_ ")):
            document.captions.append((f"line {number}", line.strip()[:120]))
    return document


def _docx(path: Path) -> Document:
    need("docx")
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.table import Table

    try:
        source = docx.Document(str(path))
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as fault:
        fail(f"{str(path)!r} is no .docx that can be read ({fault}).", "ask for .docx or .pdf.")
    document = Document()
    lines: list[str] = []
    for block in source.iter_inner_content():
        if isinstance(block, Table):
            document.tables += 1
            lines += _table([[cell.text for cell in row.cells] for row in block.rows])
            continue
        text = " ".join(block.text.split())
        if not text:
            continue
        style = (block.style.name if block.style is not None else "") or ""
        level = re.fullmatch(r"(?:Heading|Überschrift|heading) (\d)", style)
        if style == "Title" or level:
            text = "#" * (int(level[1]) if level else 1) + " " + text
        elif "List" in style or block._p.find(".//{*}numPr") is not None:
            text = "- " + text
        elif style == "Caption" or _CAPTION.match(text):
            document.captions.append((f"line {len(lines) + 1}", text[:120]))
        lines += [text, ""] if not text.startswith("- ") else [text]
    document.text = "\n".join(lines) + "\n"
    for number, part in enumerate(source.part.package.image_parts, 1):
        document.pictures.append((f"picture-{number:02}{Path(part.partname).suffix}", part.blob))
    return document


def _table(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    cells = [[" ".join(c.split()).replace("|", "\\|") for c in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], "|" + "---|" * len(cells[0]), *lines[1:], ""]


def _pdf(path: Path) -> Document:
    source = open_pdf(path)
    document = Document(pages=len(source))
    lines: list[str] = []
    empty = 0
    for number, page in enumerate(source, 1):
        text_page = page.get_textpage()
        text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\ufffe", "-")
        text_page.close()
        empty += not text.strip()
        lines += [f"<!-- page {number} -->", *text.split("\n"), ""]
        for line in text.split("\n"):
            if _CAPTION.match(line.strip()):
                document.captions.append((f"page {number}", line.strip()[:120]))
        _pictures_of(page, number, document)
    document.text = "\n".join(lines) + "\n"
    document.notes.append("a PDF has no headings: the page marks in the text say where you are")
    if empty:
        document.notes.append(
            f"{empty} of {len(source)} pages hold no text (scans?): look at them with --crop"
        )
    return document


def open_pdf(path: Path) -> Any:
    need("pypdfium2", "PIL")
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as fault:
        why = "it has a password" if "assword" in str(fault) else str(fault)
        return fail(f"{str(path)!r} cannot be opened: {why}.", "ask for a readable copy.")


def _pictures_of(page: Any, number: int, document: Document) -> None:
    import io

    import pypdfium2
    import pypdfium2.raw as raw

    for place, image in enumerate(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=5), 1):
        wide, tall = image.get_px_size()
        if min(wide, tall) < _SMALLEST or len(document.pictures) >= _MOST_PICTURES:
            continue
        try:
            picture = image.get_bitmap(render=False).to_pil()
        except (pypdfium2.PdfiumError, ValueError, RuntimeError):
            document.notes.append(f"a picture on page {number} cannot be taken out: use --crop")
            continue
        target = io.BytesIO()
        picture.convert("RGB").save(target, "PNG")
        document.pictures.append((f"page-{number:02}-{place}.png", target.getvalue()))


def crop(path: Path, text: str, out: Path, dpi: int) -> str:
    """Cut a region of a page; says what size the picture has."""
    found = re.fullmatch(r"(\d+):([\d.]+),([\d.]+),([\d.]+),([\d.]+)", text)
    if not found:
        fail(f"--crop {text!r} is no region.", "e.g. 3:8,10,92,45 (page 3, percent).")
    left, top, right, bottom = (float(found[n]) for n in range(2, 6))
    if not (0 <= left < right <= 100 and 0 <= top < bottom <= 100):
        fail(f"--crop {text!r}: left < right and top < bottom, from 0 to 100.", "put it right.")
    source = open_pdf(path)
    if not 1 <= int(found[1]) <= len(source):
        fail(f"{str(path)!r} has {len(source)} pages, not {found[1]}.", "choose another page.")
    image = source[int(found[1]) - 1].render(scale=dpi / 72).to_pil().convert("RGB")
    wide, tall = image.size
    box = (left * wide / 100, top * tall / 100, right * wide / 100, bottom * tall / 100)
    cut = image.crop(tuple(round(v) for v in box))
    cut.save(out, "PNG")
    return f"{cut.size[0]} × {cut.size[1]} pixels"


def headings(text: str) -> list[Heading]:
    out: list[Heading] = []
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        found = None if fenced else re.match(r"(#{1,6})\s+(.+)", line)
        if found:
            out.append(Heading(number, len(found[1]), found[2].strip()[:100], 0))
        elif out:
            out[-1].words += len(line.split())
    return out


def write_pictures(pictures: list[tuple[str, bytes]], folder: Path) -> list[str]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(f"{str(folder)!r} is no empty folder.", "give a new one.")
    if not folder.parent.is_dir():
        fail(f"the folder {str(folder.parent)!r} does not exist.", "make it first.")
    folder.mkdir(exist_ok=True)
    for name, content in pictures:
        (folder / name).write_bytes(content)
    return [name for name, _ in pictures]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--text", metavar="FILE.md", help="write the whole text there")
    parser.add_argument("--pictures", metavar="FOLDER", help="write the pictures inside there")
    parser.add_argument("--crop", metavar="PAGE:L,T,R,B", help="cut a figure out of a PDF")
    parser.add_argument("--out", metavar="FILE.png", help="of --crop")
    parser.add_argument("--dpi", type=int, default=220, help="of --crop (default 220)")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    path = input_file(options.file)
    if options.crop:
        if not options.out:
            fail("--crop needs --out.", "e.g. --out figure-2.png")
        with output_file(options.out, (".png",), force=options.force) as new:
            size = crop(path, options.crop, new, min(max(options.dpi, 50), 400))
        print(
            json.dumps({"written": options.out, "size": size})
            if options.json
            else f"written: {options.out} ({size})"
        )
        return 0
    document = read(path)
    parts = headings(document.text)
    written: list[str] = []
    if options.text:
        with output_file(options.text, (".md", ".txt"), force=options.force) as new:
            new.write_text(document.text, encoding="utf-8")
        written.append(options.text)
    if options.pictures:
        written += [
            f"{options.pictures}/{name}"
            for name in write_pictures(document.pictures, Path(options.pictures))
        ]
    words = len(document.text.split())
    report = {
        "words": words, "lines": document.text.count("\n"), "pages": document.pages,
        "tables": document.tables, "pictures": len(document.pictures),
        "headings": [asdict(h) for h in parts], "captions": document.captions,
        "written": written, "notes": document.notes,
    }  # fmt: skip
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
        return 0
    pages = f", {document.pages} pages" if document.pages else ""
    print(
        f"{options.file}: {words:,} words{pages}, {document.tables} tables, "
        f"{len(document.pictures)} pictures inside"
    )
    for part in parts[:80]:
        print(f"  line {part.line}: {'  ' * (part.level - 1)}{part.title} ({part.words} words)")
    if len(parts) > 80:
        print(f"  {len(parts) - 80} more headings: --json")
    for where, text in document.captions[:40]:
        print(f"  {where}: {text}")
    for note in document.notes:
        print(f"note: {note}")
    for name in written:
        print(f"written: {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
