//! Files that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file under a temporary name beside `path` and renames it when it is complete, so that `path`
/// is absent, unchanged or complete even if the program is stopped. A device or a pipe is written to directly. Errors are those
/// of the file system and of `fill`.
pub fn write_atomically(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
        fill(&mut out)?;
        return out.flush();
    }
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    let mut part = name.to_owned();
    // WebAssembly has no processes and no files: the next line fails there.
    let process = if cfg!(target_family = "wasm") { 0 } else { std::process::id() };
    part.push(format!(".{process}.part"));
    let part = path.with_file_name(part);
    let written = (|| {
        let mut out = BufWriter::new(File::create(&part)?);
        fill(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&part, path)
    })();
    if written.is_err() {
        // The first error is the one reported.
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file.txt");
        write_atomically(&path, |out| out.write_all(b"first")).expect("written");
        let failed = write_atomically(&path, |out| {
            out.write_all(b"second")?;
            Err(io::Error::other("interrupted"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).expect("there"), "first");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_stays_one_and_its_error_is_the_systems() {
        let full = Path::new("/dev/full");
        let e = write_atomically(full, |out| out.write_all(&[0; 100])).expect_err("no room");
        assert_eq!(e.kind(), io::ErrorKind::StorageFull);
        assert!(!fs::metadata(full).expect("there").is_file());
        write_atomically(Path::new("/dev/null"), |out| out.write_all(b"gone")).expect("written");
    }
}
