//! Congestion control of a half-connection, by its number (RFC 4340, section 10).
//!
//! Data is sent from the half-connection's sender to its receiver, acknowledgements in the other direction. A CCID has
//! a half at each end: [`CcidSender`] decides when data may be sent, [`CcidReceiver`] when and with what to
//! acknowledge. The connection implements what all of them share: headers, features, Ack Vectors, timestamps.
//!
//! DCCP's TFRC and `cc`'s share their numbers: X, X_recv_set and loss intervals are `cc::tfrc`'s. CCIDs find loss
//! events by window counters at the receiver, `cc` by arrival times at the sender. CUBIC's window is `cc::cubic`'s, in
//! segments; the simulator's TCP rounds it to bytes, CCID 5 to packets.
//!
//! The video CCID has an experimental number (248) and is used only on request. CCID 5 (CUBIC) has no assigned number
//! either; 5 is that of its Linux draft.

mod registry;

pub use registry::{Registry, Requirements, Setup, Spec};

use crate::option::Options;
use crate::packet::{PacketType, PacketWriter};
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

/// Whether data may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// A packet may be sent now.
    Now,
    /// One may be sent at this time if no event occurs before.
    At(Timestamp),
    /// Only an acknowledgement or a timeout can permit sending.
    Blocked,
}

/// A packet just sent, of any type: all consume a sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentPacket {
    /// When.
    pub now: Timestamp,
    /// Its number.
    pub sequence: Seq48,
    /// Its type.
    pub packet_type: PacketType,
    /// Application data in bytes.
    pub data: DataSize,
    /// DCCP header and options in bytes.
    pub header: DataSize,
    /// ECN field.
    pub ecn: Ecn,
    /// Bytes of application data in the send queue behind it; if zero, the application limits the rate.
    pub queued: DataSize,
}

/// A packet of the half-connection's receiver that acknowledges, as seen by the sender.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    /// Its arrival time.
    pub now: Timestamp,
    /// Its own number, in the numbers of the other direction. Gaps indicate lost acknowledgements.
    pub sequence: Seq48,
    /// Its type.
    pub packet_type: PacketType,
    /// Packets without data just before it (NDP Count), if present.
    pub ndp_count: Option<u64>,
    /// The packet acknowledged.
    pub acknowledged: Seq48,
    /// The runs of all its Ack Vector options, for [`crate::ack_vector::runs`]; empty if there is none.
    pub ack_vector: &'a [u8],
    /// How long the receiver held the acknowledged packet, if it reports that.
    pub elapsed: Option<TimeDelta>,
    /// Round-trip time by an echoed timestamp, the hold time subtracted.
    pub echo_rtt: Option<TimeDelta>,
    /// The data of its Data Dropped options; empty if there is none.
    pub data_dropped: &'a [u8],
    /// Whether the receiver signals that it is slow (RFC 4340, section 11.6): the rate must not increase for a round
    /// trip.
    pub slow_receiver: bool,
    /// ECN field of the acknowledgement itself.
    pub ecn: Ecn,
    /// All options; those of CCIDs from 192 up are the receiver half's.
    pub options: Options<'a>,
}

/// A packet that has arrived to the half-connection's receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// When.
    pub now: Timestamp,
    /// Its number.
    pub sequence: Seq48,
    /// Its type.
    pub packet_type: PacketType,
    /// Application data in bytes.
    pub data: DataSize,
    /// ECN field.
    pub ecn: Ecn,
    /// Four bits of the sender's CCID.
    pub ccval: u8,
    /// Packets without data just before it, if present.
    pub ndp_count: Option<u64>,
    /// Round-trip time known to the other half of this end, if any.
    pub rtt: Option<TimeDelta>,
    /// All options; those of CCIDs from 128 to 191 are the sender half's.
    pub options: Options<'a>,
}

/// A chunk of data that the application submits as a whole before the next one: a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// When it was submitted.
    pub now: Timestamp,
    /// Its bytes.
    pub size: DataSize,
    /// Time until the next.
    pub interval: TimeDelta,
}

/// The half at the data's sender. As with [`weir_cc::Controller`], no input makes it panic; times never decrease.
pub trait CcidSender {
    /// Whether a packet with this much data may be sent at `now`. A pure query.
    fn may_send(&self, now: Timestamp, data: DataSize) -> Permission;
    /// A packet was sent; this includes acknowledgements without data, which congestion control does not hold back.
    fn on_packet_sent(&mut self, sent: &SentPacket);
    /// A valid acknowledgement has arrived.
    fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>);
    /// A valid packet of the other end that does not acknowledge (DCCP-Data) was received, so that its number is not
    /// taken for a lost acknowledgement's.
    fn on_unacknowledging_packet(&mut self, now: Timestamp, sequence: Seq48, ndp_count: Option<u64>) {
        let _ = (now, sequence, ndp_count);
    }
    /// When to call [`Self::on_timeout`], if no event occurs before.
    fn poll_timeout(&self) -> Option<Timestamp>;
    /// The deadline has passed; afterwards `poll_timeout` is later.
    fn on_timeout(&mut self, now: Timestamp);
    /// CCVal of the packet sent now.
    fn ccval(&mut self, now: Timestamp) -> u8 {
        let _ = now;
        0
    }
    /// The Ack Ratio that this half requests from the other end; `None` leaves it unchanged (RFC 4340, section 11.3).
    fn ack_ratio(&self) -> Option<u16> {
        None
    }
    /// Whether the next data packet has to acknowledge, so that the receiver can clear its Ack Vector (RFC 4341,
    /// section 6.1.1).
    fn wants_ack_of_ack(&self, now: Timestamp) -> bool {
        let _ = now;
        false
    }
    /// Nothing was received or sent for a while: memory needed only by a burst may be released.
    fn on_idle(&mut self) {}
    /// A chunk was submitted. Most CCIDs ignore it.
    fn on_chunk(&mut self, chunk: &Chunk) {
        let _ = chunk;
    }
    /// The current permitted rate of application data: CCID 2's window by its round-trip time, CCID 3's X. `None` if it
    /// is not known yet.
    fn rate(&self) -> Option<DataRate>;
    /// The same, smoothed for an application to follow.
    fn smoothed_rate(&self) -> Option<DataRate>;
    /// Round-trip time, smoothed.
    fn rtt(&self) -> Option<TimeDelta>;
    /// Internals by name, for plots, as [`weir_cc::Controller::metrics`].
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}

