"""Builds by cargo: for this machine, or by zig's compiler and linker for an older glibc or another processor.

zig links its own C++ library and unwinder statically, so that of the system only glibc is loaded.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .failure import Failure, run

# The oldest that Rust's standard library supports.
OLDEST = (2, 17)
# Identical functions once, by the linker that Rust has for this machine; folding-zig does it for others.
FOLDING = {"x86_64-unknown-linux-gnu": ["-Clink-arg=-Wl,--icf=all"]}
# Cargo's profile of a release: release with one optimisation over all crates.
PROFILE = "dist"
INSTALL = "python3 -m venv V && V/bin/pip install cargo-zigbuild ziglang maturin, then PATH=V/bin:$PATH"


@dataclass
class Toolchain:
    """What to build for, from which checkout."""

    root: Path
    # The commit that the program states, or nothing.
    commit: str
    # Another machine than this one, such as aarch64-unknown-linux-gnu; by zig.
    target: str = ""
    # The oldest glibc that it has to run on, such as 2.17, by zig; without it this machine's.
    glibc: str = ""

    def triple(self) -> str:
        """The machine that it builds for."""
        return self.target or host()

    def by_zig(self) -> bool:
        return bool(self.glibc or self.target)

    def folder(self) -> Path:
        """Cargo's target folder."""
        return self.root / Path(os.environ.get("CARGO_TARGET_DIR", self.root / "target"))

    def environment(self, flags: Sequence[str] = ()) -> dict[str, str]:
        """Variables of a build without this machine's paths: those would be in panic messages, and two machines would build
        different bytes."""
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        given = os.environ.get("CARGO_ENCODED_RUSTFLAGS", "\x1f".join(os.environ.get("RUSTFLAGS", "").split()))
        own = [f"--remap-path-prefix={self.root}=/weir", f"--remap-path-prefix={home}=/cargo", *flags]
        # Contracted multiplications and additions would round once where other processors round twice.
        of_c = f"-ffile-prefix-map={self.root}=/weir -ffile-prefix-map={home}=/cargo -ffp-contract=off"
        return os.environ | {
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*filter(None, given.split("\x1f")), *own]),
            "CARGO_TARGET_DIR": str(self.folder()),
            "CFLAGS": f"{os.environ.get('CFLAGS', '')} {of_c}".strip(),
            "CXXFLAGS": f"{os.environ.get('CXXFLAGS', '')} {of_c}".strip(),
            "CARGO_INCREMENTAL": "0",
            "WEIR_COMMIT": self.commit[:12],
            "CARGO_ZIGBUILD_PYTHON_PATH": str(Path(__file__).resolve().parent / "folding-zig"),
        }

    def build(self, package: str, features: Sequence[str], defaults: bool = True, flags: Sequence[str] = (), into: str = "") -> Path:
        """Builds a package with the profile of a release, in the target folder or a folder `into` below it; returns where its files
        are. Cargo shows its own progress."""
        command = ["cargo", "build"]
        env = self.environment([*flags, *([] if self.by_zig() else FOLDING.get(self.triple(), []))])
        folder = self.folder() / into
        env["CARGO_TARGET_DIR"] = str(folder)
        if self.by_zig():
            needs_zig()
            triple = self.triple()
            command = ["cargo", "zigbuild", "--target", f"{triple}.{self.glibc}" if self.glibc else triple]
            folder = folder / triple
        command += ["--profile", PROFILE, "--locked", "-p", package, *([] if defaults else ["--no-default-features"])]
        command += ["--features", ",".join(features)] if features else []
        if subprocess.run(command, cwd=self.root, env=env, check=False).returncode != 0:
            raise Failure(f"{' '.join(command)} failed; its messages are above")
        return folder / PROFILE


def host() -> str:
    """The machine that the compiler runs on."""
    stated = run(["rustc", "-vV"], "rustc of a Rust toolchain")
    return re.search(r"^host: (\S+)$", stated, re.MULTILINE)[1]


def needs_zig() -> None:
    if not shutil.which("cargo-zigbuild"):
        raise Failure(f"cargo-zigbuild is not there, which builds for an older glibc and other machines: {INSTALL}")


def glibc(text: str) -> str:
    """A version of glibc as an option's value. Errors: it is none, or older than Rust supports."""
    found = re.fullmatch(r"([0-9]+)\.([0-9]+)", text)
    if not found:
        raise ValueError(f"{text!r} is no version of glibc, such as 2.17")
    if tuple(map(int, found.groups())) < OLDEST:
        raise ValueError(f"{text} is older than {'.'.join(map(str, OLDEST))}, the oldest that Rust supports")
    return text
