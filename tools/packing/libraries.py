"""Debian packages of what other programs load: the C library and the GStreamer plugin."""

import re
import tempfile
from pathlib import Path

from .archives import Tree
from .binary import needed, newest_glibc, strip
from .failure import Failure, run
from .packages import Contents, Debian, debian, depends
from .toolchain import Toolchain

# Features of the packaged C library: the simulator as well, since programs are linked with what they use of it.
LIBRARY_FEATURES = ["lab"]
GSTREAMER_FEATURES = ["gst"]

LIBRARY = """\
 Congestion controllers and Reed-Solomon repair for programs in C and C++, with
 the simulator: shared and static library, headers, and a file for pkg-config.
"""
GSTREAMER = """\
 The plugin paces RTP and estimates rates for encoders (weirbwe), under any of
 Weir's controllers, and repairs losses (weirfecenc, weirfecdec).
"""


def multiarch(target: str) -> str:
    """The folder of a machine's libraries, as Debian names it."""
    processor, *_, system = target.split("-")
    return f"{processor}-linux-{system}"


def copied(path: Path, foreign: bool) -> tuple[bytes, list[str], str]:
    """A shared library without symbols, the sonames that it asks for, and its glibc."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        # What programs link by stays in the table of dynamic symbols.
        strip(path, copy, foreign)
        return copy.read_bytes(), needed(copy), newest_glibc(copy)


def static(path: Path, foreign: bool) -> bytes:
    """A static library without what a debugger reads, and without the bitcode that Rust keeps for its own links: two thirds of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(path.read_bytes())
        if not foreign:
            tool = "objcopy of binutils (apt-get install binutils)"
            dropped = ["--strip-debug", "--remove-section=.llvmbc", "--remove-section=.llvmcmd"]
            run(["objcopy", "--enable-deterministic-archives", *dropped, copy], tool)
        return copy.read_bytes()


def library(of: Contents, chain: Toolchain) -> tuple[str, bytes]:
    """libweir: all of what crates/capi/install.sh installs, where Debian has it."""
    built = chain.build("weir-capi", LIBRARY_FEATURES, defaults=False)
    shared, asked, glibc = copied(built / "libweir_capi.so", bool(chain.target))
    with tempfile.TemporaryDirectory() as folder:
        script = of.own("crates/capi/install.sh")
        run([script, "--from", built, "--prefix", folder], str(script))
        prefix = Path(folder).resolve()
        place = f"usr/lib/{multiarch(of.target)}"
        tree = Tree()
        for path in sorted(prefix.rglob("*")):
            name = path.relative_to(prefix).as_posix()
            to = name.replace("lib/", f"{place}/", 1) if name.startswith("lib/") else f"usr/{name}"
            if path.is_symlink():
                tree.links[to] = str(path.readlink())
            elif name.endswith(".pc"):
                tree.add(to, relocated(path.read_text(), prefix, multiarch(of.target)))
            elif path.is_file():
                made = shared if ".so." in name else static(path, bool(chain.target)) if name.endswith(".a") else path.read_bytes()
                tree.add(to, made)
    about = Debian("libweir", "libs", depends(asked, glibc), "congestion control for live audio and video, for C", LIBRARY)
    return debian(of, about, tree)


def relocated(text: str, prefix: Path, folder: str) -> str:
    """A file of pkg-config for /usr and Debian's folder of libraries."""
    text = text.replace(f"prefix={prefix}\n", "prefix=/usr\n").replace("libdir=${prefix}/lib\n", f"libdir=${{prefix}}/lib/{folder}\n")
    if str(prefix) in text or folder not in text:
        raise Failure("weir.pc has other lines than those that are changed for Debian")
    return text


def gstreamer(of: Contents, chain: Toolchain) -> tuple[str, bytes]:
    """gstreamer1.0-weir: the plugin, built with this machine's GStreamer."""
    if chain.by_zig():
        raise Failure("the GStreamer plugin is built with this machine's GStreamer: --only gstreamer without --glibc and --target")
    made, asked, glibc = copied(chain.build("weir-gst", GSTREAMER_FEATURES) / "libgstweir.so", foreign=False)
    tree = Tree()
    tree.add(f"usr/lib/{multiarch(of.target)}/gstreamer-1.0/libgstweir.so", made)
    least = {"libgstreamer1.0-0": oldest_gstreamer(of.root)}
    about = Debian(
        "gstreamer1.0-weir", "libs", depends(asked, glibc, least), "congestion control for live video in GStreamer", GSTREAMER
    )
    return debian(of, about, tree)


def oldest_gstreamer(root: Path) -> str:
    """The version whose functions the plugin may call, by the feature of the binding."""
    found = re.search(r'^gst = \{.*"v(\d+)_(\d+)"', (root / "Cargo.toml").read_text(), re.MULTILINE)
    if not found:
        raise Failure("Cargo.toml states no version of GStreamer for gst")
    return f"{found[1]}.{found[2]}"
