//! Bounded reading of files that somebody else names: a scenario, a policy, a key, an offer.
//!
//! Regular files alone are read. A pipe, a device or a socket is refused before anything waits for it, and the bound holds
//! for the bytes read: the length in a file's metadata is no bound, since files of `/proc` have the length 0.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use thiserror::Error;

/// Reason why a file is not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is nothing at the path.
    #[error("there is no such file")]
    Missing,
    /// The path leads to a folder.
    #[error("this is a folder, not a file")]
    Folder,
    /// The path leads to a pipe, a device or a socket.
    #[error("this is a pipe, a device or a socket: only regular files are read")]
    NotRegular,
    /// The file holds more than the caller reads.
    #[error("it has {}, and at most {} are read", length.map_or("more".into(), size), size(*limit))]
    TooLarge {
        /// Bytes in the file, where it has a length.
        length: Option<u64>,
        /// Most bytes that are read.
        limit: u64,
    },
    /// The file is no text.
    #[error("not UTF-8 text: see line {line}")]
    NotText {
        /// Line of the first byte that is no text, from 1.
        line: usize,
    },
    /// The operating system's answer.
    #[error("{0}")]
    Io(io::Error),
}

impl ReadError {
    /// Whether there is nothing at the path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl From<io::Error> for ReadError {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::IsADirectory => Self::Folder,
            // A file of the kernel's that has nothing to say now, such as /proc/kmsg; a socket cannot be opened.
            ErrorKind::WouldBlock => Self::NotRegular,
            _ => Self::Io(e),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(e: ReadError) -> Self {
        match e {
            ReadError::Io(e) => e,
            ReadError::Missing => Self::new(ErrorKind::NotFound, e),
            _ => Self::new(ErrorKind::InvalidInput, e),
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// Opens a regular file for reading, without waiting for anybody.
///
/// # Errors
/// There is no such file; it is no regular file; it cannot be opened.
pub fn open(path: &Path) -> Result<File, ReadError> {
    let mut options = File::options();
    options.read(true);
    // A pipe would be opened no sooner than somebody writes into it. Regular files ignore the flag.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = match options.open(path) {
        Ok(file) => file,
        // A socket.
        #[cfg(unix)]
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => return Err(ReadError::NotRegular),
        Err(e) => return Err(e.into()),
    };
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_dir() => Err(ReadError::Folder),
        () if !kind.is_file() => Err(ReadError::NotRegular),
        () => Ok(file),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As of [`open`]; the file is larger, or cannot be read.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > limit {
        return Err(ReadError::TooLarge { length: Some(length), limit });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { length: None, limit });
    }
    Ok(bytes)
}

/// Reads a regular file of at most `limit` bytes of UTF-8 text.
///
/// # Errors
/// As of [`read`] and [`text`].
pub fn read_text(path: &Path, limit: u64) -> Result<String, ReadError> {
    text(read(path, limit)?)
}

/// The text in a file's bytes.
///
/// # Errors
/// They are not UTF-8.
pub fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        ReadError::NotText { line: before.iter().filter(|b| **b == b'\n').count() + 1 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        std::fs::write(&path, "12345\n\u{e4}").expect("written");
        assert_eq!(read_text(&path, 8).expect("as many"), "12345\n\u{e4}");
        assert_eq!(read(&path, 7).expect_err("one more").to_string(), "it has 8 bytes, and at most 7 bytes are read");
        std::fs::write(&path, b"a\nb\n\xff").expect("written");
        assert_eq!(read_text(&path, 100).expect_err("no text").to_string(), "not UTF-8 text: see line 3");
        assert!(matches!(read(dir.path(), 8), Err(ReadError::Folder)));
        assert!(read(&dir.path().join("none"), 8).expect_err("none").is_missing());
        assert_eq!((size(64 << 10), size(256 << 20)), ("64 KiB".into(), "256 MiB".into()));
    }

    #[cfg(target_os = "linux")]
    #[expect(clippy::disallowed_methods, reason = "the test says how long refusals take")]
    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs");
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        std::os::unix::fs::symlink("/dev/zero", at("link")).expect("linked");
        std::os::unix::fs::symlink(at("loop"), at("loop")).expect("linked");
        let began = Instant::now();
        for name in ["pipe", "socket", "link"] {
            assert!(matches!(read(&at(name), 1 << 20), Err(ReadError::NotRegular)), "{name}");
        }
        assert!(matches!(read(&at("loop"), 1 << 20), Err(ReadError::Io(_))));
        // A regular file without a length, which never ends for a reader that waits.
        let log = read(Path::new("/proc/kmsg"), 1 << 10);
        assert!(
            log.as_ref().is_err_and(|e| !e.is_missing()) || log.as_ref().is_ok_and(|b| b.len() <= 1 << 10),
            "{log:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
}
