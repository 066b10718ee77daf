//! A TCP segment, carried in packets.

use weir_units::{DataSize, Timestamp};

/// Bytes of an IPv4 header without options.
const IP_HEADER: u64 = 20;
/// Bytes of a TCP header without options.
const TCP_HEADER: u64 = 20;
/// Bytes that the timestamps option takes with its padding (RFC 7323, appendix A).
const TIMESTAMPS_OPTION: u64 = 12;
/// Bytes of a SACK option without its blocks, padded (RFC 2018, section 3), and of each block.
const SACK_OPTION: u64 = 4;
const SACK_BLOCK: u64 = 8;
/// Bytes of the options of a SYN: maximum segment size, SACK permitted, timestamps, window scale.
const SYN_OPTIONS: u64 = 20;

/// A range of bytes that has arrived out of order: `start` is its first byte, `end` the byte after its last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

/// A TCP segment: only its header fields, without data bytes.
///
/// Sequence numbers have 64 bits and do not wrap. Data flows in one direction, acknowledgements in the other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpSegment {
    /// First byte of data; on a SYN its sequence number.
    pub seq: u64,
    /// The next expected byte, if [`Self::is_ack`].
    pub ack: u64,
    /// The sender's clock (RFC 7323's TSval).
    pub timestamp: Timestamp,
    /// The clock reading that an acknowledgement echoes (TSecr).
    pub echo: Timestamp,
    /// The bytes that the receiver can take beyond `ack`.
    pub window: u64,
    /// Bytes of data; 0 on an acknowledgement.
    pub len: u32,
    /// Distinguishes the connections between two agents, as ports do.
    pub connection: u32,
    /// Accurate ECN: segments received with a CE mark, modulo 8 (the ACE field of RFC 9768, section 3.2.2).
    pub ace: u8,
    /// Number of blocks used in [`Self::sack`].
    pub sack_count: u8,
    /// Opens a connection.
    pub is_syn: bool,
    /// Acknowledges.
    pub is_ack: bool,
    /// Ends a transfer, and so is acknowledged at once.
    pub is_push: bool,
    /// ECN-Echo (RFC 3168, section 6.1; of the last segment with DCTCP, RFC 8257, section 3.2).
    pub is_ece: bool,
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub is_cwr: bool,
    /// Whether the segment has timestamps, which add to its header.
    pub has_timestamps: bool,
    /// Blocks received out of order, most recently changed first; before them a D-SACK block, if there is one.
    pub sack: [SackBlock; 3],
}

impl TcpSegment {
    /// The SACK blocks in use.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sack_count).min(self.sack.len())]
    }

    /// The D-SACK block, which reports a duplicate: the first block, if it is below the acknowledgement or a part of the
    /// second (RFC 2883, section 4).
    pub fn dsack(&self) -> Option<SackBlock> {
        let (first, others) = self.sack_blocks().split_first()?;
        let is_part = others.first().is_some_and(|second| second.start <= first.start && first.end <= second.end);
        (first.start < first.end && (first.end <= self.ack || is_part)).then_some(*first)
    }

    /// Size on the wire: 20 bytes of IPv4, 20 of TCP, the options (12 for timestamps, 4 and 8 per block for SACK; 20 on
    /// a SYN) and the data.
    #[inline]
    pub fn wire_size(&self) -> DataSize {
        let options = if self.is_syn {
            SYN_OPTIONS
        } else {
            let blocks = self.sack_blocks().len() as u64;
            let sack = if blocks > 0 { SACK_OPTION + SACK_BLOCK * blocks } else { 0 };
            sack + if self.has_timestamps { TIMESTAMPS_OPTION } else { 0 }
        };
        DataSize::from_bytes(IP_HEADER + TCP_HEADER + options + u64::from(self.len))
    }
}
