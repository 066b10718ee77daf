"""The program that is packed: its build, what it says of itself, and the libraries that it loads."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import training
from .failure import Failure, run


@dataclass
class Binary:
    """A stripped program and what it states."""

    path: Path
    version: str
    commit: str
    target: str
    features: list[str]
    # Libraries of the system by soname, the loader included.
    libraries: dict[str, Path]
    # The newest version of glibc that a symbol needs.
    glibc: str


def build(root: Path, features: str, commit: str) -> Path:
    """Builds the release binary; cargo shows its own progress."""
    return cargo(root, features, commit, target_folder(root), [])


def build_by_profile(root: Path, features: str, commit: str, say: Callable[[str], None]) -> Path:
    """Builds the release binary twice: the second build is laid out by the branches and calls that the first one counted."""
    folder = target_folder(root) / "by-profile"
    merge = profdata()
    counted = cargo(root, features, commit, folder / "counting", [f"-Cprofile-generate={folder}/counts"])
    counts = folder / "counts"
    shutil.rmtree(counts, ignore_errors=True)
    counts.mkdir(parents=True)
    for number, words in enumerate(training.commands(folder / "reports")):
        say(f"count: weir {' '.join(words)}")
        env = os.environ | {"LLVM_PROFILE_FILE": f"{counts}/{number:02}.profraw"}
        # Counters of several threads overwrite each other.
        run([counted, *words], f"weir {' '.join(words)}", cwd=root, env=env)
    profile = folder / "weir.profdata"
    run([merge, "merge", "--sparse", "-o", profile, *sorted(counts.glob("*.profraw"))], "llvm-profdata")
    # Code that the training never reaches has no counts, which is nothing to warn of.
    quiet = "-Cllvm-args=-no-pgo-warn-mismatch"
    return cargo(root, features, commit, folder / "guided", [f"-Cprofile-use={profile}", quiet])


def target_folder(root: Path) -> Path:
    return root / Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))


def profdata() -> Path:
    """The program of rustup's component llvm-tools that merges counts, of the compiler's own version of LLVM."""
    sysroot = Path(run(["rustc", "--print", "sysroot"], "rustc").strip())
    found = sorted(sysroot.glob("lib/rustlib/*/bin/llvm-profdata"))
    if not found:
        raise Failure("llvm-profdata is not there; rustup component add llvm-tools installs it")
    return found[0]


def cargo(root: Path, features: str, commit: str, target: Path, flags_of_build: list[str]) -> Path:
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # Paths of this machine would be in panic messages, and two machines would build different bytes.
    given = os.environ.get("CARGO_ENCODED_RUSTFLAGS", "\x1f".join(os.environ.get("RUSTFLAGS", "").split()))
    flags = [f"--remap-path-prefix={root}=/weir", f"--remap-path-prefix={home}=/cargo", *flags_of_build]
    of_c = f"-ffile-prefix-map={root}=/weir -ffile-prefix-map={home}=/cargo"
    env = os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*filter(None, given.split("\x1f")), *flags]),
        "CARGO_TARGET_DIR": str(target),
        "CFLAGS": f"{os.environ.get('CFLAGS', '')} {of_c}".strip(),
        "CXXFLAGS": f"{os.environ.get('CXXFLAGS', '')} {of_c}".strip(),
        "CARGO_INCREMENTAL": "0",
        "WEIR_COMMIT": commit[:12],
    }
    command = ["cargo", "build", "--release", "--locked", "-p", "weir", "--features", features]
    if subprocess.run(command, cwd=root, env=env, check=False).returncode != 0:
        raise Failure(f"{' '.join(command)} failed; its messages are above")
    return target / "release/weir"


def stripped(source: Path, into: Path) -> Binary:
    """A copy without symbols, and what it says of itself."""
    if not source.is_file():
        raise Failure(f"{source}: no such file; --binary takes a built program, such as target/release/weir")
    path = into / "weir"
    shutil.copyfile(source, path)
    path.chmod(0o755)
    run(["strip", "--strip-all", path], "strip of binutils (apt-get install binutils)")
    stated = run([path, "--version"], f"{source}, which has to be a program for this machine")
    lines = dict(line.split(": ", 1) for line in stated.splitlines() if ": " in line)
    found = re.match(r"weir (\S+)$", stated.splitlines()[0] if stated else "")
    if not found or not {"commit", "target", "features"} <= lines.keys():
        raise Failure(f"{source} --version is not that of weir, with its commit, target and features")
    features = [f for f in lines["features"].split(", ") if f != "none"]
    return Binary(
        path, found[1], lines["commit"], lines["target"], features, libraries(path), newest_glibc(path)
    )


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


def newest_glibc(path: Path) -> str:
    table = run(["objdump", "-T", path], "objdump of binutils (apt-get install binutils)")
    versions = re.findall(r"\(?GLIBC_([0-9.]+)\)?", table)
    if not versions:
        return "0"
    return max(versions, key=lambda v: [int(part) for part in v.split(".")])


def pages(binary: Path, folder: Path) -> dict[str, bytes]:
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
        asked = subprocess.run([binary, "completions", shell], capture_output=True, check=False)
        if asked.returncode != 0:
            raise Failure(
                f"{binary} has no completions and man pages: build it with --features dist, or name a program of the "
                "same commit that has that feature by --pages-from"
            )
        found[path] = asked.stdout
    run([binary, "manual", "--out", folder], str(binary))
    for page in sorted(folder.iterdir()):
        found[f"share/man/man1/{page.name}"] = page.read_bytes()
    return found
