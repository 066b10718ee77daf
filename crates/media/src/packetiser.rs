use weir_units::DataSize;

/// How a frame is split into several packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Split {
    /// Full payloads, and the remainder in the last.
    #[default]
    Full,
    /// As few payloads as with [`Split::Full`], of equal size to within a byte, larger ones first (as in libwebrtc, as
    /// of 2024).
    Even,
}

/// One packet's share of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// Its size, without headers.
    pub size: DataSize,
    /// Whether it is the first of its frame.
    pub start: bool,
    /// Whether it is the last of its frame (the marker bit of RFC 3550, section 5.1).
    pub marker: bool,
}

/// Splits frames into payloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packetiser {
    /// Largest payload; zero counts as one byte.
    pub max_payload: DataSize,
    /// How a frame is split.
    pub split: Split,
}

impl Default for Packetiser {
    /// Payloads of 1,000 bytes and the remainder.
    fn default() -> Self {
        Self { max_payload: DataSize::from_bytes(1_000), split: Split::Full }
    }
}

impl Packetiser {
    /// Number of packets for a frame; one for an empty frame.
    pub fn count(&self, frame: DataSize) -> u64 {
        frame.as_bytes().div_ceil(self.max_payload.as_bytes().max(1)).max(1)
    }

    /// The payloads of a frame, in order.
    pub fn split(&self, frame: DataSize) -> impl ExactSizeIterator<Item = Payload> + Clone + use<> {
        let (total, count) = (frame.as_bytes(), self.count(frame));
        let max = self.max_payload.as_bytes().max(1);
        let (each, more) = match self.split {
            Split::Full => (max, 0),
            Split::Even => (total / count, total % count),
        };
        // A frame of more than 2^32 packets is meaningless, but must not hang.
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(move |i| {
            let i = u64::from(i);
            let marker = i + 1 == count;
            let size = match more {
                0 if marker => total - (count - 1) * each,
                _ => each + u64::from(i < more),
            };
            Payload { size: DataSize::from_bytes(size), start: i == 0, marker }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(split: Split, frame: u64) -> Vec<u64> {
        let p = Packetiser { split, ..Packetiser::default() };
        p.split(DataSize::from_bytes(frame)).map(|p| p.size.as_bytes()).collect()
    }

    #[test]
    fn full_and_even_differ_in_the_rest() {
        assert_eq!(sizes(Split::Full, 2_300), [1_000, 1_000, 300]);
        assert_eq!(sizes(Split::Even, 2_300), [767, 767, 766]);
        assert_eq!(sizes(Split::Full, 2_000), [1_000, 1_000]);
        assert_eq!(sizes(Split::Even, 2_000), [1_000, 1_000]);
        assert_eq!(sizes(Split::Full, 0), [0]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_too_large(frame in 0u64..100_000, max in 0u64..2_000, even: bool) {
            let split = if even { Split::Even } else { Split::Full };
            let p = Packetiser { max_payload: DataSize::from_bytes(max), split };
            let size = DataSize::from_bytes(frame);
            let all: Vec<_> = p.split(size).collect();
            prop_assert_eq!(all.len() as u64, p.count(size));
            prop_assert_eq!(all.iter().map(|p| p.size).sum::<DataSize>(), size);
            prop_assert!(all.iter().all(|p| p.size.as_bytes() <= max.max(1)));
            prop_assert!(all.iter().enumerate().all(|(i, p)| (p.start, p.marker) == (i == 0, i + 1 == all.len())));
        }
    }
}
