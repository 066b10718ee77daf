"""The bill of materials and the licences of what is built in, from cargo's metadata and the sources that it fetched."""

import json
import re
import uuid
from datetime import datetime, timezone
from pathlib import Path

from .failure import Failure, run

# A crate with bundled sources of others has their licences in a folder of its own.
DEPTH = 3
NAMES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)([-_.].*)?$", re.IGNORECASE)
# Files of these names that are programs.
SOURCES = {".rs", ".c", ".h", ".py", ".sh", ".js", ".toml", ".json"}
SPACE = uuid.UUID("d3b0c5a2-7d0d-5c5a-9f7a-3f3d7f0f4c11")


class Materials:
    """Packages that are in a build of a room with these features, for this target; the room `weir` is the program."""

    def __init__(self, root: Path, features: list[str], target: str, room: str = "weir"):
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
        command += ["--no-default-features", "--features", ",".join(features)]
        manifest = str(root / "crates" / room / "Cargo.toml")
        command += ["--manifest-path", manifest]
        data = json.loads(run(command, "cargo of a Rust toolchain", cwd=root))
        self.packages = {p["id"]: p for p in data["packages"]}
        nodes = {n["id"]: n for n in data["resolve"]["nodes"]}
        self.root = next(i for i, p in self.packages.items() if p["manifest_path"] == manifest)
        self.edges: dict[str, list[str]] = {}
        waiting = [self.root]
        while waiting:
            at = waiting.pop()
            if at in self.edges:
                continue
            linked = [d["pkg"] for d in nodes[at]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
            self.edges[at] = sorted(linked, key=self.name)
            waiting += linked
        lock = (root / "Cargo.lock").read_text()
        entries = re.findall(r'name = "(.+)"\nversion = "(.+)"\n(?:source = ".*"\n)?checksum = "(.+)"', lock)
        self.checksums = {(name, version): checksum for name, version, checksum in entries}

    def name(self, package: str) -> tuple[str, str]:
        p = self.packages[package]
        return p["name"], p["version"]

    def others(self) -> list[dict]:
        """Packages from a registry, by name."""
        found = [self.packages[i] for i in self.edges if self.packages[i]["source"] is not None]
        return sorted(found, key=lambda p: (p["name"], p["version"]))

    def cyclonedx(self, time: int) -> bytes:
        """The bill of materials as CycloneDX 1.5 in JSON."""

        def reference(package: str) -> str:
            name, version = self.name(package)
            return f"pkg:cargo/{name}@{version}"

        def component(package: str) -> dict:
            p = self.packages[package]
            made = {
                "type": "application" if package == self.root else "library",
                "bom-ref": reference(package),
                "name": p["name"],
                "version": p["version"],
                "description": " ".join((p["description"] or "").split()),
                "purl": reference(package),
            }
            if p["license"]:
                # A slash is an older way to write OR.
                made["licenses"] = [{"expression": p["license"].replace(" / ", " OR ").replace("/", " OR ")}]
            checksum = self.checksums.get((p["name"], p["version"]))
            if checksum:
                made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
            if p["repository"]:
                made["externalReferences"] = [{"type": "vcs", "url": p["repository"]}]
            return made

        order = sorted(self.edges, key=self.name)
        made = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "component": component(self.root),
            },
            "components": [component(i) for i in order if i != self.root],
            "dependencies": [
                {"ref": reference(i), "dependsOn": [reference(d) for d in self.edges[i]]} for i in order
            ],
        }
        number = uuid.uuid5(SPACE, json.dumps(made, sort_keys=True))
        made = {"bomFormat": made.pop("bomFormat"), "serialNumber": f"urn:uuid:{number}", **made}
        return (json.dumps(made, indent=1) + "\n").encode()

    def licences(self) -> tuple[str, list[str]]:
        """The licences of all packages from registries as one text, and the names of packages that have no such file."""
        texts: dict[str, list[str]] = {}
        entries, without = [], []
        for p in self.others():
            name = f"{p['name']} {p['version']}"
            files = licence_files(Path(p["manifest_path"]).parent)
            if not p["license"] and not files:
                raise Failure(f"{name} states no licence")
            entries.append(f"{name}: {p['license'] or 'see its file'}")
            if not files:
                without.append(name)
            for text in files.values():
                texts.setdefault(text, []).append(name)
        standard = "the standard library of Rust: MIT OR Apache-2.0"
        parts = ["Weir contains these libraries, under these licences:\n", standard, *entries, ""]
        if without:
            parts += ["Their archives contain no text of the licence that they state:\n", *without, ""]
        for text, names in sorted(texts.items(), key=lambda t: t[1]):
            users = list(dict.fromkeys(names))
            parts += ["=" * 80, *(users if len(users) < 9 else [", ".join(users)]), "-" * 80, text, ""]
        return "\n".join(parts), without


def licence_files(folder: Path) -> dict[str, str]:
    """Texts of licences in a package's sources, by path."""
    found = {}
    waiting = [(folder, 0)]
    while waiting:
        at, depth = waiting.pop()
        for path in sorted(at.iterdir()):
            if path.is_dir() and not path.is_symlink() and depth < DEPTH:
                waiting.append((path, depth + 1))
            elif path.is_file() and NAMES.match(path.name) and path.suffix not in SOURCES:
                text = path.read_text(encoding="utf-8", errors="replace")
                found[str(path.relative_to(folder))] = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    return found
