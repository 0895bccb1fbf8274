"""Ordinary answers in free wording, each beside the same answer with one fact altered.

Written before the derivations of `follows.py` were; pairs at odd places (`HELD_OUT`) were never
looked at while these were made. `python tests/context/answers/ordinary_answers.py` prints rates.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from lorimer.context.answers import Evidence, Flag, Source, check
from lorimer.context.answers.results import read_json

RESULTS: dict[str, Any] = {
    "hotel": {"hotel": "Alpenblick", "booking": "HB-20931", "check_in": "2026-07-03",
              "check_out": "2026-07-10", "nights": 7, "rate": 128.4, "currency": "CHF",
              "guests": 2, "status": "confirmed", "cancel_days": 14},
    "car": {"model": "Corsa", "km": 48210, "consumption_l": 5.8, "tank_l": 45, "year": 2021,
            "plate": "HH-AB 317", "next_service_km": 60000, "power_kw": 74},
    "build": "Build #7731 finished in 6m12s\n1480 files compiled, 37 cached, 4 warnings\n"
             "artifact: app-4.18.2.tar.gz 52428800 bytes\n",
    "sales": [{"month": "January", "sold": 412, "revenue": "20600.00"},
              {"month": "February", "sold": 389, "revenue": "19450.00"},
              {"month": "March", "sold": 527, "revenue": "26350.00"}],
    "trip": {"from": "Lyon", "to": "Turin", "distance_km": 312, "duration_min": 228,
             "departs": "2026-05-18T07:45:00", "arrives": "2026-05-18T11:33:00", "fare": 46.9,
             "currency": "EUR", "seat": "12-074"},
    "server": "host web-03 up 61 days\nload 0.42 0.57 0.61\nmem 16384 MB total 9830 MB used 6554 MB"
              " free\nlistening on 8443\n",
    "loan": {"principal": 18000, "rate": 0.045, "months": 48, "monthly": 410.46,
             "currency": "EUR", "first_payment": "2026-02-01", "contract": "KR-558120"},
    "survey": "question,yes,no\nparking,164,86\nbikes,205,45\nbuses,118,132\n",
}  # fmt: skip

PAIRS: list[tuple[str, str, str]] = [
    ("hotel", "You are booked into Alpenblick from 3 to 10 July 2026, seven nights.",
     "You are booked into Alpenblick from 3 to 12 July 2026, seven nights."),
    ("hotel", "Seven nights at CHF 128.40 come to CHF 898.80.",
     "Seven nights at CHF 128.40 come to CHF 889.80."),
    ("hotel", "That is CHF 64.20 per person and night.", "The nightly rate is CHF 124.80."),
    ("hotel", "You can cancel free of charge until 19 June 2026, 14 days ahead.",
     "You can cancel free of charge until 29 June 2026, 14 days ahead."),
    ("hotel", "Booking HB-20931 is confirmed for two guests.",
     "Booking HB-20913 is confirmed for two guests."),
    ("hotel", "Check-in is on a Friday, 3 July 2026.", "Check-in is on a Thursday, 2 July 2026."),
    ("hotel", "If you stay one night less, it would be 6 × 128.40 = CHF 770.40.",
     "If you stay one night less, it would be 6 × 128.40 = CHF 777.40."),
    ("hotel", "With a 10% discount you would pay 115.56 CHF a night.",
     "The booking is cancelled, and a night was 128.40 CHF."),
    ("car", "The Corsa has done 48,210 km; the next service is due in 11,790 km.",
     "The Corsa has done 48,120 km; the next service is due at 60,000 km."),
    ("car", "A full tank lasts about 776 km at 5.8 l per 100 km.",
     "It uses 8.5 l per 100 km and the tank holds 45 l."),
    ("car", "74 kW is roughly 101 hp.", "It has 47 kW."),
    ("car", "In miles that is about 29,956.", "The mileage is about 84,210 km."),
    ("car", "It was built in 2021, so it is five years old now.", "It was built in 2012."),
    ("car", "The plate is HH-AB 317.", "The next service is due at 66,000 km."),
    ("car", "Check the tyre pressure every 1000 km and keep at least 2.2 bar.",
     "Service is due at 60,500 km."),
    ("car", "You have used up about 80% of the service interval.",
     "The mileage is 48,211 km as of today."),
    ("build", "Build #7731 took 6 minutes and 12 seconds, i.e. 372 seconds.",
     "Build #7713 took 6 minutes and 12 seconds."),
    ("build", "1480 files were compiled and 37 came from the cache, 1517 altogether.",
     "1408 files were compiled and 37 came from the cache."),
    ("build", "About 2.4% of the files were cached.", "Some 73 files were cached."),
    ("build", "The artifact is 50 MiB (52.4 MB).", "The artifact has 52482800 bytes."),
    ("build", "Install it with `pip install app==4.18.2` or `docker run -p 8080:80 app`.",
     "The artifact is app-4.12.8.tar.gz."),
    ("build", "That is around 4 files per second.", "The build is #7732."),
    ("build", "Use Node 20 or newer and set the timeout to 600 seconds.",
     "The file is app-4.18.3.tar.gz."),
    ("build", "On a machine twice as fast it would take 3 min 6 s, i.e. 186 seconds.",
     "1490 files were compiled."),
    ("sales", "In the first quarter 1,328 pieces were sold.", "In January 421 pieces were sold."),
    ("sales", "Revenue was 66,400 in total, 22,133.33 a month on average.",
     "Revenue in March was 23,650."),
    ("sales", "March beat February by 138 pieces, a plus of 35.5 %.",
     "March had 572 pieces, February 389."),
    ("sales", "Each piece brought in 50.00.", "January brought in 20,060.00."),
    ("sales", "January and February together make 801 pieces.",
     "January: 412 pieces, February: 398 pieces."),
    ("sales", "March accounts for 39.7% of all pieces.", "March: 527 pieces for 26,530.00."),
    ("sales", "If April grows by 5%, expect about 553 pieces.", "February: 389 for 19,540.00."),
    ("sales", "The best month was March with 527, the worst February with 389.",
     "The best month was March with 527, the worst February with 379."),
    ("trip", "It takes 3 h 48 min, or 3.8 hours.", "It takes 282 minutes."),
    ("trip", "The average speed is about 82 km/h.", "The distance is 321 km."),
    ("trip", "You leave at 7:45 am and arrive at 11:33 am.",
     "You leave at 7:54 am and arrive at 11:33 am."),
    ("trip", "A return ticket would be twice that, 93.80 EUR.", "The fare is 49.60 EUR."),
    ("trip", "For four people that makes 187.60 EUR.", "The fare is 46.09 EUR."),
    ("trip", "312 km are about 194 miles.", "It is 213 km."),
    ("trip", "Be at the station 15 minutes before departure, i.e. at 7:30.",
     "Departure is at 7:35 on 18 May 2026."),
    ("trip", "Your seat is 12-074, on Monday, 18 May 2026.",
     "Your seat is 12-047, on Monday, 18 May 2026."),
    ("server", "60% of the memory is in use (9,830 of 16,384 MB).",
     "60% of the memory is in use (9,380 of 16,384 MB)."),
    ("server", "It has 16 GiB of RAM, of which 6.4 GiB are free.", "It has 6,545 MB free."),
    ("server", "web-03 has been up for 61 days, nearly nine weeks.", "web-03 has been up 16 days."),
    ("server", "It listens on port 8443; plain HTTP would be port 80, or 8080.",
     "It listens on port 8434."),
    ("server", "The mean of the three load values is 0.53.", "The load is 0.42, 0.75 and 0.61."),
    ("server", "A load below 1.0 per core is fine; worry above 5 or 10.",
     "The load is 0.24 at the moment."),
    ("server", "That was about two months ago, so plan a reboot every 90 days.",
     "It listens on 8433."),
    ("server", "Used plus free is 16,384 MB, which is the whole.",
     "Used plus free is 16,834 MB, which is the whole."),
    ("loan", "48 payments of 410.46 EUR make 19,702.08 EUR.",
     "48 payments of 401.46 EUR are due."),
    ("loan", "You pay 1,702.08 EUR of interest over four years.",
     "You borrowed 18,500 EUR over four years."),
    ("loan", "The rate is 4.5 % a year, about 0.375 % a month.", "The rate is 5.4 % a year."),
    ("loan", "The last payment is due on 1 January 2030.",
     "The first payment is on 2 January 2026."),
    ("loan", "After one year you have paid 4,925.52 EUR.", "Each month costs 410.64 EUR."),
    ("loan", "Contract KR-558120 runs for 48 months, i.e. 4 years.",
     "Contract KR-558210 runs for 48 months."),
    ("loan", "The interest of the first month is 67.50 EUR.", "The monthly rate is 414.06 EUR."),
    ("loan", "A usual rule is to keep 3 months of expenses, say 5,000 EUR, aside.",
     "It runs for 84 months."),
    ("survey", "250 people answered each question.", "146 people want parking."),
    ("survey", "65.6% said yes to parking.", "On bikes 250 said yes and 45 no."),
    ("survey", "Buses were rejected by 132 to 118, a margin of 14.",
     "Buses were rejected by 123 to 118."),
    ("survey", "Bikes got 41 more yes votes than parking.", "Bikes got 204 yes votes."),
    ("survey", "Altogether 487 yes votes were cast.", "Parking got 168 yes votes."),
    ("survey", "Only about 18% are against bikes.", "Only 54 are against bikes."),
    ("survey", "A third of all yes votes, 33.7%, went to parking.", "Parking: 164 yes, 68 no."),
    ("survey", "On average 162.3 people said yes.", "Buses: 181 yes, 132 no."),
]  # fmt: skip

TODAY = date(2026, 12, 1)


def flags_of(which: str, answer: str) -> tuple[Flag, ...]:
    value = RESULTS[which]
    text = value if isinstance(value, str) else json.dumps(value)
    evidence = Evidence()
    evidence.today = TODAY
    evidence.add(Source("c", which, text, read_json(text)))
    return check(answer, evidence)[0]


def rates(held_out: bool) -> dict[str, int]:
    """Pairs at even or (held out) odd places: how many true answers are flagged and how many
    altered ones are caught; the same for what a person is shown."""
    found = dict.fromkeys(("pairs", "flagged", "shown_wrongly", "caught", "shown"), 0)
    for which, true, altered in PAIRS[1 if held_out else 0 :: 2]:
        alarms, catches = flags_of(which, true), flags_of(which, altered)
        found["pairs"] += 1
        found["flagged"] += bool(alarms)
        found["shown_wrongly"] += any(f.worth_showing for f in alarms)
        found["caught"] += bool(catches)
        found["shown"] += any(f.worth_showing for f in catches)
    return found


if __name__ == "__main__":
    print("developed with:", rates(False))
    print("held out:", rates(True))
