//! Who sees the packets of a live call, and what is summed up of them.

use crate::call::carrier::DccpSummary;
use crate::call::liveness::{EndReason, Notice};
use crate::call::stats::CpuShares;
use crate::srtp::SrtpCounters;
use crate::udp::UdpCounters;
use serde::Serialize;
use weir_session::Endpoint;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// A datagram of a call, as it leaves or has come.
#[derive(Clone, Copy, Debug)]
pub struct LivePacket<'a> {
    /// When it was given to the socket, or when the kernel took it in.
    pub at: Timestamp,
    /// Whether this end sends it.
    pub sent: bool,
    /// Its bytes as the session sees them, without SRTP.
    pub bytes: &'a [u8],
    /// UDP payload on the wire, with SRTP or DCCP's header.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
    /// Whether it is RTP rather than RTCP.
    pub is_rtp: bool,
}

/// Sees the packets of a call and looks at its end now and then. Every method does nothing unless it is written.
pub trait CallObserver {
    /// A datagram leaves or has come.
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        let _ = packet;
    }
    /// The end may be looked at, as often as [`Self::look_interval`] says: its queue, its target, its playout.
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let _ = (now, endpoint);
    }
    /// Datagrams have been taken in and timers run: what was received may be taken.
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let _ = (now, endpoint);
    }
    /// Something has happened that the call's operator should know.
    fn on_notice(&mut self, notice: &Notice) {
        let _ = notice;
    }
    /// Time between two looks.
    fn look_interval(&self) -> TimeDelta {
        TimeDelta::from_millis(10)
    }
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl CallObserver for Unobserved {}

impl<O: CallObserver + ?Sized> CallObserver for &mut O {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        (**self).on_packet(packet);
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        (**self).on_look(now, endpoint);
    }
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        (**self).on_turn(now, endpoint);
    }
    fn on_notice(&mut self, notice: &Notice) {
        (**self).on_notice(notice);
    }
    fn look_interval(&self) -> TimeDelta {
        (**self).look_interval()
    }
}

/// One that may be there.
impl<O: CallObserver> CallObserver for Option<O> {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        if let Some(o) = self {
            o.on_packet(packet);
        }
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        if let Some(o) = self {
            o.on_look(now, endpoint);
        }
    }
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        if let Some(o) = self {
            o.on_turn(now, endpoint);
        }
    }
    fn on_notice(&mut self, notice: &Notice) {
        if let Some(o) = self {
            o.on_notice(notice);
        }
    }
}

/// Both see every packet; the first says how often to look.
impl<A: CallObserver, B: CallObserver> CallObserver for (A, B) {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        self.0.on_packet(packet);
        self.1.on_packet(packet);
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        self.0.on_look(now, endpoint);
        self.1.on_look(now, endpoint);
    }
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        self.0.on_turn(now, endpoint);
        self.1.on_turn(now, endpoint);
    }
    fn on_notice(&mut self, notice: &Notice) {
        self.0.on_notice(notice);
        self.1.on_notice(notice);
    }
    fn look_interval(&self) -> TimeDelta {
        self.0.look_interval().min(self.1.look_interval())
    }
}

/// Sums of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PacketTotals {
    /// RTP datagrams.
    pub rtp_packets: u64,
    /// Their bytes as UDP payload.
    pub rtp_bytes: u64,
    /// RTCP datagrams.
    pub rtcp_packets: u64,
    /// Their bytes as UDP payload.
    pub rtcp_bytes: u64,
    /// Datagrams with a mark of congestion.
    pub ce_marked: u64,
}

impl PacketTotals {
    /// Counts a datagram.
    pub fn add(&mut self, packet: &LivePacket<'_>) {
        let size = packet.size.as_bytes();
        if packet.is_rtp {
            self.rtp_packets += 1;
            self.rtp_bytes += size;
        } else {
            self.rtcp_packets += 1;
            self.rtcp_bytes += size;
        }
        self.ce_marked += u64::from(packet.ecn == Ecn::Ce);
    }
}

/// What the loop has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EndCounters {
    /// Turns of the loop.
    pub turns: u64,
    /// Datagrams from elsewhere than the other end.
    pub strangers: u64,
    /// Datagrams that are neither RTP nor RTCP; DCCP has a count of its own.
    pub not_rtp: u64,
    /// Datagrams that SRTP would not protect.
    pub unprotected: u64,
    /// Failures of the socket on receipt.
    pub receive_errors: u64,
    /// BYE packets from the other end.
    pub byes: u64,
}

/// What an end tells of its call, units in the names.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct EndSummary {
    /// How long it ran.
    pub duration_s: f64,
    /// What left.
    pub sent: PacketTotals,
    /// What came.
    pub received: PacketTotals,
    /// Frames that the source has made.
    pub frames_sent: u64,
    /// Mean rate of RTP sent, as UDP payload.
    pub sent_rate_bps: f64,
    /// Mean rate of RTP received, as UDP payload.
    pub received_rate_bps: f64,
    /// Share of the media packets lost on the way, as far as their numbers tell.
    pub loss: Option<f64>,
    /// Last target of the controller.
    pub target_bps: Option<u64>,
    /// Last round-trip time.
    pub rtt_ms: Option<f64>,
    /// Datagrams that the session could not take.
    pub malformed: u64,
    /// RTP or feedback of sources that are not part of the call.
    pub unknown_source: u64,
    /// What the loop has done.
    pub counters: EndCounters,
    /// What the socket has done.
    pub udp: UdpCounters,
    /// What became of protected packets, where there is SRTP.
    pub srtp: Option<SrtpCounters>,
    /// What became of the DCCP connection, where there is one.
    pub dccp: Option<DccpSummary>,
    /// Shares of one core, where they were counted.
    pub cpu: Option<CpuShares>,
    /// The last refusal of a datagram by the system.
    pub last_send_error: Option<String>,
    /// Why it ended; `None` while it runs.
    pub ended: Option<EndReason>,
}

pub(crate) fn rate_bps(bytes: u64, time: TimeDelta) -> f64 {
    DataRate::from_size_over(DataSize::from_bytes(bytes), time).map_or(0.0, DataRate::as_bps_f64)
}
