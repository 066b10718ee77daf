//! Rows of the tables of a recording.
//!
//! Times are [`Timestamp`]s counted from the Unix epoch where the recording knows it ([`Clock`]), else from the
//! recording's own zero. Sizes are bytes of the RTP or RTCP packet as the source counts them, without UDP and IP.

use weir_units::{DataRate, RemoteTimestamp, TimeDelta, Timestamp};

/// How times of a recording relate to UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// The source gives UTC.
    Utc,
    /// The source counts from a moment that it does not tell.
    #[default]
    Unknown,
}

/// Whether the end that made the recording sent or received.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Sent by the recording end.
    Sent,
    /// Received by it.
    Received,
    /// Seen by a capture that does not tell.
    Passing,
}

/// An RTP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When it was sent or received.
    pub at: Timestamp,
    /// In a capture the packet's number, else the row's in order of time; from 1.
    pub number: u32,
    /// Whether it was sent or received.
    pub direction: Direction,
    /// Synchronisation source.
    pub ssrc: u32,
    /// Sequence number.
    pub sequence: u16,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Payload type.
    pub payload_type: u8,
    /// Marker bit.
    pub marker: bool,
    /// Bytes of header, payload and padding.
    pub size: u32,
    /// Bytes of padding, where the source tells.
    pub padding: Option<u16>,
    /// Transport-wide sequence number.
    pub transport_sequence: Option<u16>,
}

/// Kind of an RTCP packet, with its numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum RtcpKind {
    /// Sender report.
    SenderReport,
    /// Receiver report.
    ReceiverReport,
    /// Transport-wide feedback; its rows are in `Recording::reported`.
    Twcc {
        /// Number of the message, modulo 256.
        count: u8,
    },
    /// Congestion control feedback (RFC 8888); its rows are in `Recording::reported`.
    Ccfb,
    /// Generic negative acknowledgement of this many packets.
    Nack(u32),
    /// Picture loss indication.
    Pli,
    /// Full intra request.
    Fir,
    /// Receiver's estimate.
    Remb(DataRate),
    /// Request for a lower rate.
    Tmmbr(DataRate),
    /// Source description, BYE, APP, XR and others, by their packet type.
    Other(u8),
    /// A compound of SRTCP without its keys, or cut by the capture: the packet type of its first packet.
    Unread(u8),
}

/// An RTCP packet: each of a compound is a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rtcp {
    /// When it was sent or received.
    pub at: Timestamp,
    /// As [`Packet::number`]; that of the packet it came in.
    pub number: u32,
    /// Whether it was sent or received.
    pub direction: Direction,
    /// SSRC of its sender.
    pub sender_ssrc: u32,
    /// Bytes; of a compound that is encrypted, all of it.
    pub size: u32,
    /// The packet's kind and numbers.
    pub kind: RtcpKind,
    /// A hash of the captured bytes, by which the same packet is found in another capture.
    pub fingerprint: Option<u64>,
}

/// One packet in a feedback message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reported {
    /// When the message was sent or received.
    pub at: Timestamp,
    /// Whether the message was sent or received.
    pub direction: Direction,
    /// The stream, in feedback that has one (RFC 8888); `None`: `sequence` is transport-wide.
    pub ssrc: Option<u32>,
    /// Sequence number.
    pub sequence: u16,
    /// Arrival by the reporting end's clock; `None`: reported as not received.
    pub arrival: Option<RemoteTimestamp>,
}

/// A report block of an SR or RR.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlockReport {
    /// When the report was sent or received.
    pub at: Timestamp,
    /// Whether it was sent or received.
    pub direction: Direction,
    /// The stream that it is about.
    pub ssrc: u32,
    /// Share of packets lost since the report before, 0 to 1.
    pub fraction_lost: f64,
    /// Packets lost since the start.
    pub lost: i32,
    /// Round-trip time by LSR and DLSR (RFC 3550, section 6.4.1), in received reports whose SR was logged.
    pub rtt: Option<TimeDelta>,
}

/// Part of the estimator that an estimate comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum EstimateKind {
    /// By delay.
    Delay,
    /// By loss.
    Loss,
    /// The target given to encoder and pacer.
    Target,
    /// The other end's lower bound.
    RemoteLower,
    /// The other end's upper bound.
    RemoteUpper,
}

