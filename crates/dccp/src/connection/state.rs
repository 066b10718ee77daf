use crate::packet::ResetCode;
use weir_units::{DataSize, Ecn, Seq48};

/// The role of an end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It has sent the Request.
    Client,
    /// It has answered the Request.
    Server,
}

/// The state of a connection (RFC 4340, section 8.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// There is none.
    Closed,
    /// A server waits for Requests.
    Listen,
    /// A client has sent a Request.
    Request,
    /// A server has answered one.
    Respond,
    /// The client has received the Response and waits for the server's next packet.
    PartOpen,
    /// Data flow.
    Open,
    /// The server has requested the client to close.
    CloseReq,
    /// This end closes.
    Closing,
    /// The connection has ended, and late packets are waited for.
    TimeWait,
}

impl State {
    /// All of them, in the order of the RFC.
    pub const ALL: [Self; 9] = [
        Self::Closed,
        Self::Listen,
        Self::Request,
        Self::Respond,
        Self::PartOpen,
        Self::Open,
        Self::CloseReq,
        Self::Closing,
        Self::TimeWait,
    ];
}

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// Both ends have closed.
    Closed,
    /// The other end has reset it; the code and Data 1 to 3.
    ResetByPeer(ResetCode, [u8; 3]),
    /// This end has reset it.
    Reset(ResetCode, [u8; 3]),
    /// The other end was silent for too long.
    TimedOut,
    /// The other end requires a CCID that this end does not have, or vice versa.
    NoCommonCcid,
}

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Why.
    pub reason: EndReason,
}

/// A datagram that has arrived by UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Its bytes, or those of its beginning; the DCCP header whole.
    pub bytes: &'a [u8],
    /// Bytes of data after them that are carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

/// A packet to be sent by UDP; its bytes are in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Bytes of data after the buffer's bytes that are carried as a length only.
    pub payload: u32,
    /// UDP payload in bytes: the buffer and the data after it.
    pub size: DataSize,
    /// Bytes of DCCP header and options at the start of the buffer; the application's follow.
    pub header: usize,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// Whether it must not be fragmented, regardless of its size (it probes the path's MTU).
    pub is_probe: bool,
}

/// A datagram for the application; its bytes are in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Bytes after them that are carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// The number of its packet, for [`Connection::report_dropped`](super::Connection::report_dropped).
    pub sequence: Seq48,
}

/// Why a datagram was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send queue is full: it would block.
    #[error("the send queue is full: send again when datagrams have left it")]
    WouldBlock,
    /// It is longer than a packet may be.
    #[error("a datagram of {} bytes is longer than the {} that fit a packet", size.as_bytes(), max.as_bytes())]
    TooLong {
        /// Its length.
        size: DataSize,
        /// The maximum.
        max: DataSize,
    },
    /// The connection has ended or is closing.
    #[error("the connection is closed")]
    Closed,
}

/// Counters of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets sent, of all types.
    pub packets_sent: u64,
    /// Of these with data.
    pub data_sent: u64,
    /// Bytes of data in these.
    pub data_bytes_sent: u64,
    /// Packets taken as valid, of all types.
    pub packets_received: u64,
    /// Of these with data.
    pub data_received: u64,
    /// Bytes of data in these.
    pub data_bytes_received: u64,
    /// Data packets reported lost by Ack Vectors; a CCID without them reports none.
    pub data_lost: u64,
    /// Data packets that Ack Vectors reported marked.
    pub data_marked: u64,
    /// Datagrams that are no DCCP packets.
    pub malformed: u64,
    /// Packets for other ports.
    pub strangers: u64,
    /// Packets with invalid sequence or acknowledgement numbers (RFC 4340, section 7.5).
    pub sequence_invalid: u64,
    /// Packets received twice, as far as they are remembered.
    pub duplicates: u64,
    /// Packets of types not expected in the state.
    pub unexpected: u64,
    /// Options that could not be read or were out of place.
    pub bad_options: u64,
    /// Features requested by the other end that this one does not know.
    pub unknown_features: u64,
    /// Syncs sent.
    pub syncs_sent: u64,
    /// Resets sent.
    pub resets_sent: u64,
    /// Syncs and Resets that were due but suppressed by their rate limit (RFC 4340, section 7.5.4 and 8.3.1).
    pub rate_limited: u64,
    /// Received data that the application did not take in time, or whose checksum was wrong.
    pub data_dropped: u64,
    /// Datagrams that congestion control delayed at least once.
    pub held_back: u64,
}
