//! Time that packets wait for each other, or for something else.

use super::bins::BIN;
use super::passage::{Fate, Passages};
use std::collections::BTreeMap;

/// Median over half seconds of the largest less the least delay that is left when the queue is taken away that the call's own packets make in
/// front of a link of this rate, in ms. Without a rate nothing is taken away.
pub(super) fn foreign(of: &Passages, range: (f64, f64), kbps: f64) -> f64 {
    let (mut wait, mut last) = (0.0, range.0);
    let mut left: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for p in of.between(range.0, range.1) {
        wait = f64::max(0.0, wait - (p.at - last) * 1e3);
        last = p.at;
        if kbps > 0.0 {
            wait += p.size * 8.0 / kbps;
        }
        if let Fate::Arrived(delay) = p.fate {
            let bin = left.entry((p.at / BIN) as usize).or_insert((f64::INFINITY, f64::NEG_INFINITY));
            *bin = (bin.0.min(delay - wait), bin.1.max(delay - wait));
        }
    }
    let mut spreads: Vec<f64> = left.into_values().map(|(least, most)| most - least).collect();
    spreads.sort_by(f64::total_cmp);
    spreads.get(spreads.len() / 2).copied().unwrap_or(0.0)
}

/// Longest time in which nothing arrived while a packet waited that then did, in ms, and how many were at least half as long. `floor` is the delay
/// of one that does not wait.
pub(super) fn gaps(of: &Passages, range: (f64, f64), floor: f64) -> (f64, usize) {
    let arrived = |p: &super::Passage| match p.fate {
        Fate::Arrived(delay) => Some((p.at * 1e3 + delay, delay)),
        _ => None,
    };
    let mut times: Vec<(f64, f64)> = of.between(range.0, range.1).iter().filter_map(arrived).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gaps = times.windows(2).map(|w| (w[1].0 - w[0].0).min(w[1].1 - floor));
    let longest = gaps.clone().fold(0.0, f64::max);
    (longest, gaps.filter(|gap| *gap >= 0.5 * longest).count())
}

#[cfg(test)]
mod tests {
    use super::super::Passage;
    use super::*;

    /// Frames of ten packets of 1,000 bytes at once, 20 a second, over a link of 4 Mbit/s, with what `more` adds to a frame's packets, in ms.
    fn call(more: impl Fn(usize) -> f64) -> Passages {
        let packet = |i: usize| {
            let fate = Fate::Arrived(20.0 + 2.0 * (i % 10 + 1) as f64 + more(i / 10));
            Passage { at: (i / 10) as f64 / 20.0, size: 1000.0, ssrc: 1, timestamp: 0, marker: false, fate }
        };
        Passages { packets: (0..1000).map(packet).collect(), ..Passages::default() }
    }

    #[test]
    fn a_queue_of_its_own_is_taken_away_and_delay_of_others_is_left() {
        let own = call(|_| 0.0);
        assert!((foreign(&own, (0.0, 5.0), 0.0) - 18.0).abs() < 1e-6);
        assert!(foreign(&own, (0.0, 5.0), 4_000.0) < 1e-6);
        let shaken = call(|frame| if frame % 3 == 0 { 30.0 } else { 0.0 });
        assert!((foreign(&shaken, (0.0, 5.0), 4_000.0) - 30.0).abs() < 1e-6);
    }

    #[test]
    fn a_gap_is_as_long_as_packets_wait_in_it() {
        // Nothing sent, nothing waits.
        assert!(gaps(&call(|_| 0.0), (0.0, 5.0), 20.0).0 <= 30.0);
        let stalled = call(|frame| if (20..24).contains(&frame) { (24 - frame) as f64 * 50.0 } else { 0.0 });
        let (longest, count) = gaps(&stalled, (0.0, 5.0), 20.0);
        assert!((180.0..=220.0).contains(&longest) && count == 1, "{longest} ms, {count}");
    }
}
