"""Reference pages, written from what the program says of itself."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

# Commands that `weir --help` does not list beside its verbs. A build may lack some.
APART = ["open", "fit", "whatif", "estimator", "gate", "overlay", "coverage", "completions", "manual"]
WIDTH = 84
LISTS = {
    "disciplines": ("Queue disciplines", "of links, as `queue` in scenario files"),
    "schedulers": ("Schedulers", "that choose the path of each packet in calls over several"),
    "ccids": ("CCIDs", "the congestion control of DCCP"),
}


class Program:
    """A `weir` whose texts become pages."""

    def __init__(self, path: Path):
        self.path = path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}
        return subprocess.run([self.path, *words], capture_output=True, text=True, env=env, check=False)

    def text(self, *words: str) -> str:
        done = self.run(*words)
        if done.returncode != 0:
            raise RuntimeError(f"weir {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *words: str) -> dict:
        return json.loads(self.text(*words, "--json"))


def cell(text: object) -> str:
    """Text in a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(cell(c) for c in row)} |" for row in rows]) + "\n"


def subcommands(help_text: str) -> list[str]:
    """Names in the section `Commands:` of a help text."""
    section = re.search(r"^Commands:\n((?:  .*\n)+)", help_text, re.MULTILINE)
    names = re.findall(r"^  (\S+)", section[1], re.MULTILINE) if section else []
    return [name for name in names if name != "help"]


def command_section(program: Program, words: list[str], depth: int) -> str:
    text = program.text(*words, "--help")
    about, _, rest = text.partition("Usage: ")
    made = [f"{'#' * depth} weir {' '.join(words)}".rstrip(), "", about.strip(), "", "```text", f"Usage: {rest.rstrip()}", "```", ""]
    for name in subcommands(text):
        made.append(command_section(program, [*words, name], min(depth + 1, 4)))
    return "\n".join(made)


def commands(program: Program) -> dict[str, str]:
    """A page for each command, and the list of them."""
    whole = program.text("--help")
    names = [*subcommands(whole), *(name for name in APART if program.run(name, "--help").returncode == 0)]
    pages, rows = {}, []
    for name in names:
        pages[f"reference/commands/{name}.md"] = command_section(program, [name], 1)
        about = program.text(name, "-h").strip().splitlines()[0]
        rows.append([f"[weir {name}]({name}.md)", about])
    usage = whole.partition("Usage: ")[2].rstrip()
    pages["reference/commands/index.md"] = "\n".join([
        "# Commands",
        "",
        table(["command", "does"], rows),
        "Without a command, `weir` is `weir compare`.",
        "",
        "```text",
        f"Usage: {usage}",
        "```",
        "",
    ])
    return pages


def parameters(of: dict) -> str:
    """The table of parameters of a controller, discipline or CCID."""

    def bounds(p: dict) -> str:
        if "allowed" in p:
            return p["allowed"]
        return f"{p['min']:g} to {p['max']:g}" if "min" in p else ""

    def value(p: dict) -> str:
        default = p.get("default", "")
        return f"{default:g}" if isinstance(default, float) else str(default)

    # The meaning before the rest, which a narrow screen cuts off.
    rows = [[f"`{p['name']}`", p["doc"], value(p), p.get("unit", ""), bounds(p)] for p in of.get("params") or []]
    return table(["parameter", "meaning", "default", "unit", "range"], rows) if rows else "It has no parameters.\n"


def controllers(program: Program) -> str:
    every = program.json("show", "controllers", "--all", "--params")["controllers"]
    shelves = {"algorithms": "For general use", "added": "By features of the build", "papers": "For the results of one paper each"}
    parts = ["# Controllers", "", "By name in `--controllers`, in scenario files and in programs. Parameters are given as"]
    parts += ["`sluice:queue_target=20`, in the unit of the parameter, or in a scenario's table `controllers.NAME.params`.", ""]
    for shelf, title in shelves.items():
        chosen = [c for c in every if c["shelf"] == shelf]
        if not chosen:
            continue
        rows = [[f"[{c['name']}](#{c['name']})", c["summary"], c["source"]] for c in chosen]
        parts += [f"## {title}", "", table(["controller", "is", "source"], rows)]
        for c in chosen:
            parts += [f"### {c['name']}", "", f"{c['summary']}. Source: {c['source']}.", "", parameters(c)]
    others = {c["shelf"] for c in every} - shelves.keys()
    if others:
        raise RuntimeError(f"shelves without a title: {', '.join(sorted(others))}")
    return "\n".join(parts)


def lists(program: Program) -> str:
    parts = ["# Queues, schedulers, CCIDs, codecs", ""]
    for kind, (title, what) in LISTS.items():
        parts += [f"## {title}", "", f"{title}, {what}: `weir show {kind}`.", ""]
        words = ["show", kind, *(["--params"] if kind == "disciplines" else [])]
        for entry in program.json(*words)[kind]:
            parts += [f"### {entry['name']}", "", f"{entry['summary']}. Source: {entry['source']}.", ""]
            parts += [parameters(entry)] if kind != "schedulers" else []
    codecs = program.json("show", "codecs")["codecs"]
    rows = [[c["codec"], c["library"], "yes" if c["built_in"] else "no", "" if c["built_in"] else c.get("way_out", "")] for c in codecs]
    parts += ["## Codecs", "", "Of the build that wrote this page:", "", table(["codec", "library", "built in", "how to get it"], rows)]
    return "\n".join(parts)


