//! Division of a stream's packets among trees.

/// How a stream's packets are divided among trees. The tree follows from the RTP header alone, so that every node
/// knows it, also of a packet that another tree's parent has repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Division {
    /// Packets in turn, by their sequence number. Each tree has the same rate.
    #[default]
    Packets,
    /// Frames in turn, by their RTP timestamp: the loss of a tree leaves the other trees' frames whole. Large frames, such
    /// as key frames, make one tree's rate exceed the others' for a while.
    Frames {
        /// Distance of frames in units of the RTP clock: 3,000 for video of 30 frames a second. Zero counts as 1.
        ticks: u32,
    },
}

impl Division {
    /// The tree, below `trees`, of a packet with this sequence number and timestamp. Where these numbers wrap, the turn
    /// may skip or repeat a tree once.
    pub fn tree(self, trees: u8, sequence: u16, timestamp: u32) -> u8 {
        let turn = match self {
            Self::Packets => u32::from(sequence),
            Self::Frames { ticks } => timestamp / ticks.max(1),
        };
        (turn % u32::from(trees.max(1))) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_turns() {
        let trees: Vec<u8> = (0..7).map(|s| Division::Packets.tree(3, s, 0)).collect();
        assert_eq!(trees, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(Division::Packets.tree(0, 9, 0), 0);
    }

    #[test]
    fn a_frame_s_packets_share_a_tree() {
        let frames = Division::Frames { ticks: 3_000 };
        let trees: Vec<u8> = (0..6u32).map(|p| frames.tree(2, p as u16, 700 + p / 2 * 3_000)).collect();
        assert_eq!(trees, [0, 0, 1, 1, 0, 0]);
        assert!(Division::Frames { ticks: 0 }.tree(5, 0, u32::MAX) < 5);
    }
}
