"""Write or check `requirements/*.lock`: every package by name, version and hash; no addresses.

python scripts/lock.py           write them anew from pyproject.toml (needs `uv` on the path)
python scripts/lock.py --check   are they well-formed, and do they cover pyproject.toml?
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"run": ["local"], "dev": ["local", "dev"], "docs": ["docs"]}
BUILD = ["hatchling>=1.27", "editables>=0.5"]


def write(name: str, extras: list[str]) -> None:
    """Resolve for Python 3.11 on every platform and write the lock."""
    target = ROOT / "requirements" / f"{name}.lock"
    command = [
        "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate",
        "--no-header", "-", "--output-file", str(target),
    ]  # fmt: skip
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project["dependencies"]) + BUILD
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    subprocess.run(command, input="\n".join(wanted) + "\n", text=True, check=True, cwd=ROOT)


def faults(name: str, extras: list[str]) -> list[str]:
    """What is wrong with a lock."""
    file = ROOT / "requirements" / f"{name}.lock"
    if not file.exists():
        return [f"{file.name} is missing"]
    text = file.read_text("utf-8")
    found = []
    if re.search(r"https?://|file:|--index|--find-links", text):
        found.append(f"{file.name} records an address")
    pinned = {m.lower().replace("_", "-") for m in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.M)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for wanted in [
        *project["dependencies"],
        *(w for e in extras for w in project["optional-dependencies"][e]),
    ]:
        package = re.split(r"[<>=!~\[; ]", wanted, maxsplit=1)[0].lower().replace("_", "-")
        if package not in pinned:
            found.append(f"{file.name} does not pin {package}")
    for block in re.split(r"\n(?=[A-Za-z0-9])", text.strip()):
        if "--hash=sha256:" not in block:
            found.append(f"{file.name}: no hash for {block.splitlines()[0]}")
    return found


def main() -> int:
    if "--check" in sys.argv[1:]:
        found = [fault for name, extras in LOCKS.items() for fault in faults(name, extras)]
        for fault in found:
            print(fault, file=sys.stderr)
        return 1 if found else 0
    for name, extras in LOCKS.items():
        write(name, extras)
    return 0


if __name__ == "__main__":
    sys.exit(main())
