//! The carrier of a call's packets: plain datagrams, or DCCP.

use crate::call::config::CallConfig;
use crate::call::{CallError, random};
use serde::Serialize;
use std::net::SocketAddr;
use weir_dccp::connection::{Ccids, Config, Connection, Datagram as DccpDatagram, EndReason};
use weir_dccp::packet::parse;
use weir_dccp::queue::{QueueConfig, QueuePolicy};
use weir_session::dccp::{DccpConfig, DccpEnd, video_connection};
use weir_session::{Datagram, Endpoint, Outcome};
use weir_units::{DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::{DatagramKind, kind_of};

/// The carrier of a call's packets.
pub struct Carrier(Inner);

enum Inner {
    Udp(Box<Endpoint>),
    Dccp(Box<DccpEnd>),
}

/// Initial queue capacity in packets: with a kernel's five, the first key frame would be lost.
const QUEUE: usize = 64;

/// A call over DCCP: a connection with this congestion control, and how it is used. Packets too late for their playout
/// are not sent, and a full queue keeps key frames.
pub(super) fn over_dccp(call: &CallConfig, ccids: Ccids, is_v6: bool) -> Result<(Config, DccpConfig), CallError> {
    let connection = Config {
        ccids,
        ecn: call.ecn,
        queue: QueueConfig { capacity: QUEUE, policy: QueuePolicy::DropOldest },
        header_overhead: DataSize::from_bytes(if is_v6 { 48 } else { 28 }),
        seed: random()?,
        ..video_connection(2)
    };
    Ok((connection, DccpConfig { max_wait: Some(call.playout_deadline), ..DccpConfig::default() }))
}

/// A datagram to be sent.
pub(super) struct Outgoing {
    /// The path that takes it.
    pub(super) path: PathId,
    /// Bytes without content after those written.
    pub(super) payload: u32,
    pub(super) ecn: Ecn,
    /// Offset of the RTP or RTCP packet.
    pub(super) data_at: usize,
    /// Whether it is RTP or RTCP; `None` if it is neither.
    pub(super) kind: Option<DatagramKind>,
}

/// Statistics of a call's DCCP connection, units in the names.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DccpSummary {
    /// Congestion control of the data sent by this end.
    pub ccid: Option<u8>,
    /// RTP packets that the send queue refused.
    pub rejected: u64,
    /// Frames with such packets, or with packets dropped from the queue.
    pub frames_rejected: u64,
    /// Current capacity of the send queue in packets.
    pub queue_capacity: usize,
    /// The rate that congestion control allows.
    pub rate_bps: Option<u64>,
    /// Round-trip time.
    pub rtt_ms: Option<f64>,
    /// Packets of all types sent.
    pub packets_sent: u64,
    /// Packets of all types received.
    pub packets_received: u64,
    /// Data packets reported lost by acknowledgements.
    pub data_lost: u64,
    /// Data packets reported marked by acknowledgements.
    pub data_marked: u64,
    /// Datagrams that are no packets, or none of this connection.
    pub strangers: u64,
    /// Why the connection has ended, if it has.
    pub end: Option<String>,
}

impl From<Endpoint> for Carrier {
    fn from(endpoint: Endpoint) -> Self {
        Self(Inner::Udp(Box::new(endpoint)))
    }
}

impl From<DccpEnd> for Carrier {
    fn from(end: DccpEnd) -> Self {
        Self(Inner::Dccp(Box::new(end)))
    }
}

impl Carrier {
    pub(super) fn endpoint(&self) -> &Endpoint {
        match &self.0 {
            Inner::Udp(e) => e,
            Inner::Dccp(e) => e.endpoint(),
        }
    }
    pub(super) fn endpoint_mut(&mut self) -> &mut Endpoint {
        match &mut self.0 {
            Inner::Udp(e) => e,
            Inner::Dccp(e) => e.endpoint_mut(),
        }
    }
    pub(super) fn is_dccp(&self) -> bool {
        matches!(self.0, Inner::Dccp(_))
    }
    fn connection(&self) -> Option<&Connection> {
        match &self.0 {
            Inner::Udp(_) => None,
            Inner::Dccp(e) => e.connection(),
        }
    }
    /// Whether the call can no longer continue.
    pub(super) fn is_over(&self) -> bool {
        self.connection().is_some_and(|c| c.end().is_some())
    }

