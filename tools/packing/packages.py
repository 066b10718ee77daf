"""The tarball and the Debian packages."""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import format_datetime
from hashlib import md5
from pathlib import Path

from .archives import Tree, gzipped, tar
from .binary import Binary
from .failure import Failure, run

SUMMARY = "congestion control for live audio and video"
DESCRIPTION = """\
 Runs the serious RTP rate controllers (GCC, NADA, SCReAM and others) in a
 deterministic simulator and on real sockets, compares them, opens recorded
 calls and says why their rate fell.
"""

# Debian packages of the libraries that a build loads.
DEBIAN = {
    "libc.so.6": "libc6",
    "libm.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libpthread.so.0": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgobject-2.0.so.0": "libglib2.0-0",
    "libgio-2.0.so.0": "libglib2.0-0",
    "libgmodule-2.0.so.0": "libglib2.0-0",
    "libgstreamer-1.0.so.0": "libgstreamer1.0-0",
    "libgstbase-1.0.so.0": "libgstreamer1.0-0",
    "librt.so.1": "libc6",
    "libutil.so.1": "libc6",
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass
class Contents:
    """Everything that packages are made from."""

    root: Path
    binary: Binary | None
    version: str
    target: str
    # Completions and man pages by path below the prefix.
    pages: dict[str, bytes]
    # Licences of the libraries that are built in.
    licences: str
    time: int
    maintainer: str

    def own(self, name: str) -> Path:
        return self.root / name

    def stem(self) -> str:
        return f"weir-{self.version}-{self.target}"


def tarball(of: Contents) -> tuple[str, bytes]:
    """A folder with `bin` and `share`, which can be copied over a prefix such as /usr/local."""
    tree = Tree()
    tree.add_file("bin/weir", of.binary.path, 0o755)
    for path, text in of.pages.items():
        tree.add(path, text)
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
        tree.add_file(f"share/doc/weir/{name}", of.own(name))
    tree.add("share/doc/weir/THIRD-PARTY-LICENSES.txt", of.licences)
    return f"{of.stem()}.tar.gz", gzipped(tar(tree, of.time, f"{of.stem()}/"))


def depends(libraries: Iterable[str], glibc: str, least: dict[str, str] | None = None) -> str:
    """Debian packages of these sonames, with the least version of those that have one."""
    needed = set()
    for name in libraries:
        if name.startswith("/") or name.startswith("ld-linux"):
            continue
        if name not in DEBIAN:
            raise Failure(f"no Debian package is known for {name}, which is loaded: add it to DEBIAN in {__file__}")
        needed.add(DEBIAN[name])
    versions = {"libc6": glibc} | (least or {})
    return ", ".join(f"{n} (>= {versions[n]})" if n in versions else n for n in sorted(needed))


def copyright_file(of: Contents) -> str:
    """Debian's copyright file: the project's two licences; those of libraries are a file beside it."""

    def folded(text: str) -> str:
        return "\n".join(f" {line}" if line.strip() else " ." for line in text.strip().splitlines())

    apache = " On Debian systems the full text is /usr/share/common-licenses/Apache-2.0."
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: weir
Comment: Licences of the libraries that are built in: THIRD-PARTY-LICENSES.txt.gz beside this file.

Files: *
Copyright: The Weir authors
License: MIT or Apache-2.0

License: MIT
{folded(of.own("LICENSE-MIT").read_text())}

License: Apache-2.0
{apache}
"""


def changelog(of: Contents, package: str) -> str:
    """Debian's changelog, whose form is not that of the project's."""
    date = format_datetime(datetime.fromtimestamp(of.time, timezone.utc))
    return f"""\
{package} ({of.version}) unstable; urgency=medium

  * Version {of.version}: see CHANGELOG.md.gz.

 -- {of.maintainer}  {date}
"""


@dataclass
class Debian:
    """What a Debian package states of itself."""

    name: str
    section: str
    depends: str
    summary: str
    # Lines that begin with a blank.
    description: str


def debian(of: Contents, about: Debian, tree: Tree) -> tuple[str, bytes]:
    """A Debian package of these files, and of its documents."""
    architecture = ARCHITECTURES.get(of.target.split("-")[0])
    if not architecture:
        raise Failure(f"no Debian architecture is known for {of.target}")
    doc = f"usr/share/doc/{about.name}"
    tree.add(f"{doc}/copyright", copyright_file(of))
    tree.add(f"{doc}/changelog.gz", gzipped(changelog(of, about.name).encode()))
    tree.add(f"{doc}/CHANGELOG.md.gz", gzipped(of.own("CHANGELOG.md").read_bytes()))
    tree.add(f"{doc}/THIRD-PARTY-LICENSES.txt.gz", gzipped(of.licences.encode()))
    size = sum(-(-len(contents) // 1024) for contents, _ in tree.files.values()) + len(tree.all_folders())
    control = f"""\
Package: {about.name}
Version: {of.version}
Section: {about.section}
Priority: optional
Architecture: {architecture}
Depends: {about.depends}
Installed-Size: {size}
Maintainer: {of.maintainer}
Description: {about.summary}
{about.description}"""
    tree.add("DEBIAN/control", control)
    tree.add("DEBIAN/md5sums", md5sums(tree))
    with tempfile.TemporaryDirectory() as folder:
        staged, out = Path(folder) / "staged", Path(folder) / "weir.deb"
        staged.mkdir()
        tree.write(staged, of.time)
        # One thread: several cut what is compressed into blocks.
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", staged, out]
        env = os.environ | {"SOURCE_DATE_EPOCH": str(of.time)}
        run(command, "dpkg-deb of Debian's dpkg; without it, --only leaves the .deb out", env=env)
        return f"{about.name}_{of.version}_{architecture}.deb", out.read_bytes()


def deb(of: Contents) -> tuple[str, bytes]:
    """The program as a Debian package."""
    tree = Tree()
    tree.add_file("usr/bin/weir", of.binary.path, 0o755)
    for path, text in of.pages.items():
        # Debian's Zsh looks in a folder of its own.
        path = path.replace("share/zsh/site-functions", "share/zsh/vendor-completions")
        if path.startswith("share/man/"):
            path, text = f"{path}.gz", gzipped(text)
        tree.add(f"usr/{path}", text)
    tree.add("usr/share/doc/weir/README.md", of.own("README.md").read_bytes())
    return debian(of, Debian("weir", "net", depends(of.binary.libraries, of.binary.glibc), SUMMARY, DESCRIPTION), tree)


def md5sums(tree: Tree) -> str:
    files = sorted((path, contents) for path, (contents, _) in tree.files.items() if not path.startswith("DEBIAN/"))
    return "".join(f"{md5(contents, usedforsecurity=False).hexdigest()}  {path}\n" for path, contents in files)
