//! The types of packets.

use core::fmt;

/// The type of a packet (RFC 4340, table 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PacketType {
    /// A client requests a connection.
    Request = 0,
    /// The server's reply to it.
    Response = 1,
    /// Application data without acknowledgement.
    Data = 2,
    /// An acknowledgement without data.
    Ack = 3,
    /// Both.
    DataAck = 4,
    /// The server requests the client to close.
    CloseReq = 5,
    /// One end closes.
    Close = 6,
    /// The connection is terminated.
    Reset = 7,
    /// Tests whether numbers are current (RFC 4340, section 7.5.4).
    Sync = 8,
    /// The reply to it.
    SyncAck = 9,
}

impl PacketType {
    /// All of them, by number.
    pub const ALL: [Self; 10] = [
        Self::Request,
        Self::Response,
        Self::Data,
        Self::Ack,
        Self::DataAck,
        Self::CloseReq,
        Self::Close,
        Self::Reset,
        Self::Sync,
        Self::SyncAck,
    ];
    /// The type of this number; `None` if it is reserved.
    pub fn from_number(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n)).copied()
    }
    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
    /// Whether it has an acknowledgement number.
    pub const fn has_acknowledgement(self) -> bool {
        !matches!(self, Self::Request | Self::Data)
    }
    /// Whether it may have 24-bit sequence numbers.
    pub const fn may_be_short(self) -> bool {
        matches!(self, Self::Data | Self::Ack | Self::DataAck)
    }
    /// Whether the bytes after its options are the application's (RFC 4340, sections 5.2 to 5.7): error text of a Reset
    /// is not. On a Request or a Response, no bytes are no data; on the others they are an empty datagram
    /// (section 5.4).
    pub const fn may_carry_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }
    /// Whether it always carries a datagram of the application's, be it one of no bytes.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::DataAck)
    }
    /// Whether it is a non-data packet, counted by NDP Count (RFC 4340, section 7.7). Requests and Responses are not,
    /// with or without data.
    pub const fn is_non_data(self) -> bool {
        !self.may_carry_data()
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DCCP-{self:?}")
    }
}
