//! What needs the package's extras: environments, sweeps, and the document's examples, in a Python with gymnasium and pyarrow.

mod package_folder;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The system's Python if it has both, or that of an environment below the target folder, which is made once.
fn python() -> Result<PathBuf, String> {
    let works = |python: &Path| {
        let check = "import sys, numpy, pyarrow, gymnasium; sys.exit(tuple(map(int, gymnasium.__version__.split('.')[:2])) < (1, 1))";
        Command::new(python).args(["-c", check]).output().is_ok_and(|o| o.status.success())
    };
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
    run(Command::new(&own).args(["-m", "pip", "install", "--quiet", "numpy", "pyarrow>=14", "gymnasium>=1.1,<2"]))?;
    if works(&own) { Ok(own) } else { Err("they were installed and do not load".into()) }
}

#[test]
fn environments_sweeps_and_the_document_work_in_python() {
    let python = match python() {
        Ok(python) => python,
        Err(e) => {
            println!("SKIPPED: no Python with gymnasium 1.1 and pyarrow, and none could be made from PyPI: {e}");
            return;
        }
    };
    let folder = package_folder::made();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["test_gym.py", "test_sweep.py"] {
        let out = Command::new(&python)
            .arg(root.join("tests").join(file))
            .current_dir(folder.path())
            .env("PYTHONPATH", folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("python runs");
        let said = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(out.status.success(), "{said}");
    }
}
