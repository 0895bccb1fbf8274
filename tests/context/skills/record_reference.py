"""Records what the specification's reference validator says of the generated folders.

Run it with a Python that has `skills-ref` (PyPI), after `generated_skills` changed:
    python tests/context/skills/record_reference.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generated_skills import Folder, beyond_reference, folders, write

RECORD = Path(__file__).with_name("reference_verdicts.json")


def verdict(folder: Folder) -> str:
    """`valid`, `invalid`, or the name of the exception that the reference ended with."""
    from skills_ref import validate  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as where:
        top = write(folder, where)
        try:
            return "invalid" if validate(Path(top)) else "valid"
        except Exception as fault:  # noqa: BLE001 - that it ended so is what is recorded
            return type(fault).__name__


if __name__ == "__main__":
    record = {
        "validator": f"skills-ref {version('skills-ref')}",
        "verdicts": [verdict(folder) for folder in folders()],
        "beyond": [verdict(folder) for folder in beyond_reference()],
    }
    RECORD.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")
    print({word: record["verdicts"].count(word) for word in set(record["verdicts"])})
    print(record["beyond"])
