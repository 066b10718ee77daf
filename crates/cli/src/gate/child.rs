//! A program that is waited for: until it ends, its time is over, or the user stops the command.

use crate::output::Failure;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of standard error that are kept, the last ones.
const MAX_COMPLAINTS: usize = 4 << 10;
/// Time for what is still in the pipes when it has ended: a child of its own may hold them open.
const REST: Duration = Duration::from_millis(500);

/// A program that has been started, in a process group of its own: Ctrl-C at the terminal ends the command first, which cleans up.
pub(super) struct Child {
    child: std::process::Child,
    output: Receiver<Vec<u8>>,
    complaints: Arc<Mutex<VecDeque<u8>>>,
    listener: Receiver<()>,
}

/// A program that has ended.
pub(super) struct Ended {
    status: Option<ExitStatus>,
    pub(super) output: String,
    complaints: String,
}

impl Ended {
    pub(super) fn is_success(&self) -> bool {
        self.status.is_some_and(|s| s.success())
    }

    /// Its exit code or signal, and the last line of its standard error.
    pub(super) fn said(&self) -> String {
        let last = self.complaints.lines().rev().find(|line| !line.trim().is_empty());
        let status = self.status.map_or_else(|| "its time was over".to_owned(), |s| s.to_string());
        last.map_or_else(|| status.clone(), |line| format!("{line} ({status})"))
    }
}

#[expect(clippy::disallowed_methods, reason = "a build is watched by the wall clock; no result depends on it")]
fn wall() -> Instant {
    Instant::now()
}

impl Child {
    /// Starts it; so many bytes of its standard output are kept, the first ones.
    pub(super) fn start(mut command: Command, kept_output: u64) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let (done, output) = channel();
        if let Some(mut from) = child.stdout.take() {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = from.by_ref().take(kept_output).read_to_end(&mut bytes);
                let _ = done.send(bytes);
                // Read on, so that it never waits for room.
                let _ = io::copy(&mut from, &mut io::sink());
            });
        }
        let (heard, listener) = channel();
        if let Some(mut from) = child.stderr.take() {
            let kept = Arc::clone(&complaints);
            thread::spawn(move || {
                let mut part = [0; 1024];
                while let Ok(count @ 1..) = from.read(&mut part) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend(&part[..count]);
                    let surplus = kept.len().saturating_sub(MAX_COMPLAINTS);
                    kept.drain(..surplus);
                }
                let _ = heard.send(());
            });
        }
        Ok(Self { child, output, complaints, listener })
    }

    /// Waits for its end. Errors: the flag is up; it has been killed.
    pub(super) fn wait(mut self, stop: &AtomicBool, limit: Duration) -> Result<Ended, Failure> {
        let end = wall() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(Failure::work)? {
                break Some(status);
            }
            let is_stopped = stop.load(Ordering::Relaxed);
            if is_stopped || wall() >= end {
                self.kill();
                if is_stopped {
                    return Err(Failure::Interrupted);
                }
                break None;
            }
            thread::sleep(LOOK);
        };
        let output = self.output.recv_timeout(REST).unwrap_or_default();
        let _ = self.listener.recv_timeout(REST);
        let complaints: Vec<u8> =
            self.complaints.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ended { status, output: text(&output), complaints: text(&complaints) })
    }

    /// Kills it and those that it started.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Ok(id) = i32::try_from(self.child.id()) {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
