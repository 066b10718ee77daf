//! Hairpin: repair packets for each transmission of a frame's packets, by the rounds left before its deadline (Meng and others,
//! NSDI 2024), by the authors' repositories (hkust-spark/hairpin and ns3-sparkrtc), of which nothing is copied.
//!
//! The first transmission of a frame has few repair packets or none, since what is lost can be sent again; the last chance before the
//! deadline has many, which are cheap as they are only for the few packets that are missing. How many minimises the chance to miss
//! the deadline plus their cost, by [a Markov chain](chain) over the packets missing after each round.
//!
//! Differences from the authors' program:
//! - Packets are sent again when the receiver requests them (RFC 4585), not when acknowledgements have gaps or stop.
//! - Frames are not cut into smaller blocks, which their program can do and has switched off (`m_isBlockSizeOpt`).
//! - A repair packet is a random combination (RFC 8681) of the packets that are sent again, not a symbol of a block code.

mod chain;

use super::policy::{FramePolicy, Network, Order, SentFrame};
use chain::{Chains, MOST_PACKETS};
use std::collections::VecDeque;
use weir_fec::Coverage;
use weir_units::{TimeDelta, Timestamp};

/// Round trip before one is measured, as for requests (libwebrtc's `kDefaultRttMs`).
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(100);

/// Hairpin's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hairpin {
    /// Time after its capture by which a frame has to have arrived. Default: 100 ms, the authors' `DELAY_DDL_MS`.
    pub deadline: TimeDelta,
    /// Cost of as many repair packets as a frame has packets, in thousand millionths of that of a missed deadline. Default: 100, the authors'
    /// coefficient of 1e-7.
    pub cost: u32,
}

impl Hairpin {
    /// Greatest cost: that of a missed deadline.
    pub const MAX_COST: u32 = 1_000_000_000;

    pub(super) fn policy(self) -> HairpinPolicy {
        HairpinPolicy {
            deadline: self.deadline,
            chains: Chains::new(f64::from(self.cost.min(Self::MAX_COST)) / f64::from(Self::MAX_COST)),
        }
    }
}

impl Default for Hairpin {
    fn default() -> Self {
        Self { deadline: TimeDelta::from_millis(100), cost: 100 }
    }
}

#[derive(Debug)]
pub(super) struct HairpinPolicy {
    deadline: TimeDelta,
    chains: Chains,
}

impl HairpinPolicy {
    /// Repair packets for `packets` packets of a frame that are sent now, with its deadline counted from `since`.
    fn count(&mut self, frame: &SentFrame, since: Timestamp, packets: usize, network: &Network, now: Timestamp) -> u16 {
        let (mean, deviation) = network.round_trip().unwrap_or((FIRST_ROUND_TRIP, TimeDelta::ZERO));
        let left = self.deadline - now.saturating_since(since);
        if left < mean / 2 {
            return 0;
        }
        // As in the authors' program, which counts one round less than fits.
        let round = (mean + deviation).max(TimeDelta::from_millis(1));
        let rounds = (left - round).max(TimeDelta::ZERO).as_nanos() / round.as_nanos();
        self.chains.repairs(network.resent_share(now), frame.packets.len(), rounds as usize, packets)
    }
}

impl FramePolicy for HairpinPolicy {
    fn on_frame(
        &mut self,
        frames: &VecDeque<SentFrame>,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        let Some(frame) = frames.back() else { return };
        // As in the authors' program: less the time that its packets take, but not what they waited before. Repair packets for the wait
        // would make the next frame's longer.
        for block in blocks(&frame.packets) {
            let count = self.count(frame, frame.begun, block.len(), network, now);
            order(Order { packets: block, count });
        }
    }

    fn on_resent(
        &mut self,
        frame: &SentFrame,
        packets: &Coverage,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        for block in blocks(packets) {
            let count = self.count(frame, frame.captured, block.len(), network, now);
            order(Order { packets: block, count });
        }
    }
}

/// The packets in blocks of as many as the chain has.
fn blocks(packets: &Coverage) -> impl Iterator<Item = Coverage> {
    let mut all = packets.iter().peekable();
    std::iter::from_fn(move || {
        let mut block = Coverage::new(*all.peek()?);
        for packet in all.by_ref().take(MOST_PACKETS) {
            block.insert(packet);
        }
        Some(block)
    })
}
