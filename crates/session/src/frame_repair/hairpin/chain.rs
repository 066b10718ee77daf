//! The Markov chain of Hairpin: packets missing before a round -> packets missing after it.
//!
//! Packets and repair packets of a round are lost independently with the path's loss rate. If at least as many packets arrive as there are
//! media packets, none is missing; otherwise those media packets are that were lost. The value of a state is the least expected
//! cost from there on: 1 if any packet is missing after the last round, and a small cost for each repair packet.

use std::collections::BTreeMap;

/// Rounds of a chain; more are taken as so many (the authors' `max_layer`).
const MOST_ROUNDS: usize = 15;
/// Packets of a chain; more are taken as so many.
pub(super) const MOST_PACKETS: usize = 55;
/// Loss rates are in per cent, up to this one.
const MOST_LOSS: u8 = 50;
/// Frames are taken as the next multiple of so many packets.
const FRAME_STEP: usize = 5;

/// The best numbers of repair packets, by chain as they are needed.
///
/// There are 51 loss rates and 11 sizes of frames at most, and each has 1,650 bytes.
#[derive(Debug)]
pub(super) struct Chains {
    cost: f64,
    solved: BTreeMap<(u8, u8), Vec<u16>>,
}

impl Chains {
    /// Chains with this cost of as many repair packets as a frame has packets.
    pub(super) fn new(cost: f64) -> Self {
        Self { cost, solved: BTreeMap::new() }
    }

    /// Repair packets for `packets` packets of a frame that are sent with so many rounds left, this one included.
    pub(super) fn repairs(&mut self, loss: f64, frame: usize, rounds: usize, packets: usize) -> u16 {
        let loss = (loss * 100.0).round().clamp(0.0, f64::from(MOST_LOSS)) as u8;
        let frame = frame.clamp(FRAME_STEP, MOST_PACKETS).next_multiple_of(FRAME_STEP);
        let (rounds, packets) = (rounds.clamp(1, MOST_ROUNDS), packets.clamp(1, MOST_PACKETS));
        let cost = self.cost;
        let solved =
            self.solved.entry((loss, frame as u8)).or_insert_with(|| solve(f64::from(loss) / 100.0, frame, cost));
        solved[(rounds - 1) * MOST_PACKETS + packets - 1]
    }
}

/// Repair packets that are tried for so many packets: shares of 0 to 1 by a twentieth, and 2 to 5.
fn choices(packets: usize) -> Vec<usize> {
    let shares = (0..20).map(|i| f64::from(i) * 0.05).chain((1..6).map(f64::from));
    // Halves go to the even number, as in the authors' table.
    let mut all: Vec<usize> = shares.map(|share| (share * packets as f64).round_ties_even() as usize).collect();
    all.dedup();
    all
}

/// The chances of 0 to `count` losses.
fn losses(count: usize, p: f64) -> Vec<f64> {
    let mut all = vec![0.0; count + 1];
    // By products, which are the same on every processor.
    all[0] = (0..count).fold(1.0, |chance, _| chance * (1.0 - p));
    for lost in 1..=count {
        all[lost] = all[lost - 1] * p / (1.0 - p) * (count - lost + 1) as f64 / lost as f64;
    }
    all
}

/// For each number of repair packets that is tried, the chances that 1, 2, ... packets are missing afterwards.
fn transitions(packets: usize, p: f64) -> Vec<(usize, Vec<f64>)> {
    let media = losses(packets, p);
    let of = |repairs: usize| {
        // The chance of so many or more lost repair packets.
        let mut tail = losses(repairs, p);
        for lost in (0..repairs).rev() {
            tail[lost] += tail[lost + 1];
        }
        let is_short = |missing: usize| match (repairs + 1).checked_sub(missing) {
            None | Some(0) => 1.0,
            Some(least) => tail.get(least).copied().unwrap_or(0.0),
        };
        (repairs, (1..=packets).map(|missing| media[missing] * is_short(missing)).collect())
    };
    choices(packets).into_iter().map(of).collect()
}

