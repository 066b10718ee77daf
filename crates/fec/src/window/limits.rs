//! Limits and counters of a repair window.

use weir_units::TimeDelta;

/// Limits of a repair window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowLimits {
    /// How long packets are kept after their arrival: more than the duration of a block, less than the playout delay. Once repair
    /// packets of sliding windows have been received, source packets are kept twice as long (RFC 8681, appendix D).
    pub age: TimeDelta,
    /// Source packets kept, including recovered ones, at most 65,536. Four times as many are remembered by number.
    pub packets: usize,
    /// Memory for bytes of source packets.
    pub source_bytes: usize,
    /// Most repair packets waiting for source packets.
    pub repairs: usize,
    /// Memory for bytes of repair packets.
    pub repair_bytes: usize,
    /// Longest symbol in bytes, including zeros.
    pub length: usize,
    /// Whether repair packets without missing source packets are compared with the packets that they protect, so that
    /// forged or corrupt ones are counted. This costs as much as a recovery for each.
    pub verify: bool,
}

impl Default for WindowLimits {
    /// A second, 1,024 source and 256 repair packets, 2 MiB and 512 KiB, and packets of UDP's maximum size with room
    /// for recovery fields.
    fn default() -> Self {
        Self {
            age: TimeDelta::from_secs(1),
            packets: 1_024,
            source_bytes: 2 << 20,
            repairs: 256,
            repair_bytes: 512 << 10,
            length: (1 << 16) + 64,
            verify: false,
        }
    }
}

/// Counters of a repair window.
///
/// Every repair packet is finally counted as `used`, `unused`, `late`, `duplicate`, `inconsistent`, `rejected` or
/// `expired`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RepairCounts {
    /// Source packets received.
    pub sources: u64,
    /// Source packets that had already arrived.
    pub duplicate_sources: u64,
    /// Source packets received after they were recovered.
    pub late_sources: u64,
    /// Late source packets that differ from the recovered one, because of a forged or corrupt packet.
    pub contradicted: u64,
    /// Source packets not kept: too long, too old, or no room.
    pub unkept_sources: u64,
    /// Repair packets received.
    pub repairs: u64,
    /// Repair packets from which a loss was recovered.
    pub used: u64,
    /// Repair packets without a missing source packet.
    pub unused: u64,
    /// Repair packets over packets some of which were no longer kept, or too far behind those of other windows.
    pub late: u64,
    /// Repair packets that had already arrived.
    pub duplicate: u64,
    /// Repair packets that contradict a source packet: forged or corrupt.
    pub inconsistent: u64,
    /// Repair packets too long, far ahead of all source packets, or with invalid numbers.
    pub rejected: u64,
    /// Repair packets that expired or were dropped for lack of room while waiting.
    pub expired: u64,
    /// Lost packets recovered.
    pub recovered: u64,
    /// Lost packets protected by a repair packet that were given up when it expired or arrived late. Losses whose
    /// repair packets were all lost are not counted.
    pub unrecoverable: u64,
}
