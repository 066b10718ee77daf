"""The Python package: its source, and its wheel for all Pythons from 3.10 on, by maturin."""

import base64
import hashlib
import shutil
import subprocess
import zipfile
from datetime import datetime, timezone
from pathlib import Path

from .failure import Failure, run
from .toolchain import INSTALL, PROFILE, Toolchain


def sdist(chain: Toolchain, out: Path, seconds: int) -> None:
    run(["maturin", "sdist", "--out", out], "maturin", cwd=chain.root, env=environment(chain, seconds))


def wheel(chain: Toolchain, out: Path, seconds: int, licences: str) -> str:
    """Builds the wheel by zig for the chain's glibc, and adds the licences of what is built in. Returns its name."""
    if not shutil.which("maturin"):
        raise Failure(f"maturin is not there, which builds wheels: {INSTALL}")
    command = ["maturin", "build", "--profile", PROFILE, "--locked", "--strip", "--out", out]
    command += ["--zig", "--compatibility", f"manylinux_{chain.glibc.replace('.', '_')}"]
    command += ["--target", chain.target] if chain.target else []
    if subprocess.run(command, cwd=chain.root, env=environment(chain, seconds), check=False).returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} failed; its messages are above (--zig needs ziglang: {INSTALL})")
    [made] = out.glob("*.whl")
    add_licences(made, licences, seconds)
    return made.name


def environment(chain: Toolchain, seconds: int) -> dict[str, str]:
    return chain.environment() | {"SOURCE_DATE_EPOCH": str(seconds)}


def add_licences(path: Path, licences: str, seconds: int) -> None:
    """Writes a wheel again with a text of licences among its metadata, and its line in the list of files."""
    with zipfile.ZipFile(path) as archive:
        entries = [(info, archive.read(info)) for info in archive.infolist()]
    [record] = [info.filename for info, _ in entries if info.filename.endswith(".dist-info/RECORD")]
    name = f"{record.removesuffix('RECORD')}licenses/THIRD-PARTY-LICENSES.txt"
    contents = licences.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(contents)}\n"
    time = datetime.fromtimestamp(max(seconds, EARLIEST), timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for info, data in entries:
            # The list is last, as wheels have it.
            if info.filename != record:
                write(archive, info.filename, info.external_attr, time, data)
        write(archive, name, 0o100644 << 16, time, contents)
        [(info, data)] = [(info, data) for info, data in entries if info.filename == record]
        write(archive, record, info.external_attr, time, data + line.encode())


# A zip's times begin in 1980.
EARLIEST = 315532800


def write(archive: zipfile.ZipFile, name: str, attributes: int, time: tuple, contents: bytes) -> None:
    info = zipfile.ZipInfo(name, time)
    info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, attributes, 3
    archive.writestr(info, contents)
