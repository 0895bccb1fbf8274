"""The look of the decks: size, fonts, colours and the places of the layouts.

A 13.33 × 7.5 inch deck on python-pptx's own template: its layouts are moved and restyled, so that
every slide is made of real placeholders that a person can go on working with.
"""

from __future__ import annotations

from typing import Any

from lxml import etree
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.oxml.ns import qn
from pptx.util import Emu, Inches, Pt

WIDTH, HEIGHT = Inches(13.333), Inches(7.5)
MARGIN = Inches(0.7)
BODY_TOP, BODY_BOTTOM = Inches(1.75), Inches(6.75)
TITLE_SIZE, BODY_SIZES, HEADING_SIZE, CAPTION_SIZE = 30, (24, 22, 20, 18, 16), 22, 14
INK, GREY, PAPER = "1F2933", "5B6770", "FFFFFF"
SERIES = ("0072B2", "E69F00", "009E73", "CC79A7", "56B4E9", "D55E00")
"""Okabe and Ito's colours, which colour-blind people can tell apart."""
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_LAYOUTS = {"title": 0, "body": 1, "section": 2, "two": 3, "bare": 5}
Box = tuple[int, int, int, int]


def contrast(a: str, b: str) -> float:
    """The ratio of two colours' brightness, 1 to 21, by WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def prepare(presentation: Any, accent: str, font: str) -> dict[str, Any]:
    """Restyle an empty python-pptx presentation; the layouts by their use here."""
    presentation.slide_width, presentation.slide_height = WIDTH, HEIGHT
    every = list(presentation.slide_layouts)
    layouts = {name: every[place] for name, place in _LAYOUTS.items()}
    for layout in every:
        if layout not in layouts.values():
            presentation.slide_layouts.remove(layout)
    master = presentation.slide_master
    _theme(master, accent, font)
    _text_styles(master)
    wide = WIDTH - 2 * MARGIN
    title = (MARGIN, Inches(0.5), wide, Inches(0.95))
    body = (MARGIN, BODY_TOP, wide, BODY_BOTTOM - BODY_TOP)
    half = int((wide - Inches(0.5)) / 2)
    for shape in list(master.placeholders):
        kind = shape.placeholder_format.type.name
        if kind in ("TITLE", "CENTER_TITLE"):
            _place(shape, title)
            _anchor(shape, "b")
        elif kind == "BODY":
            _place(shape, body)
            _anchor(shape, "t")
        elif kind == "SLIDE_NUMBER":
            _place(shape, (WIDTH - MARGIN - Inches(1), Inches(6.95), Inches(1), Inches(0.35)))
        else:
            shape._element.getparent().remove(shape._element)
    for name, layout in layouts.items():
        for shape in list(layout.placeholders):
            kind, index = shape.placeholder_format.type.name, shape.placeholder_format.idx
            if kind in ("DATE", "FOOTER", "SLIDE_NUMBER"):
                shape._element.getparent().remove(shape._element)
            elif name == "two" and index in (1, 2):
                left = MARGIN if index == 1 else MARGIN + half + Inches(0.5)
                _place(shape, (left, BODY_TOP, half, BODY_BOTTOM - BODY_TOP))
                _plain_list(shape)
            elif name in ("title", "section"):
                _big(shape, name, kind)
            else:
                _no_place(shape)
        if name in ("title", "section"):
            _background(layout, "accent1" if name == "title" else "tx2")
        else:
            _rule(layout)
    return layouts


def _big(shape: Any, name: str, kind: str) -> None:
    """Title and section layouts: large white text on a colour, on the left."""
    wide = Inches(11)
    if kind in ("TITLE", "CENTER_TITLE"):
        _place(shape, (MARGIN + Inches(0.3), Inches(1.6), wide, Inches(2.4)))
        _anchor(shape, "b")
        _list_style(shape, 44 if name == "title" else 38, bold=True)
    else:
        _place(shape, (MARGIN + Inches(0.3), Inches(4.2), wide, Inches(1.6)))
        _anchor(shape, "t")
        _list_style(shape, 22 if name == "title" else 20, bold=False)


def _list_style(shape: Any, size: int, *, bold: bool) -> None:
    style = _fresh_list_style(shape)
    level = etree.SubElement(style, qn("a:lvl1pPr"), marL="0", indent="0", algn="l")
    etree.SubElement(level, qn("a:buNone"))
    run = etree.SubElement(level, qn("a:defRPr"), sz=str(size * 100), b="1" if bold else "0")
    run.set("cap", "none")
    fill = etree.SubElement(run, qn("a:solidFill"))
    etree.SubElement(fill, qn("a:schemeClr"), val="bg1")


def _plain_list(shape: Any) -> None:
    _fresh_list_style(shape)


def _fresh_list_style(shape: Any) -> Any:
    frame = shape._element.txBody
    style = frame.find(qn("a:lstStyle"))
    for child in list(style):
        style.remove(child)
    return style


def _text_styles(master: Any) -> None:
    styles = master._element.find(qn("p:txStyles"))
    title = styles.find(qn("p:titleStyle")).find(qn("a:lvl1pPr"))
    title.set("algn", "l")
    run = title.find(qn("a:defRPr"))
    run.set("sz", str(TITLE_SIZE * 100))
    run.set("b", "1")
    _colour(run, "tx2")
    sizes = (BODY_SIZES[0], BODY_SIZES[0] - 2, BODY_SIZES[0] - 4)
    for level, size in enumerate([*sizes, *[sizes[-1]] * 6], 1):
        style = styles.find(qn("p:bodyStyle")).find(qn(f"a:lvl{level}pPr"))
        if style is None:
            continue
        style.set("marL", str(Inches(0.28) + Inches(0.35) * (level - 1)))
        style.set("indent", str(-Inches(0.28)))
        style.find(qn("a:defRPr")).set("sz", str(size * 100))
        before = style.find(qn("a:spcBef"))
        if before is not None:
            for child in list(before):
                before.remove(child)
            etree.SubElement(before, qn("a:spcPts"), val="1000" if level == 1 else "400")


def _colour(run: Any, name: str) -> None:
    for child in run.findall(qn("a:solidFill")):
        run.remove(child)
    fill = etree.Element(qn("a:solidFill"))
    etree.SubElement(fill, qn("a:schemeClr"), val=name)
    run.insert(0, fill)


def _theme(master: Any, accent: str, font: str) -> None:
    part = master.part.part_related_by(RT.THEME)
    root = etree.fromstring(part.blob)
    for name in ("majorFont", "minorFont"):
        root.find(f".//{{{_A}}}{name}/{{{_A}}}latin").set("typeface", font)
    dark = "".join(f"{int(int(accent[n : n + 2], 16) * 0.55):02X}" for n in (0, 2, 4))
    colours = {"dk1": INK, "lt1": PAPER, "dk2": dark, "lt2": "EEF2F6", "accent1": accent}
    colours |= {f"accent{n}": colour for n, colour in enumerate(SERIES[1:], 2)}
    scheme = root.find(f".//{{{_A}}}clrScheme")
    for name, colour in colours.items():
        place = scheme.find(f"{{{_A}}}{name}")
        for child in list(place):
            place.remove(child)
        etree.SubElement(place, f"{{{_A}}}srgbClr", val=colour)
    part._blob = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)


def _background(layout: Any, colour: str) -> None:
    data = layout._element.cSld
    for old in data.findall(qn("p:bg")):
        data.remove(old)
    back = etree.Element(qn("p:bg"))
    properties = etree.SubElement(back, qn("p:bgPr"))
    fill = etree.SubElement(properties, qn("a:solidFill"))
    etree.SubElement(fill, qn("a:schemeClr"), val=colour)
    etree.SubElement(properties, qn("a:effectLst"))
    data.insert(0, back)


def _rule(layout: Any) -> None:
    """A short coloured line below the title."""
    tree = layout._element.cSld.spTree
    shape = etree.fromstring(
        f'<p:sp xmlns:p="{tree.nsmap["p"]}" xmlns:a="{_A}"><p:nvSpPr>'
        '<p:cNvPr id="90" name="Rule"/><p:cNvSpPr/><p:nvPr userDrawn="1"/></p:nvSpPr><p:spPr>'
        f'<a:xfrm><a:off x="{MARGIN + Inches(0.1)}" y="{Inches(1.48)}"/>'
        f'<a:ext cx="{Inches(0.9)}" cy="{Pt(4)}"/></a:xfrm>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:solidFill><a:schemeClr val="accent1"/>'
        "</a:solidFill><a:ln><a:noFill/></a:ln></p:spPr><p:txBody><a:bodyPr/><a:p/></p:txBody>"
        "</p:sp>"
    )
    tree.append(shape)


def _place(shape: Any, box: Box) -> None:
    shape.left, shape.top, shape.width, shape.height = (Emu(int(v)) for v in box)


def _no_place(shape: Any) -> None:
    """Take the place from the master."""
    frame = shape._element.spPr.find(qn("a:xfrm"))
    if frame is not None:
        shape._element.spPr.remove(frame)
    _fresh_list_style(shape)
    for child in list(shape._element.txBody.find(qn("a:bodyPr"))):
        shape._element.txBody.find(qn("a:bodyPr")).remove(child)


def _anchor(shape: Any, where: str) -> None:
    body = shape._element.txBody.find(qn("a:bodyPr"))
    body.set("anchor", where)
    for child in list(body):
        body.remove(child)


def number(slide: Any) -> None:
    """The slide's number at the lower right, as a field."""
    tree = slide._element.cSld.spTree
    identity = max((int(e.get("id")) for e in tree.iter(qn("p:cNvPr"))), default=1) + 1
    tree.append(
        etree.fromstring(
            f'<p:sp xmlns:p="{tree.nsmap["p"]}" xmlns:a="{_A}"><p:nvSpPr>'
            f'<p:cNvPr id="{identity}" name="Slide Number"/><p:cNvSpPr><a:spLocks noGrp="1"/>'
            '</p:cNvSpPr><p:nvPr><p:ph type="sldNum" sz="quarter" idx="12"/></p:nvPr></p:nvSpPr>'
            f'<p:spPr><a:xfrm><a:off x="{WIDTH - MARGIN - Inches(1)}" y="{Inches(6.95)}"/>'
            f'<a:ext cx="{Inches(1)}" cy="{Inches(0.35)}"/></a:xfrm></p:spPr><p:txBody><a:bodyPr/>'
            '<a:lstStyle/><a:p><a:pPr algn="r"/><a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" '
            f'type="slidenum"><a:rPr lang="en-US" sz="1200"><a:solidFill><a:srgbClr val="{GREY}"/>'
            "</a:solidFill></a:rPr><a:t>‹#›</a:t></a:fld></a:p></p:txBody></p:sp>"
        )
    )
