//! DCCP over UDP on the loopback device, beside UDP without congestion control and the kernel's TCP, in wall-clock
//! time.

use super::Work;
use crate::output::Failure;
use crate::tables::{fold, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use weir_bench::loopback::{Speed, Transport, speed};

/// Seconds of each at `--scale 1`.
const SECONDS: f64 = 3.0;
/// Bytes of a datagram.
const DATAGRAM: usize = 1_400;

/// One transport over the loopback device.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Loopback")]
pub(super) struct Row {
    /// The transport.
    name: &'static str,
    #[serde(flatten)]
    speed: Speed,
    /// Goodput over that of the kernel's TCP with segments as long as the datagrams.
    times_tcp: f64,
}

pub(super) const TRANSPORTS: [(&str, Transport); 6] = [
    ("kernel TCP", Transport::Tcp { segment: None }),
    ("kernel TCP, segments of 1400", Transport::Tcp { segment: Some(DATAGRAM as u32) }),
    ("UDP without control", Transport::Udp),
    ("DCCP-UDP, CCID 2", Transport::Dccp { ccid: 2 }),
    ("DCCP-UDP, CCID 3", Transport::Dccp { ccid: 3 }),
    ("DCCP-UDP, CCID 5", Transport::Dccp { ccid: 5 }),
];

pub(super) fn measure(work: &Work<'_>) -> Result<Vec<Row>, Failure> {
    let time = Duration::from_secs_f64((SECONDS * work.scale).clamp(0.1, 600.0));
    let mut all = Vec::new();
    for (name, transport) in TRANSPORTS {
        work.begin(name)?;
        all.push((name, speed(transport, DATAGRAM, time).map_err(Failure::work)?));
    }
    let tcp = all[1].1.goodput_bps.max(1.0);
    Ok(all.into_iter().map(|(name, speed)| Row { name, times_tcp: speed.goodput_bps / tcp, speed }).collect())
}

pub(super) fn show(rows: &[Row]) -> String {
    let mut t = table(&["loopback, 1400 bytes", "datagrams/s", "Mbit/s", "CPU ns each", "lost %", "of TCP"], 1);
    for r in rows {
        let s = &r.speed;
        t.add_row([
            r.name.to_owned(),
            super::grouped(s.datagrams_per_s),
            super::grouped(s.goodput_bps / 1e6),
            super::grouped(s.cpu_ns_per_datagram),
            format!("{:.2}", 100.0 * s.loss),
            format!("{:.2}", r.times_tcp),
        ]);
    }
    let note = "By the clock, one after the other: the sender's threads on one core, the receiver's on another. CPU is of both \
                and the kernel; of TCP beside the kernel's with segments of 1400 bytes.";
    format!("{t}\n{}\n", fold(note))
}
