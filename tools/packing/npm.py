"""The npm package: the lab as WebAssembly, a module around it, and types, of which those of results follow from the schemas."""

import json
import tempfile
from pathlib import Path

from .archives import Tree, gzipped, tar
from .failure import Failure, run
from .packages import Contents
from .toolchain import Toolchain

MODULE = "crates/web/npm"
TARGET = "wasm32-unknown-unknown"
# Types that a schema's whole object gets, by the schema's name.
ROOTS = {"run": "RunResult", "open": "OpenedCall"}


def webassembly(chain: Toolchain, folder: Path) -> bytes:
    """Builds the lab's page, whose simulator it is."""
    # Flags of C are for what is linked natively; nothing of C is in here.
    run([chain.root / "crates/web/export.sh", folder], "crates/web/export.sh", env=chain.environment())
    return (folder / "weir.wasm").read_bytes()


def package(of: Contents, chain: Toolchain) -> tuple[str, bytes]:
    """An archive as `npm pack` makes it."""
    with tempfile.TemporaryDirectory() as folder:
        simulator = webassembly(chain, Path(folder) / "page")
    about = json.loads(of.own(f"{MODULE}/package.json").read_text()) | {"version": of.version}
    tree = Tree()
    tree.add("package.json", json.dumps(about, indent=2) + "\n")
    for file in sorted(of.own(MODULE).iterdir()):
        if file.name != "package.json":
            tree.add_file(file.name, file)
    tree.add("results.d.ts", types(of.root))
    tree.add("weir.wasm", simulator)
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        tree.add_file(name, of.own(name))
    tree.add("THIRD-PARTY-LICENSES.txt", of.licences)
    return f"{about['name']}-{of.version}.tgz", gzipped(tar(tree, of.time, "package/"))


def types(root: Path) -> str:
    """TypeScript's types of the results, from the schemas of `weir run --json` and `weir open --json`."""
    parts = ["// Types of results, made from Weir's JSON schemas.\n"]
    known: dict[str, str] = {}
    for name, title in ROOTS.items():
        schema = json.loads((root / f"crates/cli/schemas/{name}.json").read_text())
        # The name of the schema is not in what the simulator returns.
        schema["properties"].pop("schema", None)
        schema["required"] = [field for field in schema["required"] if field != "schema"]
        for of, definition in [(title, schema), *sorted(schema.pop("$defs", {}).items())]:
            text = declaration(of, definition)
            if known.setdefault(of, text) != text:
                raise Failure(f"two types with the name {of} in the schemas of {', '.join(ROOTS)}")
    return "\n".join(parts + list(known.values()))


def declaration(name: str, schema: dict) -> str:
    if "properties" in schema and not {"oneOf", "anyOf"} & schema.keys():
        return f"{comment(schema, '')}export interface {name} {fields(schema, '')}\n"
    return f"{comment(schema, '')}export type {name} = {kind(schema, '')};\n"


def comment(schema: dict, indent: str) -> str:
    text = " ".join(schema.get("description", "").split()).replace("*/", "*\\/")
    return f"{indent}/** {text} */\n" if text else ""


def fields(schema: dict, indent: str) -> str:
    required = schema.get("required", [])
    deeper = indent + "  "
    lines = ["{\n"]
    for name, field in schema.get("properties", {}).items():
        key = name if name.isidentifier() else json.dumps(name)
        lines.append(f"{comment(field, deeper)}{deeper}{key}{'' if name in required else '?'}: {kind(field, deeper)};\n")
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        lines.append(f"{deeper}[name: string]: {kind(more, deeper)};\n")
    return "".join(lines) + indent + "}"


PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def kind(schema: dict | bool, indent: str) -> str:
    """The type of a value."""
    if isinstance(schema, bool):
        return "unknown"
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for several in ["anyOf", "oneOf"]:
        if several in schema:
            forms = [kind(form, indent) for form in schema[several]]
            both = " | ".join(dict.fromkeys(forms))
            return f"({both}) & {fields(schema, indent)}" if "properties" in schema else both
    of = schema.get("type")
    if isinstance(of, list):
        return " | ".join(dict.fromkeys(kind(schema | {"type": one}, indent) for one in of))
    if of == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(kind(item, indent) for item in schema['prefixItems'])}]"
        inside = kind(schema.get("items", True), indent)
        return f"({inside})[]" if "|" in inside or "&" in inside else f"{inside}[]"
    if of == "object":
        return fields(schema, indent)
    return PLAIN.get(of, "unknown")

