"""The sources of a commit as an archive, and a formula of Homebrew that builds from it."""

import subprocess

from .archives import gzipped, sha256
from .failure import Failure
from .packages import Contents

FORMULA = "tools/packing/homebrew/weir.rb.in"


def archive(of: Contents) -> tuple[str, bytes]:
    """All files of the commit that is checked out, as git has them."""
    command = ["git", "-C", of.root, "archive", "--format=tar", f"--prefix=weir-{of.version}/", "HEAD"]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode != 0:
        raise Failure(f"git archive ended with {made.returncode}: {made.stderr.decode().strip()}")
    return f"weir-{of.version}.tar.gz", gzipped(made.stdout)


def formula(of: Contents, address: str, name: str, contents: bytes) -> tuple[str, bytes]:
    """The formula for a source archive that will be at an address."""
    text = of.own(FORMULA).read_text()
    for mark, value in {"address": address.rstrip("/"), "archive": name, "sha256": sha256(contents)}.items():
        text = text.replace(f"@{mark}@", value)
    return "weir.rb", text.encode()
