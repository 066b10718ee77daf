//! DCCP over UDP on the loopback device, beside UDP without congestion control and the kernel's TCP, in wall-clock
//! time.

use super::{BenchError, Work};
use crate::loopback::{Transport, speed};
use crate::report::Loopback;
use std::time::Duration;

/// Seconds of each at scale 1.
const SECONDS: f64 = 3.0;
/// Bytes of a datagram.
const DATAGRAM: usize = 1_400;

pub(super) const TRANSPORTS: [(&str, Transport); 6] = [
    ("kernel TCP", Transport::Tcp { segment: None }),
    ("kernel TCP, segments of 1400", Transport::Tcp { segment: Some(DATAGRAM as u32) }),
    ("UDP without control", Transport::Udp),
    ("DCCP-UDP, CCID 2", Transport::Dccp { ccid: 2 }),
    ("DCCP-UDP, CCID 3", Transport::Dccp { ccid: 3 }),
    ("DCCP-UDP, CCID 5", Transport::Dccp { ccid: 5 }),
];

pub(super) fn rows(work: &Work<'_>) -> Result<Vec<Loopback>, BenchError> {
    let time = Duration::from_secs_f64((SECONDS * work.suite.scale).clamp(0.1, 600.0));
    let mut all = Vec::new();
    for (name, transport) in TRANSPORTS {
        work.begin(name)?;
        all.push((name, speed(transport, DATAGRAM, time).map_err(BenchError::failed)?));
    }
    let tcp = all[1].1.goodput_bps.max(1.0);
    Ok(all.into_iter().map(|(name, speed)| Loopback { name, times_tcp: speed.goodput_bps / tcp, speed }).collect())
}
