//! Mean size of the media packets sent, for throughput equations.

use crate::cue::SentPacket;
use weir_units::DataSize;

/// Weight of a new packet.
const WEIGHT: f64 = 1.0 / 16.0;
/// Upper bound of a datagram's size.
const MAX_SIZE: u64 = 1 << 16;

/// Moving mean over media packets, excluding padding and repair. Zero before the first.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct MeanSize(f64);

impl MeanSize {
    pub(crate) fn on_packet(&mut self, packet: &SentPacket) {
        if packet.is_padding || packet.is_repair {
            return;
        }
        let size = packet.size.as_bytes().min(MAX_SIZE) as f64;
        self.0 += if self.0 == 0.0 { size } else { WEIGHT * (size - self.0) };
    }
    pub(crate) fn get(self) -> DataSize {
        DataSize::from_bytes(self.0 as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Timestamp;

    #[test]
    fn media_moves_the_mean_and_repair_does_not() {
        let packet = |bytes, is_repair| SentPacket {
            is_repair,
            ..SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(bytes))
        };
        let mut mean = MeanSize::default();
        mean.on_packet(&packet(1_000, false));
        mean.on_packet(&packet(5_000, true));
        assert_eq!(mean.get().as_bytes(), 1_000);
        // 1,000 + 600 / 16.
        mean.on_packet(&packet(1_600, false));
        assert_eq!(mean.get().as_bytes(), 1_037);
    }
}
