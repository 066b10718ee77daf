//! The constants of RFC 5348.

use weir_units::{DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of TFRC, with the RFC's names where it has them.
    pub struct Config {
        /// q: weight of the previous round-trip time against a new sample (RFC 5348, section 4.3: 0.9).
        q: f64 = 0.9, 0.0 => 0.999;
        /// q2: the same for the square root of it (RFC 5348, section 4.5: 0.9).
        q2: f64 = 0.9, 0.0 => 0.999;
        /// NDUPACK: later packets that must arrive before a missing one counts as lost (RFC 5348, section 5.1: 3).
        ndupack: u32 = 3, 1 => 64;
        /// Whether history discounting is on: older loss intervals count less during a long one without loss (RFC 5348,
        /// section 5.5: optional).
        discounting: bool = 1, 0 => 1;
        /// Whether the rate is reduced while the round-trip time rises (RFC 5348, section 4.5: recommended).
        damping: bool = 1, 0 => 1;
        /// MSS for the initial rate; a larger packet sent replaces it (RFC 5348, section 4.2).
        mss: DataSize = 1_200, 100 => 65_535;
        /// t_mbi: the longest time between packets (RFC 5348, section 4.3: 64 s).
        t_mbi: TimeDelta = 64_000.0, 100.0 => 1_000_000.0;
        /// Nofeedback timer before the first round-trip time (RFC 5348, section 4.2: 2 s).
        initial_nofeedback: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Least nofeedback timer afterwards (RFC 5348, section 4.3, has none: 4 R or two packet intervals).
        min_nofeedback: TimeDelta = 200.0, 1.0 => 60_000.0;
        /// b: packets per acknowledgement of the TCP flow (RFC 5348, section 3.1: 1).
        packets_per_ack: f64 = 1.0, 1.0 => 2.0;
        /// Least t_RTO of the TCP flow (RFC 5348, section 3.1: 4 R; it allows a minimum of 1 s).
        min_rto: TimeDelta = 0.0, 0.0 => 10_000.0;
    }
}
