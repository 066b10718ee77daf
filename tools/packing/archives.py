"""Archives whose bytes depend on their contents and one time alone: entries in the order of their names, owner root."""

import gzip
import hashlib
import io
import os
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tree:
    """Files of a package by path: contents and permissions. Folders are implied, but for those with permissions of their own."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    # Symbolic links by path, and where they lead.
    links: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, contents: bytes | str, mode: int = 0o644) -> None:
        self.files[path] = (contents.encode() if isinstance(contents, str) else contents, mode)

    def add_file(self, path: str, source: Path, mode: int = 0o644) -> None:
        self.add(path, source.read_bytes(), mode)

    def all_folders(self) -> dict[str, int]:
        found = dict(self.folders)
        for path in [*self.files, *self.folders, *self.links]:
            parent = os.path.dirname(path)
            while parent:
                found.setdefault(parent, 0o755)
                parent = os.path.dirname(parent)
        return found

    def write(self, root: Path, time: int) -> None:
        """Writes the files below a folder, with times and permissions that are independent of the umask."""
        folders = self.all_folders()
        for path in sorted(folders):
            (root / path).mkdir(parents=True, exist_ok=True)
        for path, (contents, mode) in sorted(self.files.items()):
            (root / path).write_bytes(contents)
            (root / path).chmod(mode)
            os.utime(root / path, (time, time))
        for path, leads_to in sorted(self.links.items()):
            (root / path).symlink_to(leads_to)
            os.utime(root / path, (time, time), follow_symlinks=False)
        # Last, since each file written into a folder changes its time.
        for path, mode in sorted(folders.items(), reverse=True):
            (root / path).chmod(mode)
            os.utime(root / path, (time, time))
        root.chmod(0o755)
        os.utime(root, (time, time))


def tar(tree: Tree, time: int, prefix: str = "") -> bytes:
    """A POSIX tar of a tree."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folders = {prefix + path: mode for path, mode in tree.all_folders().items()}
        if prefix:
            folders[prefix.rstrip("/")] = 0o755
        files = {prefix + path: entry for path, entry in tree.files.items()}
        links = {prefix + path: leads_to for path, leads_to in tree.links.items()}
        for path in sorted([*folders, *files, *links]):
            info = tarfile.TarInfo(path)
            info.mtime, info.uid, info.gid, info.uname, info.gname = time, 0, 0, "root", "root"
            if path in folders:
                info.type, info.mode = tarfile.DIRTYPE, folders[path]
                archive.addfile(info)
            elif path in links:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, links[path], 0o777
                archive.addfile(info)
            else:
                contents, info.mode = files[path]
                info.size = len(contents)
                archive.addfile(info, io.BytesIO(contents))
    return out.getvalue()


def gzipped(contents: bytes) -> bytes:
    """gzip without a name and a time in its header."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as packed:
        packed.write(contents)
    return out.getvalue()


def sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def is_executable(path: Path) -> bool:
    return path.is_file() and bool(path.stat().st_mode & stat.S_IXUSR)
