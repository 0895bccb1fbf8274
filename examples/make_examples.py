"""Write the example files of this folder again: the same bytes on every run.

python examples/make_examples.py
"""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).parent

CUSTOMERS = {
    "Alder & Sons": "Ireland",
    "Birchwood Hotels": "United Kingdom",
    "Casa Miró": "Spain",
    "Dunkelberg GmbH": "Germany",
    "Elmfield School": "United Kingdom",
    "Fjordlys AS": "Norway",
    "Green Harbour Cafés": "Netherlands",
    "Hollis Interiors": "Ireland",
    "Isola Bianca": "Italy",
    "Jardin d'Été": "France",
    "Kestrel Outdoor": "United Kingdom",
    "Lumen Office": "Germany",
}
PRODUCTS = {
    "desk lamp": ("34.90", "lighting"),
    "floor lamp": ("89.00", "lighting"),
    "oak table": ("420.00", "furniture"),
    "bar stool": ("65.50", "furniture"),
    "bookcase": ("159.00", "furniture"),
    "wool rug": ("210.00", "textiles"),
    "linen curtain": ("48.25", "textiles"),
    "wall clock": ("27.80", "decor"),
    "planter": ("19.95", "decor"),
}
STATUSES = ("delivered", "shipped", "pending", "cancelled")
ORDERS = 200


def orders() -> list[dict[str, str]]:
    """200 orders of 2025; Fjordlys AS buys most often and most at a time."""
    rng = random.Random(20250301)
    names = list(CUSTOMERS)
    weights = [3 if name == "Fjordlys AS" else 2 if name < "F" else 1 for name in names]
    rows = []
    for number in range(ORDERS):
        customer = rng.choices(names, weights)[0]
        product = rng.choice(list(PRODUCTS))
        quantity = rng.randint(1, 12 if customer == "Fjordlys AS" else 6)
        rows.append(
            {
                "order_id": str(10001 + number),
                "date": (date(2025, 1, 2) + timedelta(days=number * 364 // ORDERS)).isoformat(),
                "customer": customer,
                "country": CUSTOMERS[customer],
                "product": product,
                "quantity": str(quantity),
                "unit_price": PRODUCTS[product][0],
                "status": rng.choices(STATUSES, (70, 12, 10, 8))[0],
            }
        )
    return rows


def stock() -> list[dict[str, str]]:
    """What lies in the store room, one line a product."""
    rng = random.Random(7)
    return [
        {
            "product": product,
            "category": category,
            "in_stock": str(rng.randint(0, 80)),
            "reorder_below": str(rng.choice((10, 15, 20))),
        }
        for product, (_, category) in PRODUCTS.items()
    ]


NOTES = """\
Notes for whoever answers questions about these files

orders.csv has one line per order; the value of an order is quantity times unit_price, in euros.
Cancelled orders are kept in the file.
stock.csv is counted on the first working day of each month.
The store room is closed on 24 and 31 December.
"""


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    write(HERE / "orders.csv", orders())
    write(HERE / "stock.csv", stock())
    (HERE / "notes.txt").write_text(NOTES, encoding="utf-8", newline="\n")
