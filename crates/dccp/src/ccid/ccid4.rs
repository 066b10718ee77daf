//! CCID 4: TCP-Friendly Rate Control for small packets (RFC 5622 over RFC 4828).
//!
//! It is [CCID 3](super::ccid3) for applications whose packets are small because of timing, not of rate, such as
//! speech. Differences:
//! - The throughput equation uses the nominal segment of 1,460 bytes, or the maximum packet size if that is smaller
//!   (RFC 4828, section 3), and yields X without headers: times s / (s + H), with H of 36 bytes (RFC 5622, section 5;
//!   RFC 4828 has 40). The factor applies to the equation alone: slow start and the limit by X_recv count received
//!   data, which has no headers.
//! - Packets are at least 10 ms apart. With coarse timers ([`t_gran`](super::ccid3::Config::t_gran)) a late packet may
//!   be made up for, but at most three are sent within 30 ms (RFC 5622, section 5).
//! - A loss interval of up to two round trips counts packets over losses, N / K, and is omitted while it is open. The
//!   receiver recognises short ones by window counters (RFC 5622, section 8.4), the sender by the time of their
//!   reports.
//! - Feedback carries Dropped Packets (RFC 5622, section 8.7).

mod small_packets;

pub use super::ccid3::Receiver;
pub use small_packets::SmallPackets;

use super::{Spec, ccid3};
use std::sync::Arc;
use weir_cc::tunable::SetupError;
use weir_units::{DataSize, TimeDelta};

weir_cc::tunables! {
    /// Parameters of CCID 4 in addition to those of CCID 3.
    pub struct Config {
        /// The nominal segment of the throughput equation (RFC 4828, section 3: 1,460 bytes).
        nominal_segment: DataSize = 1_460, 100 => 65_535;
        /// H: headers of a packet (RFC 5622, section 5: 36 bytes of IPv4 and DCCP-Data; RFC 4828, section 3: 40).
        header: DataSize = 36, 0 => 200;
        /// Minimum time between packets (RFC 4828, section 4.3: 10 ms).
        min_interval: TimeDelta = 10.0, 0.0 => 1_000.0;
    }
}

/// The half at the data's sender.
pub type Sender = ccid3::Sender<SmallPackets>;

const NAME: &str = "CCID 4";

/// The parameters of both.
fn configs(params: &[(String, f64)]) -> Result<(ccid3::Config, Config), SetupError> {
    let (mut base, mut own) = (ccid3::Config::default(), Config::default());
    let set_base = &mut |p: &[_]| ccid3::Config::selected(NAME, p).map(|config| base = config);
    let set_own = &mut |p: &[_]| own.set_all(NAME, p);
    ccid3::set_both(params, &Config::params(), set_own, set_base)?;
    Ok((base, own))
}

/// Its entry in the registry.
pub fn spec() -> Spec {
    Spec {
        number: 4,
        name: "TFRC-SP",
        summary: "TFRC for small packets: the rate in bytes of a TCP flow with large ones",
        source: "RFC 5622, RFC 4828",
        requirements: ccid3::REQUIREMENTS,
        params: [ccid3::Config::params(), Config::params()].concat(),
        sender: Arc::new(|setup| {
            let (base, own) = configs(&setup.params)?;
            let small = SmallPackets::new(&own, setup.max_packet_size, base.t_gran, setup.now);
            Ok(super::Sender::Ccid4(Box::new(Sender::with(base, setup, small))))
        }),
        receiver: Arc::new(|setup| {
            let (base, own) = configs(&setup.params)?;
            let nominal = own.nominal_segment.min(setup.max_packet_size);
            Ok(super::Receiver::Ccid4(Box::new(Receiver::with(base, Some(nominal)))))
        }),
    }
}

#[cfg(test)]
mod tests;
