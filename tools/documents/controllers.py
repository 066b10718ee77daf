"""Pages of docs/explanation/controllers, held against the program and the sources: run by tools/site --check."""

import re
from pathlib import Path

from documents import plots
from documents.reference import Program

FOLDER = "explanation/controllers"
# Shelves whose controllers have a page; one that is added by a feature of the build may be absent.
SHELVES = ("algorithms", "added")
# | `name` | default, with its unit | meaning |
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<value>[-\d.,]+)(?: (?P<unit>[^|]+?))? \|", re.MULTILINE)
SOURCE = re.compile(r"`(crates/[\w/.-]+\.rs)`")
# Units that are no words of a text: pure numbers, counts and switches.
PLAIN = ("1", "count", "0 or 1")


def defaults(page: str, controller: dict) -> list[str]:
    """Rows of parameters that disagree with a controller's own list."""
    known = {p["name"]: p for p in controller.get("params") or []}
    faults = []
    for row in ROW.finditer(page):
        parameter = known.get(row["name"])
        if parameter is None:
            faults.append(f"`{row['name']}` is no parameter of {controller['name']}")
            continue
        unit = "" if parameter["unit"] in PLAIN else parameter["unit"]
        agrees = float(row["value"].replace(",", "")) == parameter["default"]
        if not agrees or (row["unit"] or "") != unit:
            shown = f"{row['value']} {row['unit'] or ''}".strip()
            faults.append(f"the default of `{row['name']}` is {parameter['default']:g} {unit}".rstrip() + f", not {shown}")
    return faults


def sources(page: str, root: Path) -> list[str]:
    named = SOURCE.findall(page)
    if not named:
        return ["it names no file of its source"]
    return [f"`{name}` is not there" for name in named if not (root / name).is_file()]


def of_page(page: str, controller: dict, root: Path) -> list[str]:
    """All faults of a controller's page."""
    faults = sources(page, root) + defaults(page, controller)
    if controller.get("params") and not ROW.search(page):
        faults.append("it has no parameter with its default")
    if [m["name"] for m in plots.MARK.finditer(page)] != [controller["name"]]:
        faults.append(f"it has no line <!-- plot: {controller['name']} -->, or others")
    return faults


def check(root: Path, program: Program) -> int:
    """Checks that each controller has a true page; returns how many faults there are."""
    folder = root / "docs" / FOLDER
    listed = program.json("show", "controllers", "--params")["controllers"]
    known = {c["name"]: c for c in listed if c["shelf"] in SHELVES}
    index = (folder / "index.md").read_text()
    faults = []
    for name, controller in known.items():
        page = folder / f"{name}.md"
        if not page.is_file():
            faults.append(f"{FOLDER}/{name}.md: {name} has no page")
            continue
        faults += [f"{FOLDER}/{name}.md: {fault}" for fault in of_page(page.read_text(), controller, root)]
    for page in sorted(folder.glob("*.md")):
        if page.name != "index.md" and f"({page.name})" not in index:
            faults.append(f"{FOLDER}/index.md: {page.stem} is not listed")
    for fault in faults:
        print(f"FAILED   {fault}")
    print(f"{len(known)} controllers have their pages checked, with {len(faults)} faults")
    return len(faults) if known else 1