/// The half at the data's receiver.
pub trait CcidReceiver {
    /// A packet has arrived.
    fn on_packet(&mut self, packet: &ReceivedPacket<'_>);
    /// Whether an acknowledgement is due at `now`. A pure query.
    fn wants_ack(&self, now: Timestamp) -> bool;
    /// When one will be due, if no event occurs before; `None` if only a packet can make one due.
    fn poll_timeout(&self) -> Option<Timestamp>;
    /// Writes this half's options into an acknowledgement (with or without data) sent now. The connection adds the Ack
    /// Vector.
    fn write_options(&mut self, now: Timestamp, out: &mut PacketWriter<'_>);
    /// An acknowledgement was sent, so none is due.
    fn on_ack_sent(&mut self, now: Timestamp);
    /// Ack Ratio was negotiated to this.
    fn on_ack_ratio(&mut self, ratio: u16) {
        let _ = ratio;
    }
    /// Internals by name, for plots.
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}

macro_rules! ccids {
    ($($variant:ident => $module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Any CCID's half at the data's sender: a built-in one by enum, a custom one by trait object.
        #[non_exhaustive]
        pub enum Sender {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant(Box<$module::Sender>),)*
            /// A custom CCID.
            Custom(Box<dyn CcidSender + Send>),
        }
        /// Any CCID's half at the data's receiver.
        #[non_exhaustive]
        pub enum Receiver {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant(Box<$module::Receiver>),)*
            /// A custom CCID.
            Custom(Box<dyn CcidReceiver + Send>),
        }
        macro_rules! sender {
            ($self:ident, $c:ident => $call:expr) => {
                match $self { $(Self::$variant($c) => $call,)* Self::Custom($c) => $call }
            };
        }
        macro_rules! receiver {
            ($self:ident, $c:ident => $call:expr) => {
                match $self { $(Self::$variant($c) => $call,)* Self::Custom($c) => $call }
            };
        }
        impl CcidSender for Sender {
            fn may_send(&self, now: Timestamp, data: DataSize) -> Permission { sender!(self, c => c.may_send(now, data)) }
            fn on_packet_sent(&mut self, sent: &SentPacket) { sender!(self, c => c.on_packet_sent(sent)) }
            fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>) { sender!(self, c => c.on_acknowledgement(ack)) }
            fn on_unacknowledging_packet(&mut self, now: Timestamp, sequence: Seq48, ndp_count: Option<u64>) {
                sender!(self, c => c.on_unacknowledging_packet(now, sequence, ndp_count))
            }
            fn poll_timeout(&self) -> Option<Timestamp> { sender!(self, c => c.poll_timeout()) }
            fn on_timeout(&mut self, now: Timestamp) { sender!(self, c => c.on_timeout(now)) }
            fn ccval(&mut self, now: Timestamp) -> u8 { sender!(self, c => c.ccval(now)) }
            fn ack_ratio(&self) -> Option<u16> { sender!(self, c => c.ack_ratio()) }
            fn wants_ack_of_ack(&self, now: Timestamp) -> bool { sender!(self, c => c.wants_ack_of_ack(now)) }
            fn on_idle(&mut self) { sender!(self, c => c.on_idle()) }
            fn on_chunk(&mut self, chunk: &Chunk) { sender!(self, c => c.on_chunk(chunk)) }
            fn rate(&self) -> Option<DataRate> { sender!(self, c => c.rate()) }
            fn smoothed_rate(&self) -> Option<DataRate> { sender!(self, c => c.smoothed_rate()) }
            fn rtt(&self) -> Option<TimeDelta> { sender!(self, c => c.rtt()) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { sender!(self, c => c.metrics(out)) }
        }
        impl CcidReceiver for Receiver {
            fn on_packet(&mut self, packet: &ReceivedPacket<'_>) { receiver!(self, c => c.on_packet(packet)) }
            fn wants_ack(&self, now: Timestamp) -> bool { receiver!(self, c => c.wants_ack(now)) }
            fn poll_timeout(&self) -> Option<Timestamp> { receiver!(self, c => c.poll_timeout()) }
            fn write_options(&mut self, now: Timestamp, out: &mut PacketWriter<'_>) { receiver!(self, c => c.write_options(now, out)) }
            fn on_ack_sent(&mut self, now: Timestamp) { receiver!(self, c => c.on_ack_sent(now)) }
            fn on_ack_ratio(&mut self, ratio: u16) { receiver!(self, c => c.on_ack_ratio(ratio)) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { receiver!(self, c => c.metrics(out)) }
        }
        /// The built-in CCIDs, by number.
        fn builtin() -> Vec<Spec> {
            vec![$($module::spec()),*]
        }
    };
}

// One line a CCID: the variant and the module, which has `Sender`, `Receiver` and `fn spec() -> Spec`.
ccids! {
    Ccid2 => ccid2,
    Ccid5 => ccid5,
    Ccid3 => ccid3,
    Ccid4 => ccid4,
    Video => video,
}

impl core::fmt::Debug for Sender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sender")
    }
}

impl core::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Receiver")
    }
}
