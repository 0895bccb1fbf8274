"""What a text on a slide really looks like: size, font and margins through all the layers.

A run, its paragraph, the shape's list style, the placeholder of the layout, that of the master,
the master's text styles, the presentation's defaults: the first that says something counts
(ECMA-376 part 1, 21.1.2.4 and 19.3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pptx.oxml.ns import qn
from textfit import Piece, find_font

_TITLES = {"title", "ctrTitle"}
_BODIES = {None, "body", "subTitle", "obj", "tbl", "chart", "pic", "media", "clipArt", "dgm"}


def placeholder_of(shape: Any) -> Any | None:
    """The `p:ph` of a shape."""
    found = shape._element.xpath("./p:nvSpPr/p:nvPr/p:ph | ./p:nvPicPr/p:nvPr/p:ph")
    return found[0] if found else None


def parents(shape: Any, slide: Any) -> list[Any]:
    """The elements of the layout's and the master's placeholders that a shape inherits from."""
    mark = placeholder_of(shape)
    if mark is None:
        return []
    kind, index = mark.get("type"), mark.get("idx", "0")
    found = []
    for other in slide.slide_layout.placeholders:
        there = placeholder_of(other)
        same_title = kind in _TITLES and there.get("type") in _TITLES
        if same_title or (kind not in _TITLES and there.get("idx", "0") == index):
            found.append(other._element)
            break
    wanted = _TITLES if kind in _TITLES else ({kind} if kind not in _BODIES else {"body"})
    for other in slide.slide_layout.slide_master.placeholders:
        if placeholder_of(other).get("type") in wanted:
            found.append(other._element)
            break
    return found


def levels(shape: Any, slide: Any, level: int) -> Iterator[Any]:
    """The paragraph properties of a list level, from the nearest to the farthest."""
    tag = qn(f"a:lvl{level + 1}pPr")
    for element in (shape._element, *parents(shape, slide)):
        frame = element.find(qn("p:txBody"))
        style = frame.find(qn("a:lstStyle")) if frame is not None else None
        found = style.find(tag) if style is not None else None
        if found is not None:
            yield found
    mark = placeholder_of(shape)
    kind = mark.get("type") if mark is not None else ""
    name = "p:otherStyle" if mark is None else "p:bodyStyle"
    if kind in _TITLES:
        name = "p:titleStyle"
    elif mark is not None and kind not in _BODIES:
        name = "p:otherStyle"
    master = slide.slide_layout.slide_master._element
    styles = master.find(qn("p:txStyles"))
    style = styles.find(qn(name)) if styles is not None else None
    found = style.find(tag) if style is not None else None
    if found is not None:
        yield found
    root = slide.part.package.presentation_part._element
    default = root.find(qn("p:defaultTextStyle"))
    found = default.find(tag) if default is not None else None
    if found is not None:
        yield found


def pieces(paragraph: Any, shape: Any, slide: Any, scale: float = 1.0) -> list[Piece]:
    """The runs of a paragraph (an `a:p` element) with their real sizes and fonts."""
    own = paragraph.find(qn("a:pPr"))
    level = int(own.get("lvl", "0")) if own is not None else 0
    chain = list(levels(shape, slide, level))
    out = []
    for run in paragraph:
        if run.tag == qn("a:br"):
            out.append(_piece("\n", run.find(qn("a:rPr")), chain, slide, scale))
        elif run.tag in (qn("a:r"), qn("a:fld")):
            text = run.findtext(qn("a:t")) or ""
            out.append(_piece(text, run.find(qn("a:rPr")), chain, slide, scale))
    if not out:
        out.append(_piece("", paragraph.find(qn("a:endParaRPr")), chain, slide, scale))
    return out


def _piece(text: str, own: Any, chain: list[Any], slide: Any, scale: float) -> Piece:
    layers = [own] if own is not None else []
    layers += [d for d in (p.find(qn("a:defRPr")) for p in chain) if d is not None]
    size = next((float(e.get("sz")) / 100 for e in layers if e.get("sz")), 18.0)
    bold = next((e.get("b") in ("1", "true") for e in layers if e.get("b")), False)
    face = next(
        (
            e.find(qn("a:latin")).get("typeface")
            for e in layers
            if e.find(qn("a:latin")) is not None
        ),
        "+mn-lt",
    )
    return Piece(text, size * scale, find_font(_real(face, slide), bold=bold))


def _real(face: str, slide: Any) -> str:
    """A theme font by its name."""
    if not face.startswith("+"):
        return face
    cache = slide.part.package.__dict__.setdefault("_lorimer_fonts", {})
    if face not in cache:
        from lxml import etree
        from pptx.opc.constants import RELATIONSHIP_TYPE as RT

        theme = slide.slide_layout.slide_master.part.part_related_by(RT.THEME)
        root = etree.fromstring(theme.blob)
        space = {"a": "http://schemas.openxmlformats.org/drawingml/2006/main"}
        which = "majorFont" if face.startswith("+mj") else "minorFont"
        found = root.find(f".//a:{which}/a:latin", space)
        cache[face] = found.get("typeface") if found is not None else "Arial"
    return str(cache[face])


def body_of(shape: Any, slide: Any, name: str, default: str) -> str:
    """An attribute of `a:bodyPr`, inherited."""
    for element in (shape._element, *parents(shape, slide)):
        frame = element.find(qn("p:txBody"))
        body = frame.find(qn("a:bodyPr")) if frame is not None else None
        if body is not None and body.get(name) is not None:
            return str(body.get(name))
    return default


def indent_of(paragraph: Any, shape: Any, slide: Any) -> float:
    """The left margin of a paragraph, in points."""
    own = paragraph.find(qn("a:pPr"))
    level = int(own.get("lvl", "0")) if own is not None else 0
    for layer in ([own] if own is not None else []) + list(levels(shape, slide, level)):
        if layer.get("marL") is not None:
            return int(layer.get("marL")) / 12700
    return 0.0


def spacing_of(paragraph: Any, shape: Any, slide: Any, size: float) -> tuple[float, float]:
    """Line spacing (1.0 for single) and the points before and after a paragraph."""
    own = paragraph.find(qn("a:pPr"))
    level = int(own.get("lvl", "0")) if own is not None else 0
    layers = ([own] if own is not None else []) + list(levels(shape, slide, level))
    line, around = 1.0, 0.0
    found = next((e for e in (p.find(qn("a:lnSpc")) for p in layers) if e is not None), None)
    if found is not None and len(found):
        value = int(found[0].get("val").rstrip("%"))
        exact = found[0].tag == qn("a:spcPts")
        line = value / 100 / (size * 1.2) if exact else value / 100_000
    for tag in ("a:spcBef", "a:spcAft"):
        found = next((e for e in (p.find(qn(tag)) for p in layers) if e is not None), None)
        if found is not None and len(found):
            value = int(found[0].get("val").rstrip("%"))
            points = found[0].tag == qn("a:spcPts")
            around += value / 100 if points else value / 100_000 * size
    return line, around
