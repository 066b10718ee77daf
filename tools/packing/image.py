"""An image of the program for containers, in the layout of the Open Container Initiative, as one tar.

One layer has the program, the libraries of the system that it loads, and nothing else that runs.
"""

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from .archives import Tree, gzipped, sha256, tar
from .packages import SUMMARY, Contents

# A number that is nobody's on usual systems.
USER = 65532
WORK = "data"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def layer(of: Contents) -> Tree:
    tree = Tree()
    tree.add_file("usr/bin/weir", of.binary.path, 0o755)
    for name, path in of.binary.libraries.items():
        # The loader is named by its path, and finds the others by their names.
        place = name if name.startswith("/") else f"{path.parent}/{name}"
        tree.add_file(place.lstrip("/"), path.resolve(), 0o755 if name.startswith("/") else 0o644)
        for terms in copyrights(path):
            tree.add_file(str(terms).lstrip("/"), terms)
    tree.add("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nweir:x:{USER}:{USER}:weir:/{WORK}:/sbin/nologin\n")
    tree.add("etc/group", f"root:x:0:\nweir:x:{USER}:\n")
    tree.add("usr/share/doc/weir/THIRD-PARTY-LICENSES.txt", of.licences)
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        tree.add_file(f"usr/share/doc/weir/{name}", of.own(name))
    # Reports are written here, by whichever user a container is started with.
    tree.folders |= {WORK: 0o1777, "tmp": 0o1777}
    return tree


def copyrights(library: Path) -> list[Path]:
    """Debian's file with the terms of a library, where the system has it."""
    for path in [library, library.resolve(), Path(f"/usr{library}")]:
        found = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            file = Path("/usr/share/doc") / found.stdout.split(":")[0] / "copyright"
            return [file] if file.is_file() else []
    return []


def image(of: Contents) -> tuple[str, bytes]:
    blobs = Tree()

    def blob(contents: bytes, kind: str) -> dict:
        digest = sha256(contents)
        blobs.add(f"blobs/sha256/{digest}", contents)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(contents)}

    created = datetime.fromtimestamp(of.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "weir",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": of.version,
        "org.opencontainers.image.revision": of.binary.commit,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    }
    unpacked = tar(layer(of), of.time)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(of.target.split("-")[0], of.target)
    config = {
        "created": created,
        "architecture": machine,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/weir"],
            "WorkingDir": f"/{WORK}",
            "Env": ["PATH=/usr/bin", f"HOME=/{WORK}"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(unpacked)}"]},
        "history": [{"created": created, "created_by": "tools/release"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(json.dumps(config, sort_keys=True).encode(), CONFIG),
        "layers": [blob(gzipped(unpacked), LAYER)],
        "annotations": labels,
    }
    entry = blob(json.dumps(manifest, sort_keys=True).encode(), MANIFEST)
    entry["annotations"] = {"org.opencontainers.image.ref.name": f"weir:{of.version}"}
    entry["platform"] = {"architecture": machine, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    blobs.add("index.json", json.dumps(index, sort_keys=True))
    blobs.add("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
    return f"{of.stem()}.oci.tar", tar(blobs, of.time)
