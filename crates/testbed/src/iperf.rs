//! Bulk transfers by the kernel's TCP, with iperf3.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt::TcpCongestion};
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::Stdio;
use weir_live::netns::{Namespace, Process, SetupError};

/// A bulk transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bulk {
    /// Address of the sender.
    pub(super) from: Ipv4Addr,
    /// Address of the receiver.
    pub(super) to: Ipv4Addr,
    /// The receiver's port.
    pub(super) port: u16,
    /// The kernel's name of the congestion control: `reno`, `cubic`, `bbr`.
    pub(super) congestion: String,
    /// Payload of a full segment, if it differs from the device's.
    pub(super) segment: Option<u64>,
    /// Most bytes in flight, if limited.
    pub(super) window: Option<u64>,
}

/// Checks that the kernel has a congestion control and that this process may use it.
///
/// Errors: it does not; the error states the alternatives.
pub(super) fn check_congestion(namespace: &Namespace, name: &str) -> Result<(), SetupError> {
    let wanted = OsString::from(name);
    let set = namespace.run(move || {
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&fd, TcpCongestion, &wanted)
    })?;
    let way_out = match set {
        Ok(()) => return Ok(()),
        Err(nix::Error::ENOENT) => format!("the kernel has no TCP congestion control `{name}`: `modprobe tcp_{name}`"),
        Err(e) => format!("TCP congestion control `{name}` cannot be used: {e}"),
    };
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    Err(SetupError::Congestion(format!("{way_out}, or choose one of: {}", known.trim())))
}

/// The receiving end, which waits for its sender.
#[derive(Debug)]
pub(super) struct BulkServer {
    /// Ends it on drop.
    _process: Process,
}

impl Bulk {
    /// Starts the receiving end in its namespace. Errors: iperf3 is missing.
    pub(super) fn serve(&self, namespace: &Namespace) -> Result<BulkServer, SetupError> {
        let mut c = Namespace::command("iperf3")?;
        c.args(["-s", "-B", &self.to.to_string(), "-p", &self.port.to_string()]);
        c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(BulkServer { _process: namespace.start(c)? })
    }

    /// Starts the sending end in its namespace. It sends until the process is dropped; its first data are sent about
    /// four round-trip times later, after iperf3's exchange with its server.
    ///
    /// Errors: iperf3 is missing.
    pub(super) fn send(&self, namespace: &Namespace) -> Result<Process, SetupError> {
        let mut c = Namespace::command("iperf3")?;
        c.args(["-c", &self.to.to_string(), "-B", &self.from.to_string(), "-p", &self.port.to_string()]);
        // 0 is endless.
        c.args(["-t", "0", "-C", &self.congestion]);
        if let Some(segment) = self.segment {
            c.args(["-M", &segment.to_string()]);
        }
        if let Some(window) = self.window {
            c.args(["-w", &window.to_string()]);
        }
        c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        namespace.start(c)
    }
}