/// The best numbers of repair packets: by rounds left, then by packets.
fn solve(p: f64, frame: usize, cost: f64) -> Vec<u16> {
    let all: Vec<_> = (1..=MOST_PACKETS).map(|packets| transitions(packets, p)).collect();
    // The cost of a state with 1, 2, ... packets missing and no round left.
    let mut after = vec![1.0; MOST_PACKETS];
    let mut best = Vec::with_capacity(MOST_ROUNDS * MOST_PACKETS);
    for _ in 0..MOST_ROUNDS {
        let mut before = Vec::with_capacity(MOST_PACKETS);
        for tried in &all {
            let (mut least, mut repairs) = (f64::INFINITY, 0);
            for (count, missing) in tried {
                let later: f64 = missing.iter().zip(&after).map(|(chance, cost)| chance * cost).sum();
                let total = later + cost * *count as f64 / frame as f64;
                if total < least {
                    (least, repairs) = (total, *count);
                }
            }
            before.push(least);
            best.push(repairs as u16);
        }
        after = before;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_hand() {
        // Two packets and one repair packet: missing one is one media packet and the repair packet lost, or 2 (0.1 x 0.9) x 0.1;
        // missing both is both lost, whatever the repair packet does.
        let (_, missing) = transitions(2, 0.1).into_iter().find(|(repairs, _)| *repairs == 1).expect("one is tried");
        assert!((missing[0] - 0.018).abs() < 1e-12 && (missing[1] - 0.01).abs() < 1e-12, "{missing:?}");
        assert_eq!(choices(1), [0, 1, 2, 3, 4, 5]);
        assert_eq!(choices(10)[..4], [0, 1, 2, 3]);
        assert_eq!(transitions(3, 0.0).into_iter().map(|(_, m)| m.iter().sum::<f64>()).sum::<f64>(), 0.0);
    }

    #[test]
    fn one_packet_with_one_round_left_is_repeated_until_a_copy_costs_more_than_it_saves() {
        // A k-th copy saves 0.01^k x 0.99 and costs 1e-7 / 5: three are worth it, four (1e-8) are not.
        let mut chains = Chains::new(1e-7);
        assert_eq!(chains.repairs(0.01, 5, 1, 1), 3);
        // With a round to come a lost packet costs what its last round does, some 1e-7: no copy is worth it.
        assert_eq!(chains.repairs(0.01, 5, 2, 1), 0);
        assert_eq!(chains.repairs(0.0, 5, 1, 1), 0);
        assert_eq!(Chains::new(1.0).repairs(0.01, 5, 1, 1), 0);
    }

    /// Loss in per cent, packets of the frame, rounds left, packets sent, and the authors' repair packets: of
    /// `model/beta-array-rtx1-cap0-coeff1e-07.bin` in hkust-spark/hairpin, 48 entries drawn at random.
    const PUBLISHED: [(u8, usize, usize, usize, u16); 48] = [
        (1, 20, 1, 8, 5),
        (1, 20, 3, 34, 0),
        (1, 20, 4, 13, 0),
        (1, 40, 2, 1, 0),
        (1, 55, 1, 21, 7),
        (1, 55, 2, 8, 0),
        (2, 5, 1, 5, 5),
        (2, 40, 2, 1, 0),
        (2, 55, 4, 13, 0),
        (3, 10, 2, 55, 3),
        (3, 40, 6, 34, 0),
        (5, 5, 1, 55, 17),
        (5, 5, 3, 1, 0),
        (5, 20, 2, 8, 1),
        (5, 40, 2, 2, 1),
        (5, 55, 2, 13, 2),
        (8, 20, 1, 2, 8),
        (8, 20, 6, 2, 0),
        (8, 40, 1, 1, 5),
        (8, 40, 2, 8, 2),
        (8, 40, 6, 2, 0),
        (8, 40, 6, 13, 0),
        (8, 55, 4, 3, 0),
        (13, 5, 1, 3, 12),
        (13, 5, 3, 3, 0),
        (13, 5, 4, 3, 0),
        (13, 5, 6, 13, 0),
        (13, 10, 4, 13, 0),
        (13, 10, 6, 2, 0),
        (13, 10, 15, 8, 0),
        (13, 40, 3, 21, 0),
        (13, 40, 4, 13, 0),
        (13, 55, 1, 5, 15),
        (13, 55, 3, 55, 0),
        (20, 5, 1, 3, 12),
        (20, 20, 3, 3, 1),
        (20, 20, 3, 34, 0),
        (20, 20, 3, 55, 0),
        (20, 55, 15, 3, 0),
        (30, 10, 3, 21, 0),
        (30, 20, 2, 5, 10),
        (30, 40, 1, 13, 39),
        (30, 55, 1, 1, 5),
        (30, 55, 6, 21, 0),
        (30, 55, 15, 21, 0),
        (50, 10, 3, 5, 15),
        (50, 40, 1, 55, 165),
        (50, 55, 6, 5, 0),
    ];

    #[test]
    fn the_numbers_are_those_of_the_authors_table() {
        let mut chains = Chains::new(1e-7);
        for (percent, frame, rounds, packets, repairs) in PUBLISHED {
            let ours = chains.repairs(f64::from(percent) / 100.0, frame, rounds, packets);
            assert_eq!(ours, repairs, "{percent} %, {packets} of {frame} packets, {rounds} rounds");
        }
    }

    #[test]
    fn more_rounds_need_no_more_and_more_losses_no_fewer() {
        let mut chains = Chains::new(1e-7);
        for packets in [1, 5, 20, 55] {
            for percent in [1, 5, 20] {
                let loss = f64::from(percent) / 100.0;
                let by_rounds: Vec<u16> = (1..=15).map(|rounds| chains.repairs(loss, 20, rounds, packets)).collect();
                assert!(by_rounds.windows(2).all(|w| w[0] >= w[1]), "{packets} {percent}: {by_rounds:?}");
                assert!(chains.repairs(loss / 2.0, 20, 1, packets) <= by_rounds[0]);
            }
        }
        assert!(chains.solved.len() <= 51 * 11);
    }
}
