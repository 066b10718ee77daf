#!/usr/bin/env python3
"""Compare two outputs of `weir judge paper PAPER --json` and print what differs.

    weir judge paper dp-fec --json > after.json
    benches/compare/reproductions.py before.json after.json
    benches/compare/reproductions.py before.json after.json --relative 0.01 --sigmas 1

Cells are matched by paper, table, scenario, condition, algorithm and metric, claims by their names. By default nothing may
differ. A measured value may differ by the largest of the tolerances given; a value that is there in one file alone, another
number of runs, unit or published value, or a claim that holds in one file alone always differs.

Exit code: 0 nothing differs, 1 something does, 2 a file cannot be read.
"""

import argparse
import json
import sys

KEY = ("paper", "table", "scenario", "condition", "algorithm", "metric")
EXACT = ("unit", "published", "published_sigma", "runs")


class Unreadable(Exception):
    """A file is no output of `weir judge paper --json`."""


def load(path):
    """The cells and claims of a file, each by what names it."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise Unreadable(f"{path}: not an output of `weir judge paper PAPER --json`: it has no list `cells`")
    cells, claims = {}, {}
    for cell in data["cells"]:
        if not isinstance(cell, dict):
            raise Unreadable(f"{path}: a cell is not an object")
        put(cells, tuple(str(cell.get(k, "")) for k in KEY), cell)
    for claim in data.get("claims", []):
        put(claims, (str(claim.get("id", "")),), claim)
    return cells, claims


def put(known, key, value):
    """A paper may print the same cell twice: the second has a number in its key."""
    numbered, n = key, 1
    while numbered in known:
        n += 1
        numbered = key + (f"no. {n}",)
    known[numbered] = value


def allowed(before, after, args):
    """How far a measured value may be from what it was."""
    sigma = max(before.get("measured_sigma") or 0.0, after.get("measured_sigma") or 0.0)
    return max(args.absolute, args.relative * abs(before["measured"]), args.sigmas * sigma)


def differences(before, after, args):
    """What differs between two cells, in words."""
    for field in EXACT:
        if before.get(field) != after.get(field):
            yield f"{field}: {before.get(field)} -> {after.get(field)}"
    old, new = before.get("measured"), after.get("measured")
    if old is None or new is None:
        if old != new:
            yield f"measured: {old} -> {new}"
        return
    if abs(new - old) > allowed(before, after, args):
        part = f" ({100.0 * (new - old) / abs(old):+.2f} %)" if old else ""
        yield f"measured: {old} -> {new}{part}"
    strict = args.absolute == 0 and args.relative == 0 and args.sigmas == 0
    if strict and before.get("measured_sigma") != after.get("measured_sigma"):
        yield f"measured_sigma: {before.get('measured_sigma')} -> {after.get('measured_sigma')}"


def outcome(claim, strict):
    """What must agree of a claim: whether it holds, and by default the numbers behind it."""
    return (claim.get("holds"), claim.get("measured") if strict else None)


def compare(before, after, args):
    """Lines that say what differs, and how many cells and claims were compared."""
    lines = []
    (cells, claims), (new_cells, new_claims) = before, after
    for key in [*cells, *(k for k in new_cells if k not in cells)]:
        if key not in new_cells or key not in cells:
            lines.append(f"{' / '.join(key)}: only {'before' if key in cells else 'after'}")
            continue
        lines += [f"{' / '.join(key)}: {d}" for d in differences(cells[key], new_cells[key], args)]
    strict = args.absolute == 0 and args.relative == 0 and args.sigmas == 0
    for key in [*claims, *(k for k in new_claims if k not in claims)]:
        if key not in new_claims or key not in claims:
            lines.append(f"claim {' '.join(key)}: only {'before' if key in claims else 'after'}")
        elif outcome(claims[key], strict) != outcome(new_claims[key], strict):
            held = (claims[key].get("holds"), new_claims[key].get("holds"))
            what = f"{held[0]} -> {held[1]}" if held[0] != held[1] else "other numbers behind it"
            lines.append(f"claim {' '.join(key)}: {what}")
    return lines, len(cells.keys() & new_cells.keys()), len(claims.keys() & new_claims.keys())


def tolerance(text):
    """A number not below zero."""
    value = float(text)
    if not value >= 0.0 or value == float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no tolerance: a number from 0 on")
    return value


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--relative", type=tolerance, default=0.0, help="part of the earlier value (0.01 is 1 %%)")
    parser.add_argument("--absolute", type=tolerance, default=0.0, help="in the cell's own unit")
    parser.add_argument("--sigmas", type=tolerance, default=0.0, help="in the larger of both standard deviations")
    args = parser.parse_args(argv)
    try:
        before, after = load(args.before), load(args.after)
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    lines, cells, claims = compare(before, after, args)
    for line in lines:
        print(line)
    print(f"{cells} cells and {claims} claims compared, {len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
