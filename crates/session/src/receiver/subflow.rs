//! Reception of one subflow of a call with several paths.

use crate::rtcp::Heard;
use crate::statistics::{ReceiveStatistics, Sequenced};
use weir_units::{DataSize, Timestamp};

/// Statistics of a subflow by its own numbers, and what is to be reported of it.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub stats: ReceiveStatistics,
    clock_rate: u32,
    /// The last sender report on it.
    pub heard: Option<Heard>,
    /// RTP packets and bytes received.
    pub packets: u64,
    pub bytes: u64,
    /// Packets too late to be played, and their payload bytes since the last report.
    pub discarded: u64,
    discarded_bytes: u32,
    /// When its last packet arrived.
    pub last: Option<Timestamp>,
    /// The number of its last packet, unwrapped.
    number: u64,
}

impl Subflow {
    pub(crate) fn new(clock_rate: u32) -> Self {
        Self {
            stats: ReceiveStatistics::new(clock_rate),
            clock_rate,
            heard: None,
            packets: 0,
            bytes: 0,
            discarded: 0,
            discarded_bytes: 0,
            last: None,
            number: 0,
        }
    }
    pub(crate) const fn clock_rate(&self) -> u32 {
        self.clock_rate
    }
    /// The unwrapped number of the last packet.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// A packet with this number has arrived.
    pub(crate) fn on_packet(&mut self, sequence: u16, rtp_timestamp: u32, size: DataSize, now: Timestamp) {
        let Sequenced::Valid(number) = self.stats.on_sequence(sequence) else { return };
        self.stats.on_arrival(now, rtp_timestamp);
        self.number = number;
        self.packets += 1;
        self.bytes += size.as_bytes();
        self.last = Some(now);
    }
    /// A packet with this payload was too late to be played.
    pub(crate) fn on_discarded(&mut self, payload: DataSize) {
        self.discarded += 1;
        let bytes = u32::try_from(payload.as_bytes()).unwrap_or(u32::MAX);
        self.discarded_bytes = self.discarded_bytes.saturating_add(bytes);
    }
    /// Payload bytes discarded since the last call.
    pub(crate) fn take_discarded(&mut self) -> u32 {
        core::mem::take(&mut self.discarded_bytes)
    }
}
