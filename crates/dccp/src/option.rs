//! Options (RFC 4340, section 5.8) and the numbers of features (section 6.4).

mod read;
mod time;
mod write;

pub use read::{BadOption, Entries, Entry, OptionFault, OptionIter, Options};
pub use time::{from_ticks, ticks, timestamp};

use crate::packet_type::PacketType;

/// Features, by number (RFC 4340, table 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FeatureNumber(pub u8);

impl FeatureNumber {
    /// Congestion Control ID.
    pub const CCID: Self = Self(1);
    /// Allow Short Sequence Numbers.
    pub const ALLOW_SHORT_SEQUENCE_NUMBERS: Self = Self(2);
    /// Sequence Window.
    pub const SEQUENCE_WINDOW: Self = Self(3);
    /// ECN Incapable.
    pub const ECN_INCAPABLE: Self = Self(4);
    /// Ack Ratio.
    pub const ACK_RATIO: Self = Self(5);
    /// Send Ack Vector.
    pub const SEND_ACK_VECTOR: Self = Self(6);
    /// Send NDP Count.
    pub const SEND_NDP_COUNT: Self = Self(7);
    /// Minimum Checksum Coverage.
    pub const MINIMUM_CHECKSUM_COVERAGE: Self = Self(8);
    /// Check Data Checksum.
    pub const CHECK_DATA_CHECKSUM: Self = Self(9);
    /// Send Loss Event Rate, of CCID 3 (RFC 4342, section 8.4).
    pub const SEND_LOSS_EVENT_RATE: Self = Self(192);
}

/// One option, borrowed from its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DccpOption<'a> {
    /// The next option must be understood.
    Mandatory,
    /// The receiver cannot keep up (RFC 4340, section 11.6).
    SlowReceiver,
    /// Requests a change of a feature located at its sender; values in order of preference. Without values it is
    /// invalid, and answered as such (RFC 4340, section 6.6.8).
    ChangeL(FeatureNumber, &'a [u8]),
    /// A feature located at its sender has changed; the value, then preferences. Empty if the feature is unknown.
    ConfirmL(FeatureNumber, &'a [u8]),
    /// A feature located at its receiver is to change; as [`Self::ChangeL`].
    ChangeR(FeatureNumber, &'a [u8]),
    /// A feature located at its receiver has changed; as [`Self::ConfirmL`].
    ConfirmR(FeatureNumber, &'a [u8]),
    /// A server's state that the client has to return (RFC 4340, section 8.1.4), at most 253 bytes; there may be
    /// several.
    InitCookie(&'a [u8]),
    /// Packets without data just before this one, below 2^48 (RFC 4340, section 7.7).
    NdpCount(u64),
    /// The fate of packets, newest first, one byte per run (RFC 4340, section 11.4), and the ECN nonce echo. A second
    /// one continues the first.
    AckVector {
        /// The nonce echo.
        nonce: bool,
        /// The runs.
        runs: &'a [u8],
    },
    /// Packets whose data was dropped after their headers were processed: blocks, for [`crate::data_dropped`]
    /// (RFC 4340, section 11.7). A second one continues the first.
    DataDropped(&'a [u8]),
    /// The sender's time in units of 10 us (RFC 4340, section 13.1).
    Timestamp(u32),
    /// An echoed timestamp, and how long it was held in units of 10 us (section 13.3).
    TimestampEcho {
        /// The timestamp.
        echo: u32,
        /// The hold time; zero if absent.
        elapsed: u32,
    },
    /// Time from the packet acknowledged to this one, in units of 10 us (section 13.2).
    ElapsedTime(u32),
    /// CRC-32c of the application data (RFC 4340, section 9.3): see [`crate::packet::data_checksum`].
    DataChecksum(u32),
    /// An option of a CCID: 128 to 191 are for the half-connection's receiver, 192 to 255 for its sender.
    Ccid {
        /// Its number, 128 and above.
        number: u8,
        /// Its data.
        data: &'a [u8],
    },
    /// One that has no meaning here, Mobility's among them (RFC 4340, section 5.8: ignored).
    Unknown {
        /// Its number.
        number: u8,
        /// Its data.
        data: &'a [u8],
    },
}

const PADDING: u8 = 0;
const MANDATORY: u8 = 1;
const SLOW_RECEIVER: u8 = 2;
const CHANGE_L: u8 = 32;
const CONFIRM_L: u8 = 33;
const CHANGE_R: u8 = 34;
const CONFIRM_R: u8 = 35;
const INIT_COOKIE: u8 = 36;
const NDP_COUNT: u8 = 37;
const ACK_VECTOR_0: u8 = 38;
const ACK_VECTOR_1: u8 = 39;
const DATA_DROPPED: u8 = 40;
const TIMESTAMP: u8 = 41;
const TIMESTAMP_ECHO: u8 = 42;
const ELAPSED_TIME: u8 = 43;
const DATA_CHECKSUM: u8 = 44;
/// Numbers below it are one byte long.
const FIRST_LONG: u8 = 32;
const FIRST_CCID: u8 = 128;

/// Maximum bytes of an option's data: what its length byte can express, minus number and length.
pub const MAX_DATA: usize = 253;
/// Maximum of NDP Count, in six bytes.
pub const MAX_NDP_COUNT: u64 = (1 << 48) - 1;

/// Whether an option of this number is permitted in a packet of this type. Otherwise it is ignored on receipt:
/// RFC 4340, table 3, for Data, and its sections 6.6.1, 8.1.4, 11.4, 11.7 and 13.2 for options about an acknowledgement
/// number. CCIDs have their own rules for their options, from 128 up: those that are defined are ignored on Data
/// (RFC 4342 and RFC 5622, section 8).
pub const fn is_permitted(number: u8, on: PacketType) -> bool {
    match number {
        MANDATORY | CHANGE_L | CHANGE_R => !matches!(on, PacketType::Data),
        CONFIRM_L | CONFIRM_R | INIT_COOKIE | ACK_VECTOR_0 | ACK_VECTOR_1 | DATA_DROPPED | ELAPSED_TIME => {
            on.has_acknowledgement()
        }
        _ => true,
    }
}

impl DccpOption<'_> {
    /// Its number in the packet.
    pub const fn number(&self) -> u8 {
        match *self {
            Self::Mandatory => MANDATORY,
            Self::SlowReceiver => SLOW_RECEIVER,
            Self::ChangeL(..) => CHANGE_L,
            Self::ConfirmL(..) => CONFIRM_L,
            Self::ChangeR(..) => CHANGE_R,
            Self::ConfirmR(..) => CONFIRM_R,
            Self::InitCookie(_) => INIT_COOKIE,
            Self::NdpCount(_) => NDP_COUNT,
            Self::AckVector { nonce: false, .. } => ACK_VECTOR_0,
            Self::AckVector { nonce: true, .. } => ACK_VECTOR_1,
            Self::DataDropped(_) => DATA_DROPPED,
            Self::Timestamp(_) => TIMESTAMP,
            Self::TimestampEcho { .. } => TIMESTAMP_ECHO,
            Self::ElapsedTime(_) => ELAPSED_TIME,
            Self::DataChecksum(_) => DATA_CHECKSUM,
            Self::Ccid { number, .. } | Self::Unknown { number, .. } => number,
        }
    }
    /// See [`is_permitted`].
    pub const fn permitted_on(&self, packet_type: PacketType) -> bool {
        is_permitted(self.number(), packet_type)
    }
}

#[cfg(test)]
mod tests;
