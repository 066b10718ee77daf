//! Summary of a recording: its counts and its faults.

use crate::{Format, Recording};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// One file.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Source {
    /// Path as given.
    pub path: String,
    /// Recognised format.
    pub format: Format,
    /// First time in it, Unix time in ms.
    pub from_ms: Option<i64>,
    /// Last time in it, Unix time in ms.
    pub to_ms: Option<i64>,
    /// RTP packets.
    pub packets: Packets,
    /// RTCP packets.
    pub rtcp: u64,
    /// Packets named in feedback.
    pub reported: u64,
    /// Estimates of the available rate.
    pub estimates: u64,
    /// Probe clusters.
    pub probes: u64,
    /// Numbers over time of `getStats()`.
    pub series: u64,
    /// Faults that were passed over, each with its count.
    pub faults: BTreeMap<String, u64>,
    /// Facts that were recognised by behaviour, since the file does not tell.
    pub guessed: Vec<String>,
    /// Where reading stopped, if before the end.
    pub stopped: Option<Interruption>,
}

/// RTP packets of a file.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Packets {
    /// Sent by the recording end.
    pub sent: u64,
    /// Received by it.
    pub received: u64,
    /// Seen by a capture that does not tell.
    pub passing: u64,
    /// Missing among the received ones.
    pub lost: u64,
}

/// The end of what could be read.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Interruption {
    /// Offset in the decompressed file, in bytes.
    pub offset: u64,
    /// The reason.
    pub why: String,
}

impl From<&Recording> for Source {
    fn from(recording: &Recording) -> Self {
        let (counts, span) = (recording.counts(), recording.span());
        Self {
            path: recording.name.clone(),
            format: recording.format,
            from_ms: span.map(|s| s.0.as_millis()),
            to_ms: span.map(|s| s.1.as_millis()),
            packets: Packets {
                sent: counts.sent,
                received: counts.received,
                passing: counts.passing,
                lost: counts.lost,
            },
            rtcp: recording.rtcp.len() as u64,
            reported: recording.reported.len() as u64,
            estimates: recording.estimates.len() as u64,
            probes: recording.probes.len() as u64,
            series: recording.series.len() as u64,
            faults: recording.faults.clone(),
            guessed: recording.guessed.clone(),
            stopped: recording.stop.as_ref().map(|s| Interruption { offset: s.offset, why: s.why.clone() }),
        }
    }
}
