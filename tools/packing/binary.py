"""The program that is packed: its build, what it says of itself, and the libraries that it loads."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import training
from .failure import Failure, run
from .toolchain import Toolchain


@dataclass
class Binary:
    """A stripped program and what it states."""

    path: Path
    version: str
    commit: str
    target: str
    features: list[str]
    # Libraries of the system by soname, the loader included; of another machine's program the sonames alone.
    libraries: dict[str, Path | None]
    # The newest version of glibc that a symbol needs.
    glibc: str


def build(chain: Toolchain, features: str) -> Path:
    """Builds the release binary."""
    return chain.build("weir", features.split(",")) / "weir"


def build_by_profile(chain: Toolchain, features: str, say: Callable[[str], None]) -> Path:
    """Builds the release binary twice: the second build is laid out by the branches and calls that the first one counted."""
    folder = chain.folder() / "by-profile"
    merge = profdata()
    names = features.split(",")
    counted = chain.build("weir", names, flags=[f"-Cprofile-generate={folder}/counts"], into="by-profile/counting") / "weir"
    counts = folder / "counts"
    shutil.rmtree(counts, ignore_errors=True)
    counts.mkdir(parents=True)
    for number, words in enumerate(training.commands(folder / "reports")):
        say(f"count: weir {' '.join(words)}")
        env = os.environ | {"LLVM_PROFILE_FILE": f"{counts}/{number:02}.profraw"}
        # Counters of several threads overwrite each other.
        run([counted, *words], f"weir {' '.join(words)}", cwd=chain.root, env=env)
    profile = folder / "weir.profdata"
    run([merge, "merge", "--sparse", "-o", profile, *sorted(counts.glob("*.profraw"))], "llvm-profdata")
    # Code that the training never reaches has no counts, which is nothing to warn of.
    quiet = "-Cllvm-args=-no-pgo-warn-mismatch"
    return chain.build("weir", names, flags=[f"-Cprofile-use={profile}", quiet], into="by-profile/guided") / "weir"


def profdata() -> Path:
    """The program of rustup's component llvm-tools that merges counts, of the compiler's own version of LLVM."""
    sysroot = Path(run(["rustc", "--print", "sysroot"], "rustc").strip())
    found = sorted(sysroot.glob("lib/rustlib/*/bin/llvm-profdata"))
    if not found:
        raise Failure("llvm-profdata is not there; rustup component add llvm-tools installs it")
    return found[0]


def stripped(source: Path, into: Path, runner: Sequence[str] = ()) -> Binary:
    """A copy without symbols, and what it says of itself. `runner` runs programs of another machine."""
    if not source.is_file():
        raise Failure(f"{source}: no such file; --binary takes a built program, such as target/release/weir")
    path = into / "weir"
    strip(source, path, foreign=bool(runner))
    stated = run([*runner, path, "--version"], f"{source}, which has to be a program for this machine")
    lines = dict(line.split(": ", 1) for line in stated.splitlines() if ": " in line)
    found = re.match(r"weir (\S+)$", stated.splitlines()[0] if stated else "")
    if not found or not {"commit", "target", "features"} <= lines.keys():
        raise Failure(f"{source} --version is not that of weir, with its commit, target and features")
    features = [f for f in lines["features"].split(", ") if f != "none"]
    used = dict.fromkeys(needed(path)) if runner else libraries(path)
    return Binary(path, found[1], lines["commit"], lines["target"], features, used, newest_glibc(path))


def strip(source: Path, path: Path, foreign: bool = False) -> None:
    """A copy of a program or library without symbols."""
    shutil.copyfile(source, path)
    path.chmod(0o755)
    if foreign:
        # binutils knows this machine alone; such a build has no symbols.
        return
    run(["strip", "--strip-all", path], "strip of binutils (apt-get install binutils)")


def libraries(path: Path) -> dict[str, Path]:
    """Files that the loader maps for a program."""
    found = {}
    for line in run(["ldd", path], "ldd of libc-bin").splitlines():
        by_name = re.match(r"\s*(\S+) => (/\S+) ", line)
        loader = re.match(r"\s*(/\S*ld-linux\S*) ", line)
        if "not found" in line:
            raise Failure(f"{path}: {line.strip()}")
        if by_name:
            found[by_name[1]] = Path(by_name[2])
        elif loader:
            found[loader[1]] = Path(loader[1])
    return found


def needed(path: Path) -> list[str]:
    """Sonames that a program or library of any machine asks for itself."""
    table = run(["readelf", "--dynamic", "--wide", path], "readelf of binutils (apt-get install binutils)")
    return re.findall(r"\(NEEDED\).*\[(\S+)\]", table)


def newest_glibc(path: Path) -> str:
    """The newest version of glibc that a symbol of a program or library needs."""
    table = run(["readelf", "--version-info", "--wide", path], "readelf of binutils (apt-get install binutils)")
    versions = re.findall(r"Name: GLIBC_([0-9.]+) ", table)
    return max(versions, key=lambda v: [int(part) for part in v.split(".")], default="0")


def pages(binary: Path, folder: Path, runner: Sequence[str] = ()) -> dict[str, bytes]:
    """Completions and man pages, by the paths that they are installed at, below the prefix."""
    shells = {
        "bash": "share/bash-completion/completions/weir",
        "zsh": "share/zsh/site-functions/_weir",
        "fish": "share/fish/vendor_completions.d/weir.fish",
    }
    if not binary.is_file():
        raise Failure(f"{binary}: no such file; it would write completions and man pages")
    found = {}
    for shell, path in shells.items():
        asked = subprocess.run([*runner, binary, "completions", shell], capture_output=True, check=False)
        if asked.returncode != 0:
            raise Failure(
                f"{binary} has no completions and man pages: build it with --features dist, or name a program of the "
                "same commit that has that feature by --pages-from"
            )
        found[path] = asked.stdout
    run([*runner, binary, "manual", "--out", folder], str(binary))
    for page in sorted(folder.iterdir()):
        found[f"share/man/man1/{page.name}"] = page.read_bytes()
    return found
