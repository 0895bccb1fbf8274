"""What may stand for a result: false lines, of which none may pass, and true ones, which must."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.compaction.digest import Digest, digest_of
from lorimer.context.compaction.extracts import Extracts, tokens_in
from lorimer.context.compaction.small_words import EVERY_FREE
from lorimer.context.compaction.statements import statements_of
from lorimer.context.compaction.summary import Checked, check_summary, told
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import ResultPart, TextPart
from lorimer.core.trust import Trust

PADDING = "\n" + "The padding of this page says very little. " * 40


def digest(text: str, call: str = "c1") -> Digest:
    part = TextPart(text + PADDING, Trust.USER_DATA, "https://a.example")
    result = ResultPart(call, "look", (part,), False, Outcome.DONE)
    return digest_of(ToolCall(call, "look", "{}"), result)


def checked(source: str, line: str) -> Checked:
    return check_summary(f"- {line}", [digest(source)])


FALSE = [
    # a reviewer's
    ("Delivery to Osk arrives before 5 March.", "Delivery to Osk arrives after 5 March."),
    ("The Osk mill holds over 40 crates.", "The Osk mill holds under 40 crates."),
    ("The Osk mill holds more than 40 crates.", "The Osk mill holds each 40 crates."),
    ("The employer pays 40 euro per month.", "The employee pays 40 euro per month."),
    ("The old stone bridge near the village market stays closed during heavy winter storms.",
     "The old stone bridge near the village market stays open during heavy winter storms."),
    ("The fee of 40 applies to guests and not to staff.",
     "The fee of 40 applies to staff and not to guests."),
    ("Der Preis für die Lieferung nach Osk darf im Jahr höchstens 40 Euro betragen.",
     "Der Preis für die Lieferung nach Osk darf im Jahr mindestens 40 Euro betragen."),
    ("Die Pumpe in Halle 3 darf vor dem Umbau im Sommer laufen und danach stehen bleiben.",
     "Die Pumpe in Halle 3 muss vor dem Umbau im Sommer laufen und danach stehen bleiben."),
    ("Kunden in Osk bekommen 40 Euro zurück, wenn sie innerhalb der Frist schriftlich kündigen.",
     "Kunden in Osk bekommen 40 Euro zurück, wenn sie außerhalb der Frist schriftlich kündigen."),
    ("Account 77 was approved by the finance team after the second review meeting.",
     "Account 77 was rejected by the finance team after the second review meeting."),
    ("Sales rose 12% in Osk.", "Sales fell 12% in Osk."),
    ("The patient with id 77 could have taken aspirin.",
     "The patient with id 77 had been taken aspirin."),
    ("Server A is up and server B is down since 10:00.",
     "Server A is down and server B is up since 10:00."),
    ("The old database of the Osk region was deleted by the admin group last night at 10:00.",
     "The old database of the Osk region was restored by the admin group last night at 10:00."),
    ("Row 5: alpha 7, beta 9", "Row 5: beta 7, alpha 9"),
    ("temperature is -5 degrees in Osk", "temperature is 5 degrees in Osk"),
    ("price $40 in Osk", "price €40 in Osk"),
    ("The transfer may be made to Osk at 40.", "The transfer will be made to Osk at 40."),
    # something is left out
    ("The bridge is not closed in winter.", "closed in winter"),
    ("The bridge is not closed in winter.", "The bridge is closed in winter."),
    ("If it rains, the bridge at Osk is closed.", "The bridge at Osk is closed."),
    ("In theory, the bridge at Osk holds 40 tons.", "The bridge at Osk holds 40 tons."),
    ("He denied that the bridge at Osk was closed.", "The bridge at Osk was closed."),
    ("According to Lenn, the Osk mill lost 40 crates.", "The Osk mill lost 40 crates."),
    ("Smoking is allowed in room 7.", "Smoking is allowed."),
    ("Almost all of the 40 crates were lost.", "All of the 40 crates were lost."),
    ("The mill failed to deliver 40 crates.", "The mill deliver 40 crates."),
    ("Until 2010 the mill at Osk was open.", "The mill at Osk was open."),
    ("Only guests with a ticket pay 40 euro.", "Guests pay 40 euro."),
    ("The Osk mill sold 40 crates and 7 carts.", "The Osk mill sold 40 carts."),
    ("The mill, which Lenn opposed, was rebuilt.", "Lenn was rebuilt."),
    ("The mill needs 7 pumps, not counting the 3 old ones.", "The mill needs 7 old ones."),
    ("Has the Osk bridge been closed?", "The Osk bridge been closed"),
    ("Is the Osk bridge closed?", "Is the Osk bridge closed"),
    ("The few guests in Osk were late.", "Few guests in Osk were late."),
    ("Guests may not smoke; drink; or eat in room 7.", "or eat in room 7."),
    ("All lists are wrong; room 7 is closed in winter.", "Room 7 is closed in winter."),
    ("Room 7 is closed in winter; but only until 2010.", "Room 7 is closed in winter"),
    ('Lenn lied: "The mill is closed. The bridge at Osk is open." Then he left.',
     "The bridge at Osk is open."),
    ("Dr Lenn of the Osk council did not\napprove the plan for the mill.",
     "approve the plan for the mill."),
    ("The council, after a long and tiring debate in the old hall, refused\n"
     "Lenn the second permit. So it ended.", "Lenn the second permit."),
    ("The council did in no case\napprove the plan of the old\nmill.",
     "approve the plan of the old"),
    ("The council did in no case\napprove the plan of the old\nmill.",
     "approve the plan of the old mill."),
    ("Der Rat der Stadt hat in keinem Fall\nAnträge der Mühle bewilligt.",
     "Anträge der Mühle bewilligt."),
    # a sign, a unit, a figure
    ("The balance of Osk is - 40 euro.", "The balance of Osk is 40 euro."),
    ("The result of Osk was a loss of (40) euro.", "The result of Osk was a loss of 40 euro."),
    ("The radio in Osk sends at 5 mW.", "The radio in Osk sends at 5 MW."),
    ("Osk measured .5 grams.", "Osk measured 5 grams."),
    ("Osk measured < 5 grams.", "Osk measured 5 grams."),
    ("Osk measured 5 grams.", "Osk measured 5 kilograms."),
    ("Osk grew by 5 %.", "Osk grew by 5."),
    ("Osk has 10–20 mills.", "Osk has 10 20 mills."),
    ("The tank at Osk holds 1.5 tons.", "The tank at Osk holds 15 tons."),
    ("Run it with -f in Osk.", "Run it with f in Osk."),
    ("state != closed in Osk", "state = closed in Osk"),
    ("backup ✗ failed nodes 3", "backup ✓ failed nodes 3"),
    # places exchanged
    ("| Ostra | 45.3 | Velm | 61.9 |", "| Ostra | 61.9 | Velm | 45.3 |"),
    ("| Ostra | 45.3 | Velm | 61.9 |", "Ostra 61.9"),
    ("Lenn paid Aldous 40 euro.", "Aldous paid Lenn 40 euro."),
    ("Lenn opened the mill. Aldous closed the kiln.", "Lenn closed the kiln."),
    ('{"alpha": 7, "beta": 9}', '{"alpha": 9, "beta": 7}'),
    ('{"alpha": 7, "beta": 9}', "alpha: 9"),
    ("US troops left Osk.", "Us troops left Osk."),
    # German
    ("Der Vertrag endet nicht am 5. März 2024.", "Der Vertrag endet am 5. März 2024."),
    ("Der Vertrag wurde nie am 12. März gekündigt.", "März gekündigt."),
    ("Den Hund beißt der Mann aus Osk.", "Hund beißt Mann aus Osk."),
    ("Die Brücke in Osk war gesperrt.", "Die Brücke in Osk ist gesperrt."),
    ("Die Brücke in Osk könnte gesperrt werden.", "Die Brücke in Osk wird gesperrt."),
    ("Kein Gast in Osk zahlt 40 Euro.", "Gast in Osk zahlt 40 Euro."),
    ("Die Mühle liefert ab 5. Mai nach Osk.", "Die Mühle liefert bis 5. Mai nach Osk."),
    ("Falls es regnet, ist die Brücke gesperrt.", "Die Brücke ist gesperrt."),
    ("Die Mühle stellt den Betrieb ein.", "Die Mühle stellt den Betrieb."),
    ("Laut Lenn ist die Mühle in Osk verkauft.", "Die Mühle in Osk ist verkauft."),
    ("Der Umsatz in Osk stieg um 12 %.", "Der Umsatz in Osk sank um 12 %."),
    ("Fast alle Gäste in Osk zahlen.", "Alle Gäste in Osk zahlen."),
    ("Die Gäste außer den Kindern zahlen 40 Euro.", "Die Gäste zahlen 40 Euro."),
    ("Rauchen ist in Halle 7 erlaubt.", "Rauchen ist erlaubt."),
    # a language that is not known
    ("Le pont d'Osk n'est pas fermé en hiver.", "Le pont d'Osk est fermé en hiver."),
    ("El puente de Osk no está cerrado.", "El puente de Osk está cerrado."),
    ("奥斯克大桥冬天不关闭。", "奥斯克大桥冬天关闭。"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line"), FALSE)
def test_no_false_line_passes(source: str, line: str) -> None:
    found = checked(source, line)
    assert found.kept == 0
    assert found.dropped and found.dropped[0].text
    for one in (line for some in found.lines.values() for line in some):
        assert one[0] + one[-1] == "“”" and one[1:-1] in " ".join(source.split())


def test_there_are_enough_false_lines() -> None:
    assert len(set(FALSE)) == len(FALSE) >= 58


RECORDS = json.dumps(
    {"mills": [{"id": 7, "state": "closed", "load": -4.50}, {"id": 8, "state": "open"}],
     "limits": {"osk": {"tons": 40}}}, indent=2,
)  # fmt: skip
PAGE = """# Mills of the Osk region

