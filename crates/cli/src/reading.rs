//! Reading what may never come: standard input, pipes and devices. A read that blocks ends at the stop flag.

use crate::output::Failure;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How often the stop flag is looked at while nothing comes.
const LOOK: Duration = Duration::from_millis(50);
/// As the main thread has it.
const STACK: usize = 8 << 20;
/// Most bytes read at once.
const CHUNK: usize = 256 << 10;

/// Does work that may block in a read on a thread of its own, and waits until it is done or the stop flag is up. A thread that
/// still blocks is left behind: the program ends without it. Errors: the flag is up; `what` names what was read.
pub(crate) fn heeding<T: Send + 'static>(
    stop: &AtomicBool,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (done, result) = sync_channel(1);
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        // Nobody listens any more where the flag was up first.
        let _ = done.send(work());
    });
    let thread = thread.map_err(Failure::work)?;
    loop {
        match result.recv_timeout(LOOK) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(Failure::Reading(what.to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(Failure::Work(format!("{what}: reading it ended without a result"))),
            },
        }
    }
}

/// The bytes of a file, or of standard input for `-`, and how many there are where that is known. A read of what is no
/// regular file fails once one of the flags is up. Errors: the file cannot be opened.
pub(crate) fn open(name: &str, flags: Vec<Arc<AtomicBool>>) -> io::Result<(Box<dyn Read + Send>, Option<u64>)> {
    if name == "-" {
        return Ok((Box::new(Incoming::start(flags, || Ok(io::stdin()))), None));
    }
    let meta = std::fs::metadata(name)?;
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file"));
    }
    if meta.is_file() {
        return Ok((Box::new(File::open(name)?), Some(meta.len())));
    }
    // A pipe opens no sooner than somebody writes into it.
    let path = Path::new(name).to_owned();
    Ok((Box::new(Incoming::start(flags, move || File::open(path))), None))
}

/// Bytes that a thread reads.
struct Incoming {
    from: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    flags: Vec<Arc<AtomicBool>>,
    ended: bool,
}

impl Incoming {
    fn start<R: Read>(flags: Vec<Arc<AtomicBool>>, open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        let (to, from) = sync_channel(1);
        std::thread::spawn(move || {
            if let Err(e) = open().and_then(|reader| pass_on(reader, &to)) {
                let _ = to.send(Err(e));
            }
        });
        Self { from, chunk: Cursor::default(), flags, ended: false }
    }
}

/// Until the end, or until nobody listens.
fn pass_on(mut reader: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    loop {
        let mut chunk = vec![0; CHUNK];
        let n = match reader.read(&mut chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        chunk.truncate(n);
        if n == 0 || to.send(Ok(chunk)).is_err() {
            return Ok(());
        }
    }
}

impl Read for Incoming {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.chunk.read(buf)?;
            if n > 0 || buf.is_empty() || self.ended {
                return Ok(n);
            }
            match self.from.recv_timeout(LOOK) {
                Ok(Ok(bytes)) => self.chunk = Cursor::new(bytes),
                Ok(Err(e)) => {
                    self.ended = true;
                    return Err(e);
                }
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                // No `Interrupted`, after which readers try again.
                Err(RecvTimeoutError::Timeout) if self.flags.iter().any(|f| f.load(Ordering::Relaxed)) => {
                    return Err(io::Error::other("interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_through_in_order_and_end() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let source = bytes.clone();
        let mut got = Vec::new();
        Incoming::start(vec![Arc::default()], move || Ok(Cursor::new(source))).read_to_end(&mut got).expect("reads");
        assert!(got == bytes);
        let failing = Incoming::start(vec![], || Err::<File, _>(io::Error::other("no such thing"))).read(&mut [0; 8]);
        assert!(failing.expect_err("fails").to_string().contains("no such thing"));
    }

    #[test]
    fn the_stop_flag_ends_what_blocks() {
        struct Never;
        impl Read for Never {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                loop {
                    std::thread::park();
                }
            }
        }
        let stop = Arc::new(AtomicBool::new(true));
        let error = Incoming::start(vec![stop.clone()], || Ok(Never)).read(&mut [0; 8]).expect_err("stopped");
        assert!(error.to_string().contains("interrupted") && error.kind() != io::ErrorKind::Interrupted);
        let work = heeding(&stop, "a pipe", || Never.read(&mut [0; 8]));
        assert!(matches!(work, Err(Failure::Reading(what)) if what == "a pipe"));
        assert!(matches!(heeding(&AtomicBool::new(false), "sum", || 1 + 1), Ok(2)));
    }
}
