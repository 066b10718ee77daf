//! Observers of a live call's packets, and their statistics.

use crate::call::carrier::DccpSummary;
use crate::call::ice_state::IceSummary;
use crate::call::liveness::{EndReason, Notice};
use crate::call::stats::CpuShares;
use crate::srtp::SrtpCounters;
use crate::udp::UdpCounters;
use serde::Serialize;
use weir_session::Endpoint;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// A datagram of a call, sent or received.
#[derive(Clone, Copy, Debug)]
pub struct LivePacket<'a> {
    /// When it was passed to the socket, or when the kernel received it.
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

/// Observes the packets of a call and, at intervals, its end. Every method does nothing by default.
pub trait CallObserver {
    /// A datagram was sent or received.
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        let _ = packet;
    }
    /// The end may be sampled, every [`Self::look_interval`]: its queue, its target, its playout.
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let _ = (now, endpoint);
    }
    /// Datagrams were processed and timers run: received content may be taken.
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let _ = (now, endpoint);
    }
    /// An event for the call's operator.
    fn on_notice(&mut self, notice: &Notice) {
        let _ = notice;
    }
    /// Time between two samples.
    fn look_interval(&self) -> TimeDelta {
        TimeDelta::from_millis(10)
    }
}

/// No observer.
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

/// Both see every packet; the first sets the sampling interval.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Counters of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndCounters {
    /// Turns of the loop.
    pub turns: u64,
    /// Datagrams from addresses other than the other end's.
    pub strangers: u64,
    /// Datagrams that are neither RTP nor RTCP; DCCP has its own counter.
    pub not_rtp: u64,
    /// Datagrams that SRTP would not protect.
    pub unprotected: u64,
    /// Failures of the socket on receipt.
    pub receive_errors: u64,
    /// BYE packets from the other end.
    pub byes: u64,
    /// Challenges sent to new addresses of paths.
    pub challenges: u64,
    /// Times that a path followed the other end to a new address.
    pub moves: u64,
    /// Times that a path got another socket, because its interface has another address.
    pub rebound: u64,
    /// Datagrams for paths without a socket.
    pub unrouted: u64,
}

/// Statistics of an end's call, units in the names.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndSummary {
    /// How long it ran.
    pub duration_s: f64,
    /// Packets sent.
    pub sent: PacketTotals,
    /// Packets received.
    pub received: PacketTotals,
    /// Frames made by the source.
    pub frames_sent: u64,
    /// Mean rate of RTP sent, as UDP payload.
    pub sent_rate_bps: f64,
    /// Mean rate of RTP received, as UDP payload.
    pub received_rate_bps: f64,
    /// Fraction of media packets lost, by their sequence numbers.
    pub loss: Option<f64>,
    /// Last target of the controller.
    pub target_bps: Option<u64>,
    /// Last round-trip time.
    pub rtt_ms: Option<f64>,
    /// Datagrams that the session could not parse.
    pub malformed: u64,
    /// RTP or feedback of sources that are not part of the call.
    pub unknown_source: u64,
    /// Counters of the loop.
    pub counters: EndCounters,
    /// Counters of the sockets.
    pub udp: UdpCounters,
    /// The call's paths, if it has several.
    pub paths: Vec<CallPathSummary>,
    /// Counters of protected packets, with SRTP.
    pub srtp: Option<SrtpCounters>,
    /// State of ICE, if both ends take part.
    pub ice: Option<IceSummary>,
    /// State of the DCCP connection, if there is one.
    pub dccp: Option<DccpSummary>,
    /// Shares of one core, if measured.
    pub cpu: Option<CpuShares>,
    /// The last datagram refused by the system.
    pub last_send_error: Option<String>,
    /// Why it ended; `None` while it runs.
    pub ended: Option<EndReason>,
}

/// Statistics of one path of an end's call.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPathSummary {
    /// This end's address.
    pub local: String,
    /// The other end's.
    pub remote: String,
    /// RTP packets sent.
    pub sent_packets: u64,
    /// Mean rate of RTP sent, without UDP's and IP's headers and without SRTP.
    pub sent_rate_bps: f64,
    /// RTP packets received.
    pub received_packets: u64,
    /// Mean rate of RTP received, likewise.
    pub received_rate_bps: f64,
    /// Last target of the path's controller; zero at an end that sends nothing.
    pub target_bps: u64,
    /// Last round-trip time, at an end that sends.
    pub rtt_ms: Option<f64>,
    /// Share of packets lost by the last report, at an end that sends.
    pub loss: f64,
}

pub(crate) fn rate_bps(bytes: u64, time: TimeDelta) -> f64 {
    DataRate::from_size_over(DataSize::from_bytes(bytes), time).map_or(0.0, DataRate::as_bps_f64)
}
