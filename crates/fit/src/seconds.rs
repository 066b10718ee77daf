//! A call by seconds: from statistics, or from packets as statistics would have counted them.

use crate::packets::HEADERS;
use weir_timeline::Call;
use weir_timeline::why::{self, Fate};

/// One second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Row {
    /// Rates on the network, in bit/s.
    pub(crate) sent_bps: f64,
    pub(crate) arrived_bps: f64,
    /// Packets.
    pub(crate) sent: f64,
    pub(crate) lost: f64,
    /// Mean of what was measured in it, in ms.
    pub(crate) rtt_ms: Option<f64>,
    /// Target of the encoder and what it gave, without headers, in bit/s.
    pub(crate) target_bps: Option<f64>,
    pub(crate) media_bps: f64,
    pub(crate) frames: f64,
}

/// All of a call.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) audio_bps: f64,
    /// Whether the receiver's are there.
    pub(crate) both_ends: bool,
}

/// Why statistics show no link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// There are none.
    All,
    /// They are of the receiving end alone.
    Sender,
}

/// Bytes of an RTP header with its extensions, where they are not counted, and of an SRTP tag.
const RTP: f64 = 24.0;
const TAG: f64 = 10.0;

impl Rows {
    /// Of the statistics of a call.
    pub(crate) fn of_statistics(call: &Call) -> Result<Self, Missing> {
        let (seconds, of_sender) = why::seconds(call).ok_or(Missing::All)?;
        if !of_sender {
            return Err(Missing::Sender);
        }
        let row = |s: &why::Second| {
            let beside = s.headers.unwrap_or(RTP * s.sent) + (TAG + HEADERS) * s.sent;
            let sent_bps = s.kbps * 1e3 + beside * 8.0;
            let lost = s.lost.unwrap_or(0.0);
            let share = (lost / s.sent.max(1.0)).min(1.0);
            // Headers of what arrived are as large as those of what was sent.
            let each = beside * 8.0 / s.sent.max(1.0);
            let arrived = s.arrived_kbps.zip(s.arrived).map(|(kbps, packets)| kbps * 1e3 + packets * each);
            Row {
                sent_bps,
                arrived_bps: arrived.unwrap_or(sent_bps * (1.0 - share)),
                sent: s.sent,
                lost,
                rtt_ms: s.rtt.or(s.stun_rtt),
                target_bps: s.target.map(|kbps| kbps * 1e3),
                media_bps: s.kbps * 1e3,
                frames: s.encoded,
            }
        };
        Ok(Self {
            rows: seconds.rows.iter().map(row).collect(),
            audio_bps: seconds.audio_bps,
            both_ends: seconds.both_ends,
        })
    }

    /// Of packets, counted as statistics at both ends would: a round trip a second by one packet and the fastest answer.
    pub(crate) fn of_packets(call: &Call) -> Option<Self> {
        let passages = why::passages(call)?;
        let length = passages.packets.last()?.at;
        let mut rows = vec![Row::default(); (length.clamp(0.0, 86_400.0)) as usize];
        let ways = passages.answers.iter().filter_map(|a| Some((a.arrived? - a.sent?) * 1e3));
        let back = ways.fold(f64::INFINITY, f64::min);
        let mut stamp = None;
        for p in &passages.packets {
            let bits = (p.size + HEADERS) * 8.0;
            if let Some(row) = rows.get_mut(p.at.max(0.0) as usize) {
                row.sent_bps += bits;
                row.media_bps += p.size * 8.0;
                row.sent += 1.0;
                row.lost += f64::from(u8::from(p.fate == Fate::Lost));
                row.frames += f64::from(u8::from(stamp != Some(p.timestamp)));
            }
            stamp = Some(p.timestamp);
            let Fate::Arrived(delay) = p.fate else { continue };
            // The two clocks' offset is in both ways.
            if let Some(row) = rows.get_mut(p.at.max(0.0) as usize)
                && back.is_finite()
                && p.at - libm::floor(p.at) >= 0.5
            {
                row.rtt_ms.get_or_insert(delay + back);
            }
            let least = delay + back;
            let at = if back.is_finite() { p.at + least * 1e-3 } else { p.at };
            if let Some(row) = rows.get_mut(at.max(0.0) as usize) {
                row.arrived_bps += bits;
            }
        }
        Some(Self { rows, audio_bps: 0.0, both_ends: true })
    }
}
