//! The Python package, with the extension module of this build: `test_weir.py` in the system's Python.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python from 3.10 on with NumPy.
fn python() -> Option<&'static str> {
    let check = "import sys, numpy; sys.exit(sys.version_info < (3, 10))";
    let works = |name: &&str| Command::new(name).args(["-c", check]).output().is_ok_and(|o| o.status.success());
    ["python3", "/usr/bin/python3"].into_iter().find(works)
}

/// Where cargo puts what it builds for tests: two folders above this program.
fn target() -> PathBuf {
    let here = std::env::current_exe().expect("this program's path");
    here.parent().and_then(Path::parent).expect("deps of a profile").to_owned()
}

#[test]
fn the_package_works_in_python() {
    let python = python().expect("python3 (3.10 or later) with numpy: ./test installs python3-numpy");
    let target = target();
    let module = target.join("deps").join("lib_weir.so");
    assert!(module.is_file(), "{} was not built", module.display());
    // Cargo builds a package's programs for its own tests alone; the command line's tests come first in the workspace.
    let binary = target.join("weir");
    assert!(binary.is_file(), "{}: build it with `cargo build -p weir`", binary.display());
    let folder = tempfile::tempdir().expect("writable");
    let package = folder.path().join("weir");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/weir");
    std::fs::create_dir(&package).expect("writable");
    for file in std::fs::read_dir(sources).expect("the package").flatten().filter(|f| f.path().is_file()) {
        std::fs::copy(file.path(), package.join(file.file_name())).expect("writable");
    }
    std::fs::copy(module, package.join("_weir.abi3.so")).expect("writable");
    let out = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_weir.py"))
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WEIR_BINARY", binary)
        .env("WEIR_FOLDER", folder.path())
        .output()
        .expect("python runs");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
