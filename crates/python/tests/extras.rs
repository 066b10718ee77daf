//! Tests that need the package's extras: environments, sweeps, tables for other libraries, the document's examples, the notebooks and the
//! documents' site, in a Python that has them. The parts run beside each other: Ray and notebooks wait much of their time.

mod package_folder;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Installed packages, and the names that they are imported by.
const PACKAGES: [(&str, &str); 12] = [
    ("numpy", "numpy"),
    ("pyarrow>=14", "pyarrow"),
    ("gymnasium>=1.1,<2", "gymnasium"),
    ("pandas>=2", "pandas"),
    ("polars>=1", "polars"),
    ("matplotlib>=3.7", "matplotlib"),
    ("onnx>=1.16", "onnx"),
    ("nbclient", "nbclient"),
    ("ipykernel", "ipykernel"),
    ("mkdocs-material>=9.5", "material"),
    ("mypy", "mypy"),
    ("ray>=2.9", "ray"),
];

/// Programs, and the classes that each runs (all without any); the longest first.
const PARTS: [(&str, &[&str]); 5] = [
    ("test_extras.py", &["Documents"]),
    ("test_ray.py", &[]),
    ("test_extras.py", &["Tables", "Policies", "Types"]),
    ("test_gym.py", &[]),
    ("test_sweep.py", &[]),
];
/// How many run at a time.
const BESIDE: usize = 3;

/// The system's Python if it has all of them, or that of an environment below the target folder, which is made once.
fn python() -> Result<PathBuf, String> {
    let names = PACKAGES.map(|(_, name)| name).join(", ");
    let check =
        format!("import sys, {names}; sys.exit(tuple(map(int, gymnasium.__version__.split('.')[:2])) < (1, 1))");
    let works = |python: &Path| Command::new(python).args(["-c", &check]).output().is_ok_and(|o| o.status.success());
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extras");
    let own = venv.join("bin/python");
    if let Some(found) = [PathBuf::from("python3"), own.clone()].into_iter().find(|p| works(p)) {
        return Ok(found);
    }
    let run = |command: &mut Command| match command.output() {
        Ok(out) if out.status.success() => Ok(()),
        Ok(out) => Err(String::from_utf8_lossy(&out.stderr).lines().last().unwrap_or_default().to_owned()),
        Err(e) => Err(e.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let packages = PACKAGES.map(|(package, _)| package);
    let pip = || {
        let mut command = Command::new(&own);
        command.args(["-m", "pip", "install", "--quiet", "--no-compile"]);
        command
    };
    // uv installs them several times faster; pip knows settings that uv does not.
    let uv = |()| {
        run(Command::new(&own).args(["-m", "uv", "pip", "install", "--quiet", "--python"]).arg(&own).args(packages))
    };
    run(pip().arg("uv")).and_then(uv).or_else(|_| run(pip().args(packages)))?;
    if works(&own) { Ok(own) } else { Err("they were installed and do not load".into()) }
}

#[test]
fn environments_sweeps_tables_and_the_documents_work_in_python() {
    let python = match python() {
        Ok(python) => python,
        Err(e) => {
            println!("SKIPPED: no Python with the package's extras, and none could be made from PyPI: {e}");
            return;
        }
    };
    let folder = package_folder::made();
    let binary = package_folder::target().join("weir");
    assert!(binary.is_file(), "{}: build it with `cargo build -p weir`", binary.display());
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let run = |(file, classes): (&str, &[&str])| {
        let out = Command::new(&python)
            .arg(tests.join(file))
            .args(classes)
            .current_dir(folder.path())
            .env("PYTHONPATH", folder.path())
            .env("WEIR_BINARY", &binary)
            .output()
            .expect("python runs");
        let said = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(out.status.success(), "{file}: {said}");
    };
    let parts = Mutex::new(PARTS.into_iter());
    let next = || parts.lock().expect("no thread panics with it").next();
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some(part) = next() {
                    run(part);
                }
            });
        }
    });
}
