"""The tarball and the Debian package."""

import os
import tempfile
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
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass
class Contents:
    """Everything that packages are made from."""

    root: Path
    binary: Binary
    # Completions and man pages by path below the prefix.
    pages: dict[str, bytes]
    # Licences of the libraries that are built in.
    licences: str
    time: int
    maintainer: str

    def own(self, name: str) -> Path:
        return self.root / name

    def stem(self) -> str:
        return f"weir-{self.binary.version}-{self.binary.target}"


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


def depends(binary: Binary) -> str:
    needed = set()
    for name in binary.libraries:
        if name.startswith("/"):
            continue
        if name not in DEBIAN:
            raise Failure(f"no Debian package is known for {name}, which the program loads: add it to DEBIAN in {__file__}")
        needed.add(DEBIAN[name])
    return ", ".join(f"{n} (>= {binary.glibc})" if n == "libc6" else n for n in sorted(needed))


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


def changelog(of: Contents) -> str:
    """Debian's changelog, whose form is not that of the project's."""
    date = format_datetime(datetime.fromtimestamp(of.time, timezone.utc))
    return f"""\
weir ({of.binary.version}) unstable; urgency=medium

  * Version {of.binary.version}: see CHANGELOG.md.gz.

 -- {of.maintainer}  {date}
"""


def deb(of: Contents) -> tuple[str, bytes]:
    architecture = ARCHITECTURES.get(of.binary.target.split("-")[0])
    if not architecture:
        raise Failure(f"no Debian architecture is known for {of.binary.target}")
    tree = Tree()
    tree.add_file("usr/bin/weir", of.binary.path, 0o755)
    for path, text in of.pages.items():
        # Debian's Zsh looks in a folder of its own.
        path = path.replace("share/zsh/site-functions", "share/zsh/vendor-completions")
        if path.startswith("share/man/"):
            path, text = f"{path}.gz", gzipped(text)
        tree.add(f"usr/{path}", text)
    doc = "usr/share/doc/weir"
    tree.add(f"{doc}/copyright", copyright_file(of))
    tree.add(f"{doc}/changelog.gz", gzipped(changelog(of).encode()))
    tree.add(f"{doc}/CHANGELOG.md.gz", gzipped(of.own("CHANGELOG.md").read_bytes()))
    tree.add(f"{doc}/README.md", of.own("README.md").read_bytes())
    tree.add(f"{doc}/THIRD-PARTY-LICENSES.txt.gz", gzipped(of.licences.encode()))
    size = sum(-(-len(contents) // 1024) for contents, _ in tree.files.values()) + len(tree.all_folders())
    control = f"""\
Package: weir
Version: {of.binary.version}
Section: net
Priority: optional
Architecture: {architecture}
Depends: {depends(of.binary)}
Installed-Size: {size}
Maintainer: {of.maintainer}
Description: {SUMMARY}
{DESCRIPTION}"""
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
        return f"weir_{of.binary.version}_{architecture}.deb", out.read_bytes()


def md5sums(tree: Tree) -> str:
    files = sorted((path, contents) for path, (contents, _) in tree.files.items() if not path.startswith("DEBIAN/"))
    return "".join(f"{md5(contents, usedforsecurity=False).hexdigest()}  {path}\n" for path, contents in files)
