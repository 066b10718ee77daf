//! Why something could not be done.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use weir_cc::tunable::SetupError;
use weir_dccp::connection::{EndReason, SendError};
use weir_units::DataSize;

/// Why an operation on a connection or a port was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DccpError {
    /// The system refuses a socket, a thread or one of their options.
    #[error("{what}: {source}")]
    Socket {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// An invalid configuration, such as an unknown CCID.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// An invalid configuration, for another reason.
    #[error("{0}")]
    Config(String),
    /// The operation would block, or its timeout has expired.
    #[error("it would block: congestion control holds data back, or nothing was received")]
    WouldBlock,
    /// The other end has not answered in time.
    #[error("{peer} has not answered within {seconds} s: is a DCCP-UDP server there, and is UDP let through to it?")]
    TimedOut {
        /// The other end.
        peer: SocketAddr,
        /// How long it was waited for.
        seconds: f64,
    },
    /// A host or router refuses, by ICMP.
    #[error("{peer} cannot be reached ({kind}): nothing listens on this UDP port, or the path is blocked")]
    Unreachable {
        /// The other end.
        peer: SocketAddr,
        /// In the words of system calls.
        kind: ErrorKind,
    },
    /// A datagram is longer than a packet may be.
    #[error("a datagram of {} bytes is longer than the {} that fit a packet: see max_packet_size", size.as_bytes(), max.as_bytes())]
    TooLong {
        /// Its length.
        size: DataSize,
        /// The maximum.
        max: DataSize,
    },
    /// The connection has ended.
    #[error("{}", describe(.0))]
    Ended(EndReason),
    /// This end has closed.
    #[error("the connection or port is closed")]
    Closed,
    /// The port has all the connections that it may have.
    #[error("the port has {0} connections, and may not have more: see PortConfig::max_connections")]
    Full(usize),
    /// An internal error: the thread or a connection has failed.
    #[error("the connection has failed, which is a fault of Weir's: {0}")]
    Driver(String),
}

fn describe(reason: &EndReason) -> String {
    match reason {
        EndReason::Closed => "the connection has been closed".into(),
        EndReason::ResetByPeer(code, _) => format!("the other end has reset the connection: {code}"),
        EndReason::Reset(code, _) => format!("this end has reset the connection: {code}"),
        EndReason::TimedOut => "the other end was silent for too long".into(),
        EndReason::NoCommonCcid => {
            "the two ends have no congestion control (CCID) in common: offer more of them".into()
        }
    }
}

impl DccpError {
    pub(super) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Socket { what, source }
    }

    /// Whether it only means that the operation would block.
    pub const fn is_would_block(&self) -> bool {
        matches!(self, Self::WouldBlock)
    }

    /// Whether both ends have closed in order.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed | Self::Ended(EndReason::Closed))
    }
}

impl From<SendError> for DccpError {
    fn from(e: SendError) -> Self {
        match e {
            SendError::WouldBlock => Self::WouldBlock,
            SendError::TooLong { size, max } => Self::TooLong { size, max },
            _ => Self::Closed,
        }
    }
}

impl From<DccpError> for io::Error {
    fn from(e: DccpError) -> Self {
        use weir_dccp::packet::ResetCode;
        let kind = match &e {
            DccpError::Socket { source, .. } => source.kind(),
            DccpError::WouldBlock => ErrorKind::WouldBlock,
            DccpError::TimedOut { .. } | DccpError::Ended(EndReason::TimedOut) => ErrorKind::TimedOut,
            DccpError::Unreachable { kind, .. } => *kind,
            DccpError::TooLong { .. } | DccpError::Setup(_) | DccpError::Config(_) => ErrorKind::InvalidInput,
            DccpError::Ended(EndReason::ResetByPeer(ResetCode::CONNECTION_REFUSED, _)) => ErrorKind::ConnectionRefused,
            DccpError::Ended(EndReason::ResetByPeer(..)) => ErrorKind::ConnectionReset,
            DccpError::Ended(EndReason::Reset(..) | EndReason::NoCommonCcid) => ErrorKind::ConnectionAborted,
            DccpError::Ended(EndReason::Closed) | DccpError::Closed => ErrorKind::NotConnected,
            _ => ErrorKind::Other,
        };
        Self::new(kind, e)
    }
}
