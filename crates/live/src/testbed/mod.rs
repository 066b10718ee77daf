//! What a testbed runs beside calls: traffic of the kernel's TCP, datagrams without control, and a hold on the processor.

mod iperf;
mod tcp;
mod udp;

pub use iperf::{Bulk, BulkServer, check_congestion};
pub use tcp::{Span, TcpTraffic, TransferStats, Workload};
pub use udp::drive_udp;

use nix::sys::prctl;
use std::process::{Command, Stdio};

/// Asks for timers without slack and for real-time scheduling (SCHED_FIFO of a priority from 1 on) of the calling thread,
/// which a busy machine makes worth having; says whether the latter was granted.
pub fn hurry(priority: u8) -> bool {
    // Without either, wake-ups are later, and reports show by how much.
    let _ = prctl::set_timerslack(1);
    let tid = nix::unistd::gettid().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--reset-on-fork", "--pid", &priority.to_string(), &tid]);
    chrt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|s| s.success())
}
