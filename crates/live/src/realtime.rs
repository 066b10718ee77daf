//! Threads that wake in time.

use nix::sys::prctl;
use std::process::{Command, Stdio};

/// Requests timers without slack and real-time scheduling (SCHED_FIFO with a priority from 1 on) of the calling thread,
/// useful on a busy machine; returns whether the latter was granted.
pub fn request_realtime(priority: u8) -> bool {
    // Without either, wake-ups are later, and reports show by how much.
    let _ = prctl::set_timerslack(1);
    let tid = nix::unistd::gettid().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--reset-on-fork", "--pid", &priority.to_string(), &tid]);
    chrt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|s| s.success())
}