def scenarios(program: Program) -> str:
    rows = []
    for s in program.json("show", "scenarios")["scenarios"]:
        rows.append([f"`{s['name']}`", s["title"], ", ".join(s["variants"]), ", ".join(s["compares"])])
    papers = [[f"`{p['name']}`", p["title"]] for p in program.json("show", "papers")["papers"]]
    return "\n".join([
        "# Scenarios and papers",
        "",
        "Built into the program. `weir show scenario NAME` prints one; `--scenario` takes a name, or its last part where that is unique.",
        "",
        table(["scenario", "title", "variants", "controllers"], rows),
        "## Papers",
        "",
        "`weir judge paper NAME` sets their published numbers beside measured ones.",
        "",
        table(["paper", "title"], papers),
    ])


def kind_of(field: dict) -> str:
    """The type of a field of a JSON Schema, in words, with links to the tables that it names."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in field:
            found = [kind_of(f) for f in field[several] if f.get("type") != "null"]
            return " or ".join(dict.fromkeys(found))
    if "enum" in field:
        return ", ".join(f"`{v}`" for v in field["enum"] if v is not None)
    if "const" in field:
        return f"`{field['const']}`"
    kind = field.get("type", "any value")
    kinds = [k for k in kind if k != "null"] if isinstance(kind, list) else [kind]
    if kinds == ["array"]:
        return f"list of {kind_of(field['items'])}" if isinstance(field.get("items"), dict) else "list"
    if kinds == ["object"]:
        more = field.get("additionalProperties")
        return f"table by name of {kind_of(more)}" if isinstance(more, dict) and more else "table"
    return " or ".join({"string": "text", "integer": "whole number"}.get(k, k) for k in kinds)


def fields(of: dict) -> list[str]:
    needed = of.get("required", [])
    rows = []
    for name, field in sorted(of.get("properties", {}).items()):
        default = field.get("default")
        shown = "needed" if name in needed else f"`{json.dumps(default)}`" if default is not None else ""
        rows.append([f"`{name}`", field.get("description", ""), kind_of(field), shown])
    return [table(["field", "meaning", "type", "default"], rows)] if rows else []


def scenario_file(program: Program) -> dict[str, str]:
    text = program.text("show", "schema", "scenario")
    schema = json.loads(text)
    parts = [
        "# Scenario files",
        "",
        "A scenario is a file in TOML: a network, and the flows over it. `weir show scenario quick` prints one to start from, and `weir show",
        "scenario --check FILE` says what is wrong with one. [scenario.json](scenario.json) is the same as this page as a JSON Schema, which",
        "gives editors completion.",
        "",
        *fields(schema),
    ]
    for name, of in sorted(schema["$defs"].items()):
        parts += [f"## {name}", "", of.get("description", "").replace("<", "&lt;"), ""]
        found = fields(of)
        for several in ("anyOf", "oneOf"):
            for one in of.get(several, []):
                about = " ".join(one.get("description", "").split()).replace("<", "&lt;")
                parts.append(f"- {kind_of(one)}{': ' + about if about else ''}")
                found += fields(one)
        if not found and not any(k in of for k in ("anyOf", "oneOf")):
            parts.append(f"It is {kind_of({k: v for k, v in of.items() if k != 'description'})}.")
        parts += ["", *found]
    return {"reference/scenario-file.md": "\n".join(parts), "reference/scenario.json": text}


def pages(path: Path, say: Callable[[str], None]) -> dict[str, str]:
    """All generated pages by path."""
    program = Program(path)
    say("reference: commands")
    made = commands(program)
    say("reference: controllers, scenarios, lists and schemas")
    made["reference/controllers.md"] = controllers(program)
    made["reference/lists.md"] = lists(program)
    made["reference/scenarios.md"] = scenarios(program)
    made |= scenario_file(program)
    made["reference/results.md"] = program.text("show", "schema", "--markdown")
    version = " ".join(program.text("--version").split("\n")[:2])
    made["reference/index.md"] = "\n".join([
        "# Reference",
        "",
        f"These pages are written by the program itself: {version}.",
        "",
        table(
            ["page", "has"],
            [
                ["[Commands](commands/index.md)", "every command with its options and examples"],
                ["[Controllers](controllers.md)", "names, sources and parameters"],
                ["[Queues, schedulers, CCIDs, codecs](lists.md)", "names, sources and parameters"],
                ["[Scenarios and papers](scenarios.md)", "names of what is built in"],
                ["[Scenario files](scenario-file.md)", "the fields of a scenario, and its JSON Schema"],
                ["[Results](results.md)", "the fields of every output of `--json`"],
            ],
        ),
    ])
    return made