/// State of the overuse detector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detector {
    /// Delay neither grows nor shrinks.
    Normal,
    /// Delay shrinks.
    Underuse,
    /// Delay grows.
    Overuse,
}

/// An estimate of the available rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// When it was made.
    pub at: Timestamp,
    /// The estimate.
    pub kind: EstimateKind,
    /// The rate.
    pub rate: DataRate,
    /// Loss that it was made from, 0 to 1 (loss-based ones).
    pub loss: Option<f64>,
    /// Detector's state (delay-based ones).
    pub detector: Option<Detector>,
}

/// Step of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeStep {
    /// The cluster was made, of at least so many packets and bytes.
    Made {
        /// Least packets.
        packets: u32,
        /// Least bytes.
        bytes: u32,
    },
    /// Its result.
    Succeeded,
    /// It has no result: send or receive interval was wrong, the rates' ratio, or the time was out.
    Failed(&'static str),
}

/// A probe of the estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// When it was logged.
    pub at: Timestamp,
    /// Number of the cluster.
    pub id: u32,
    /// Rate probed, or measured.
    pub rate: Option<DataRate>,
    /// The step.
    pub step: ProbeStep,
}

/// Begin or end of the time in which the application sends less than it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limited {
    /// When.
    pub at: Timestamp,
    /// Whether it begins.
    pub begins: bool,
}

/// A decoded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When it was decoded.
    pub at: Timestamp,
    /// Its stream.
    pub ssrc: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Quantiser, where it is known.
    pub qp: Option<u32>,
}

/// Change of a candidate pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairChange {
    /// Added.
    Added,
    /// Updated.
    Updated,
    /// Destroyed.
    Destroyed,
    /// Selected to carry the media.
    Selected,
}

/// Kind of network below a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkType {
    /// Cable.
    Ethernet,
    /// Wi-Fi.
    Wifi,
    /// Mobile network.
    Cellular,
    /// A tunnel.
    Vpn,
    /// Inside the machine.
    Loopback,
    /// Not told.
    Unknown,
}

/// A change of a candidate pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CandidatePair {
    /// When it was logged.
    pub at: Timestamp,
    /// Number or name of the pair.
    pub pair: String,
    /// The change.
    pub change: PairChange,
    /// Network of the local candidate.
    pub network: NetworkType,
}

/// Kind of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StreamKind {
    /// Audio.
    Audio,
    /// Video.
    Video,
}

/// A configured stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// When it was configured.
    pub at: Timestamp,
    /// Whether this end sends or receives it.
    pub direction: Direction,
    /// Audio or video.
    pub kind: StreamKind,
    /// Its SSRC.
    pub ssrc: u32,
    /// SSRC of its retransmissions.
    pub rtx: Option<u32>,
}

/// Kind of an event without a table of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The log begins.
    Begin,
    /// The log ends.
    End,
    /// The route changed; connected or not, and overhead of a packet in bytes.
    Route {
        /// Whether there is one.
        connected: bool,
        /// Overhead of a packet, in bytes.
        overhead: u32,
    },
    /// State of DTLS, by its number in the event log.
    Dtls(u32),
    /// A description was applied that limits the rate: `b=AS` or `b=TIAS` of a media section, in bit/s; `None`: no limit.
    RemoteLimit(Option<u64>),
    /// Anything else that the application logged, by name.
    Application(String),
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The event.
    pub kind: EventKind,
}

/// One number of an object of `getStats()` over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Times and values, in order of the source. Truth values are 0 and 1.
    pub points: Vec<(Timestamp, f64)>,
    /// Times and texts, one for each change.
    pub texts: Vec<(Timestamp, String)>,
}

/// Traffic in a capture that is not of the call, in each 100 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherTraffic {
    /// Start of the 100 ms.
    pub at: Timestamp,
    /// Whether the captured host sent or received it.
    pub direction: Direction,
    /// Bytes of its IP packets.
    pub bytes: u64,
}

/// Where and why reading stopped before the end of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// Offset in the decompressed file, in bytes.
    pub offset: u64,
    /// The reason.
    pub why: String,
}
