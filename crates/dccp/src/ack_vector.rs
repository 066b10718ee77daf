//! Ack Vectors: the fate of each packet (RFC 4340, section 11.4).

mod buffer;

pub use buffer::{Arrival, Buffer};

use weir_units::Seq48;

/// Maximum bytes of runs in one option.
pub const MAX_RUNS: usize = 253;
/// Maximum packets in one run.
pub const MAX_RUN: u64 = 64;

/// The fate of a packet (RFC 4340, table 6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AckState {
    /// Received, unmarked.
    Received = 0,
    /// Received with an ECN congestion mark.
    Marked = 1,
    /// It has not arrived.
    NotReceived = 3,
}

impl AckState {
    /// The state of these two bits; `None` if they are reserved.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 3 {
            0 => Some(Self::Received),
            1 => Some(Self::Marked),
            3 => Some(Self::NotReceived),
            _ => None,
        }
    }
    /// Whether the packet was received.
    pub const fn came(self) -> bool {
        !matches!(self, Self::NotReceived)
    }
}

/// Packets in a row that fared alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckRun {
    /// The newest of them.
    pub newest: Seq48,
    /// How many, 1 to 64.
    pub len: u64,
    /// Their common fate.
    pub state: AckState,
}

impl AckRun {
    /// The oldest of them.
    pub const fn oldest(&self) -> Seq48 {
        self.newest.sub(self.len - 1)
    }
}

/// The runs of a vector on a packet that acknowledges `acknowledged`, newest first. Runs of the reserved state are
/// skipped.
pub fn runs(acknowledged: Seq48, bytes: &[u8]) -> impl Iterator<Item = AckRun> + Clone + '_ {
    let mut newest = acknowledged;
    bytes.iter().filter_map(move |b| {
        let run = (newest, u64::from(b & 0x3f) + 1);
        newest = newest.sub(run.1);
        Some(AckRun { newest: run.0, len: run.1, state: AckState::from_bits(b >> 6)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 4340, section 11.4: 0-10 in the RFC's words, 14 packets from 10 down to -3 shifted by 100.
        let vector = [0x00, 0xc0, 0x00, 0xc4, 0x05];
        let all: Vec<_> = runs(Seq48::new(110), &vector).map(|r| (r.oldest().get(), r.newest.get(), r.state)).collect();
        use AckState::{NotReceived as N, Received as R};
        assert_eq!(all, [(110, 110, R), (109, 109, N), (108, 108, R), (103, 107, N), (97, 102, R)]);
    }
}
