//! The Python package, with the extension module of this build: `test_weir.py` in the system's Python.

mod package_folder;

use std::path::Path;
use std::process::Command;

/// A Python from 3.10 on with NumPy.
fn python() -> Option<&'static str> {
    let check = "import sys, numpy; sys.exit(sys.version_info < (3, 10))";
    let works = |name: &&str| Command::new(name).args(["-c", check]).output().is_ok_and(|o| o.status.success());
    ["python3", "/usr/bin/python3"].into_iter().find(works)
}

#[test]
fn the_package_works_in_python() {
    let python = python().expect("python3 (3.10 or later) with numpy: ./test installs python3-numpy");
    // Cargo builds a package's programs for its own tests alone; the command line's tests come first in the workspace.
    let binary = package_folder::target().join("weir");
    assert!(binary.is_file(), "{}: build it with `cargo build -p weir`", binary.display());
    let library = package_folder::target().join("deps/libweir_capi.so");
    assert!(library.is_file(), "{}: build it with `cargo test -p weir-capi --no-run`", library.display());
    let folder = package_folder::made();
    let out = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_weir.py"))
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WEIR_BINARY", binary)
        .env("WEIR_LIBRARY", library)
        .env("WEIR_FOLDER", folder.path())
        .output()
        .expect("python runs");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
