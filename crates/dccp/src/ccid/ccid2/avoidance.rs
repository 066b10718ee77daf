use weir_units::{TimeDelta, Timestamp};

/// Data packets that are newly acknowledged as received without a mark, while the window was in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acked {
    /// When.
    pub now: Timestamp,
    /// How many.
    pub packets: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: TimeDelta,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A lost packet.
    Loss,
    /// A packet with an ECN mark, or one whose data was dropped at the receiver for a reason that counts as a mark.
    Mark,
    /// The transmit timeout.
    Timeout,
}

/// An algorithm for the window, in packets, outside slow start. All else is the sender's.
pub trait Avoidance {
    /// The window after an acknowledgement in congestion avoidance.
    fn grow(&mut self, cwnd: u32, acked: &Acked) -> u32;
    /// Congestion: returns the new slow-start threshold; the sender bounds it to at least 2 and sets the window.
    fn on_congestion(&mut self, cwnd: u32, why: Congestion) -> u32;
    /// Packets were acknowledged that did not fill the window.
    fn on_application_limited(&mut self, now: Timestamp) {
        let _ = now;
    }
}

/// Additive increase and multiplicative decrease (RFC 4341, section 5): one packet for every window acknowledged without loss
/// or mark; half, rounded down, on congestion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reno {
    /// Packets acknowledged since the window last changed.
    acked: u32,
}

impl Avoidance for Reno {
    fn grow(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        self.acked += acked.packets;
        if self.acked < cwnd {
            return cwnd;
        }
        self.acked -= cwnd;
        cwnd + 1
    }
    fn on_congestion(&mut self, cwnd: u32, _why: Congestion) -> u32 {
        self.acked = 0;
        cwnd / 2
    }
}
