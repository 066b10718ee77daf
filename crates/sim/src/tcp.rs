//! TCP senders and receivers, as agents.
//!
//! A connection carries data in one direction. The sender implements slow start, congestion avoidance, fast retransmit
//! and fast recovery (RFC 5681) with loss recovery by SACK (RFC 6675) or without (RFC 6582), limited transmit
//! (RFC 3042), a retransmission timer (RFC 6298), an initial window of ten segments (RFC 6928) and, optionally, ECN
//! (RFC 3168, RFC 8257 or RFC 9768: [`EcnFeedback`]), HyStart++ (RFC 9406), proportional rate reduction (RFC 6937) and
//! loss detection by RACK-TLP (RFC 8985: [`LossDetection`]) with reports of duplicates (D-SACK, RFC 2883). The receiver delays its acknowledgements (RFC 5681, section 4.2). Congestion avoidance is one of those in
//! [`avoidance`]; those that model the path also pace. Short flows, each on its own connection, are handled by two
//! agents in all ([`ShortFlows`]).
//!
//! Left out: urgent data, flow control by a slow reader, Nagle's algorithm, undoing the response to a spurious
//! retransmission, path MTU changes, and bytes: segments carry ranges of sequence numbers only.

pub mod avoidance;
mod delivery;
mod ecn;
mod hystart;
mod pool;
mod rack;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
mod short;
mod tail_loss_probe;
#[cfg(test)]
mod tests;
mod workload;

pub use crate::tcp_segment::{SackBlock, TcpSegment};
pub use avoidance::Variant;
pub use ecn::EcnFeedback;
pub use receiver::{Receiver, ReceiverStats};
pub use sender::{Sender, SenderStats};
pub use short::{ShortFlows, ShortReceiver, ShortSender, ShortStats};
pub use workload::Workload;

use std::fmt;
use weir_units::{DataSize, TimeDelta};

/// How a sender detects losses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum LossDetection {
    /// By counts of duplicate acknowledgements or of data received later: three (RFC 6675 with SACK, RFC 6582 without).
    #[default]
    DupAck,
    /// By time, with probes for losses at the tail (RACK-TLP, RFC 8985), as Linux does; requires SACK.
    Rack,
}

impl LossDetection {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DupAck => "dupack",
            Self::Rack => "rack",
        }
    }
}

/// Configuration of a TCP connection, the same for sender and receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpConfig {
    /// Congestion avoidance.
    pub variant: Variant,
    /// Data bytes of a full segment. 1,448 fill 1,500 bytes of IPv4 with timestamps, 1,460 without.
    pub mss: u32,
    /// Initial window in segments: 10 (RFC 6928).
    pub initial_window: u32,
    /// Initial slow-start threshold; `None` for the maximum (RFC 5681, section 3.1).
    pub initial_ssthresh: Option<DataSize>,
    /// Selective acknowledgements (RFC 2018 and 6675); without them NewReno recovery (RFC 6582).
    pub sack: bool,
    /// How the sender detects losses.
    pub loss_detection: LossDetection,
    /// Whether the receiver reports duplicates (D-SACK, RFC 2883); requires SACK.
    pub dsack: bool,
    /// Timestamps (RFC 7323): 12 more bytes per segment, and a round-trip time sample from each acknowledgement.
    pub timestamps: bool,
    /// ECN, and how the receiver reports marks.
    pub ecn: EcnFeedback,
    /// Whether slow start ends when the round-trip time rises (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Whether the window falls in proportion to deliveries during fast recovery (RFC 6937).
    pub prr: bool,
    /// Seed of the random numbers of those algorithms that use any.
    pub seed: u64,
    /// Whether each transfer begins with a SYN.
    pub handshake: bool,
    /// Segments per acknowledgement: 2, or 1 to acknowledge each (RFC 5681, section 4.2).
    pub ack_every: u32,
    /// Longest delay of an acknowledgement: at most 500 ms (RFC 5681, section 4.2); 200 ms as in BSD and ns-3.
    pub ack_delay: TimeDelta,
    /// Least retransmission timeout: 1 s (RFC 6298, section 2.4); Linux has 200 ms.
    pub min_rto: TimeDelta,
    /// The receiver's window.
    pub receive_window: DataSize,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            variant: Variant::NewReno,
            mss: 1_448,
            initial_window: 10,
            initial_ssthresh: None,
            sack: true,
            loss_detection: LossDetection::DupAck,
            dsack: false,
            timestamps: true,
            ecn: EcnFeedback::Off,
            hystart: false,
            prr: false,
            seed: 0,
            handshake: true,
            ack_every: 2,
            ack_delay: TimeDelta::from_millis(200),
            min_rto: TimeDelta::from_secs(1),
            receive_window: DataSize::from_bytes(16 << 20),
        }
    }
}

/// An invalid value in a [`TcpConfig`] or [`Workload`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpConfigError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values.
    pub expected: &'static str,
}

impl fmt::Display for TcpConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp: {} is {}: expected {}", self.field, self.value, self.expected)
    }
}
impl std::error::Error for TcpConfigError {}

impl TcpConfig {
    /// The defaults with another algorithm, and the ECN that it needs.
    pub fn of(variant: Variant) -> Self {
        Self { variant, ecn: variant.ecn(), ..Self::default() }
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        let error = |field, value: String, expected| Err(TcpConfigError { field, value, expected });
        if !(1..=65_000).contains(&self.mss) {
            return error("mss", self.mss.to_string(), "1 to 65000 bytes");
        }
        if !(1..=1_000).contains(&self.initial_window) {
            return error("initial_window", self.initial_window.to_string(), "1 to 1000 segments");
        }
        if !(1..=1_000).contains(&self.ack_every) {
            return error("ack_every", self.ack_every.to_string(), "1 to 1000 segments");
        }
        if self.ack_delay < TimeDelta::ZERO || self.ack_delay > TimeDelta::from_millis(500) {
            return error("ack_delay", self.ack_delay.to_string(), "0 to 500 ms");
        }
        if self.min_rto <= TimeDelta::ZERO || self.min_rto > TimeDelta::from_secs(60) {
            return error("min_rto", self.min_rto.to_string(), "above 0 and at most 60 s");
        }
        if self.prr && !self.sack {
            return error("prr", "true".into(), "false without SACK");
        }
        if self.loss_detection == LossDetection::Rack && !self.sack {
            return error("loss_detection", self.loss_detection.name().into(), "dupack without SACK");
        }
        if self.dsack && !self.sack {
            return error("dsack", "true".into(), "false without SACK");
        }
        if self.variant.models_path() && !self.sack {
            return error("sack", "false".into(), "true: the algorithm counts what was delivered");
        }
        if !self.ecn_fits() {
            return error("ecn", format!("{:?}", self.ecn), "the feedback that the algorithm reads");
        }
        let window = self.receive_window.as_bytes();
        if !(u64::from(self.mss)..=1 << 30).contains(&window) {
            return error("receive_window", self.receive_window.to_string(), "one segment to 1 GiB");
        }
        Ok(())
    }

    /// Whether the algorithm can use the configured feedback: scalable ones need that of their own.
    fn ecn_fits(&self) -> bool {
        [self.variant.ecn(), self.variant.with_ecn()].contains(&self.ecn)
    }
}