The Harrow mill was rebuilt in 2019 for 12,400 euro. Dr. Lenn did not approve the plan; the council
did so in March. Also, the second kiln was sold to Aldous & Sons.
Guests may not smoke in room 7 unless the window is open. The bridge stays closed before 5 March.
Lenn said: "The mill is closed. I shall not open it." He left the Osk council at 10:30.

The council of the region, which met four times in the old hall, found that
the Velm weir needs 31 new gates, i.e. 2 more than in 2018.

| mill | flow | state |
|---|---|---|
| Ostra | 45.3 | up |
| Velm | -61.9 | down |

- temperature: -5 °C at the gate
- price: $40 per crate
3. The third list names 14 mills.
2026-01-02 10:00:01 WARN pump=7 state=stalled load=0.75
beta;9;closed;12 %
See https://kilns.example/list?id=9 for the rest; write to lenn@osk.example for a copy.
Kiln 7 runs at 1,180 degrees; the second kiln was sold in 2018.

Der Vertrag mit Osk endet am 5. März 2024. Die Pumpe in Halle 3 darf höchstens 40 Stunden laufen.
Zudem zahlt der Verein in Osk 1.250,50 Euro im Jahr. Die Mühle (Baujahr 1912) steht seit Mai still.
„Wir liefern nicht. Wir warten.“, sagte Frau Brandt aus Osk.
Der Rat der Stadt hat in seiner Sitzung vom Dienstag nach langer Beratung dem
Antrag der Mühle nicht zugestimmt. Le pont d'Osk n'est pas fermé en hiver.
"""
TRUE = [
    (PAGE, line)
    for line in [
        "The Harrow mill was rebuilt in 2019 for 12,400 euro.",
        "the Harrow mill was rebuilt in 2019 for 12,400 euro",
        "Harrow mill was rebuilt in 2019 for 12,400 euro",
        "**Harrow mill was rebuilt in 2019 for 12,400 euro**",
        "Dr. Lenn did not approve the plan; the council did so in March.",
        "Dr. Lenn did not approve plan; council did so in March",
        "The second kiln was sold to Aldous & Sons",
        "also, the second kiln was sold to Aldous & Sons",
        "Guests may not smoke in room 7 unless the window is open.",
        "Bridge stays closed before 5 March.",
        "The bridge stays  closed before 5 March",
        'Lenn said: "The mill is closed. I shall not open it."',
        "Lenn said: “The mill is closed. I shall not open it.”",
        "He left Osk council at 10:30",
        "The council of the region, which met four times in the old hall, found that the Velm weir "
        "needs 31 new gates, i.e. 2 more than in 2018.",
        "Ostra | 45.3 | up",
        "Ostra: 45.3, up",
        "| Velm | −61.9 | down |",
        "Velm -61.9 down",
        "temperature: -5°C at the gate",
        "temperature -5 °C at gate",
        "Price: $40 per crate",
        "The third list names 14 mills.",
        "3. The third list names 14 mills.",
        "2026-01-02 10:00:01 WARN pump=7 state=stalled load=0.75",
        "2026-01-02 10:00:01 WARN `pump=7` `state=stalled` `load=0.75`",
        "beta; 9; closed; 12%",
        "See https://kilns.example/list?id=9 for the rest",
        "write to lenn@osk.example for a copy",
        "Kiln 7 runs at 1,180 degrees",
        "Kiln 7 runs at 1,180 degrees; second kiln was sold in 2018",
        "Mills of the Osk region",
        "Der Vertrag mit Osk endet am 5. März 2024.",
        "Die Pumpe in Halle 3 darf höchstens 40 Stunden laufen",
        "Zudem zahlt der Verein in Osk 1.250,50 Euro im Jahr.",
        "Die Mühle (Baujahr 1912) steht seit Mai still.",
        "„Wir liefern nicht. Wir warten.“, sagte Frau Brandt aus Osk.",
        "Der Rat der Stadt hat in seiner Sitzung vom Dienstag nach langer Beratung dem Antrag der "
        "Mühle nicht zugestimmt.",
        "Le pont d'Osk n'est pas fermé en hiver.",
        "mill | flow | state",
    ]
] + [
    (RECORDS, line)
    for line in [
        "mills[0].load: -4.5",
        "mills[0] id 7, state closed, load -4.5",
        '{"id": 8, "state": "open"}',
        "limits.osk.tons: 40",
        "limits osk tons = 40".replace(" =", ":"),
    ]
]


def test_true_extracts_stay() -> None:
    refused = [line for source, line in TRUE if checked_whole(source, line).kept == 0]
    assert len(TRUE) >= 40
    assert len(refused) <= len(TRUE) // 10, refused


def checked_whole(source: str, line: str) -> Checked:
    part = TextPart(source, Trust.USER_DATA, "https://a.example")
    result = ResultPart("c1", "look", (part,), False, Outcome.DONE)
    return check_summary(f"- {line}", [digest_of(ToolCall("c1", "look", "{}"), result)])


@pytest.mark.parametrize(
    ("line", "quote"),
    [
        ("Harrow mill: rebuilt 2019 (12,400 euro)",
         "The Harrow mill was rebuilt in 2019 for 12,400 euro."),
        ("The bridge opens before 5 March", "The bridge stays closed before 5 March."),
        ("Laut Vertrag mit Osk: endet am 5. März 2024",
         "Der Vertrag mit Osk endet am 5. März 2024."),
    ],
)  # fmt: skip
def test_a_line_in_other_words_gives_way_to_the_source(line: str, quote: str) -> None:
    found = checked_whole(PAGE, line)
    assert found.kept == 0 and found.refused is None
    assert found.lines["c1"] == [f"“{quote}”"] and found.dropped[0].quote == quote
    assert told(found.dropped)[1] == "For 1 of them the source itself is quoted, in “ ”."


def test_a_quotation_comes_once_and_only_from_the_source_that_is_named() -> None:
    text = "Harrow mill rebuilt 2019 [c2]\nrebuilt in 2019: Harrow mill [c2]\nOsk 14 mills [c2]"
    sources = [digest("The third list of Osk names 14 mills.", "c1"), digest(PAGE, "c2")]
    found = check_summary(text, sources, cited=True)
    assert not found.lines["c1"]
    assert found.lines["c2"][0] == "“The Harrow mill was rebuilt in 2019 for 12,400 euro.”"
    assert len(found.lines["c2"]) == len(set(found.lines["c2"])) <= 2
    assert len(found.dropped) == 3


def test_a_whole_sentence_of_an_unknown_language_stays() -> None:
    assert Extracts("奥斯克大桥冬天不关闭。明天开放。").has("奥斯克大桥冬天不关闭")


def test_a_value_of_json_needs_its_path() -> None:
    assert checked_whole(RECORDS, '"tons": 40').kept == 0
    assert checked_whole(RECORDS, "mills[1].load: -4.5").kept == 0
    assert checked_whole(RECORDS, '{"id": 8, "state": "closed"}').kept == 0


@given(st.data())
def test_no_word_is_changed_left_out_or_moved(data: st.DataObject) -> None:
    """Of any statement, whatever the words mean: but for the closed list nothing may be missing."""
    statements = [one for one in statements_of(PAGE) if len(one.split()) > 3]
    source = Extracts(PAGE)
    words = data.draw(st.sampled_from(statements)).split()
    whole = tokens_in(" ".join(words))
    at = data.draw(st.integers(0, len(words) - 1))
    match data.draw(st.sampled_from(["left out", "moved", "changed", "cut"])):
        case "left out":
            del words[at]
        case "moved":
            words.insert(data.draw(st.integers(0, len(words) - 1)), words.pop(at))
        case "changed":
            words[at] = data.draw(st.sampled_from(PAGE.split()))
        case _:
            words = words[: at + 1]
    line = tokens_in(" ".join(words))
    if not source.has(" ".join(words)):
        return
    every = [tokens_in(one) for one in statements_of(PAGE)]
    every += [tokens_in(c) for one in statements_of(PAGE) for c in one.split(";")]
    plain = [[t for t in one if t not in EVERY_FREE] for one in every]
    assert line == whole or [t for t in line if t not in EVERY_FREE] in plain


def test_statements_go_over_wrapped_lines_but_rows_do_not() -> None:
    wrapped = "The council of the old region of Osk did in the end not\napprove it. It left."
    assert statements_of(wrapped)[0].endswith("did in the end not approve it.")
    rows = "Row 1 of 9: mill 77 has 37 crates\nRow 2 of 9: mill 78 has 74 crates"
    assert statements_of(rows) == rows.split("\n")
    assert statements_of("Am 12. März war es trocken. Dann kam Regen.") == [
        "Am 12. März war es trocken.", "Dann kam Regen."
    ]  # fmt: skip
