//! The package as `pip` would install it, with the extension module of this build.

use std::path::{Path, PathBuf};

/// Where cargo puts what it builds for tests: two folders above this program.
pub(crate) fn target() -> PathBuf {
    let here = std::env::current_exe().expect("this program's path");
    here.parent().and_then(Path::parent).expect("deps of a profile").to_owned()
}

/// A folder for `PYTHONPATH`.
pub(crate) fn made() -> tempfile::TempDir {
    let module = target().join("deps").join("lib_weir.so");
    assert!(module.is_file(), "{} was not built", module.display());
    let folder = tempfile::tempdir().expect("writable");
    let package = folder.path().join("weir");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/weir");
    std::fs::create_dir(&package).expect("writable");
    for file in std::fs::read_dir(sources).expect("the package").flatten().filter(|f| f.path().is_file()) {
        std::fs::copy(file.path(), package.join(file.file_name())).expect("writable");
    }
    std::fs::copy(module, package.join("_weir.abi3.so")).expect("writable");
    folder
}