    /// Closes, with the reason if the other end could not know it.
    pub(super) fn leave(&mut self, end: &crate::call::liveness::EndReason) {
        match &mut self.0 {
            Inner::Udp(e) if end.is_failure() => e.leave(Some(&end.to_string())),
            Inner::Udp(e) => e.leave(None),
            Inner::Dccp(e) => e.leave(),
        }
    }
    /// Whether nothing more has to be sent after [`Self::leave`].
    pub(super) fn has_left(&self) -> bool {
        self.connection().is_none_or(|c| c.end().is_some())
    }
    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        match &mut self.0 {
            Inner::Udp(e) => e.handle_timeout(now),
            Inner::Dccp(e) => e.handle_timeout(now),
        }
    }
    pub(super) fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        match &mut self.0 {
            Inner::Udp(e) => e.poll_timeout(now),
            Inner::Dccp(e) => e.poll_timeout(now),
        }
    }
    pub(super) fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        match &mut self.0 {
            Inner::Udp(e) => {
                let t = e.poll_transmit(now, out)?;
                let kind = Some(if t.is_rtp() { DatagramKind::Rtp } else { DatagramKind::Rtcp });
                Some(Outgoing { path: t.path, payload: t.payload, ecn: t.ecn, data_at: 0, kind })
            }
            Inner::Dccp(e) => {
                let t = e.poll_transmit(now, out)?;
                let data_at = t.transmit.header.min(out.len());
                let kind = if t.has_data { kind_of(&out[data_at..]) } else { None };
                let (payload, ecn) = (t.transmit.payload, t.transmit.ecn);
                Some(Outgoing { path: PathId::FIRST, payload, ecn, data_at, kind })
            }
        }
    }
    /// A datagram of the call was received by UDP.
    pub(super) fn handle_udp(&mut self, now: Timestamp, datagram: &Datagram<'_>, from: SocketAddr) -> Outcome {
        self.endpoint_mut().handle_datagram_from(now, datagram, from)
    }
    /// A DCCP packet was received; returns the RTP or RTCP in it, and the session's result.
    pub(super) fn handle_dccp<'a>(&mut self, now: Timestamp, bytes: &'a [u8], ecn: Ecn) -> Option<(&'a [u8], Outcome)> {
        let Inner::Dccp(end) = &mut self.0 else { return None };
        let outcome = end.handle_datagram(now, &DccpDatagram { bytes, payload: 0, ecn })?;
        let packet = parse(bytes, 0).ok().filter(|p| p.header.packet_type.is_data())?;
        Some((packet.data, outcome))
    }

    pub(super) fn summary(&self) -> Option<DccpSummary> {
        let Inner::Dccp(end) = &self.0 else { return None };
        let Some(c) = end.connection() else { return Some(DccpSummary::default()) };
        let (counters, session) = (c.counters(), end.counters());
        Some(DccpSummary {
            ccid: c.ccids().map(|n| n.0),
            rejected: session.rejected,
            frames_rejected: session.frames_rejected,
            queue_capacity: c.queue().config().capacity,
            rate_bps: c.rate().map(weir_units::DataRate::as_bps),
            rtt_ms: c.rtt().map(TimeDelta::as_millis_f64),
            packets_sent: counters.packets_sent,
            packets_received: counters.packets_received,
            data_lost: counters.data_lost,
            data_marked: counters.data_marked,
            strangers: counters.malformed + counters.strangers + counters.sequence_invalid,
            end: c.end().map(|e| reason(&e.reason)),
        })
    }
}

fn reason(reason: &EndReason) -> String {
    match reason {
        EndReason::Closed => "closed".into(),
        EndReason::ResetByPeer(code, _) => format!("reset by the other end: {}", code.name().unwrap_or("unknown code")),
        EndReason::Reset(code, _) => format!("reset: {}", code.name().unwrap_or("unknown code")),
        EndReason::TimedOut => "the other end is silent".into(),
        EndReason::NoCommonCcid => "no common congestion control".into(),
    }
}
