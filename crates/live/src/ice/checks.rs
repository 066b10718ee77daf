//! Connectivity checks as a measurement: round-trip time and loss of every pair of addresses, also of those that carry no
//! media (rtp-cc-thesis, section 6.2).
//!
//! A check that opens a NAT's filter is lost without the path being lossy, so that losses count only once a pair has
//! answered.

use super::stun::TransactionId;
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_units::{TimeDelta, Timestamp};

/// Checks that can still be answered. An agent sends 20 a second at most.
const MAX_OUTSTANDING: usize = 128;
/// Pairs that are measured.
const MAX_PAIRS: usize = 32;
/// A check without an answer for this time is lost (calibrated: above any usable path's round-trip time).
const LOST_AFTER: TimeDelta = TimeDelta::from_secs(3);
/// The last checks of which [`PairMeasure::loss`] is.
const HISTORY: u32 = 32;

/// The measurements by the checks of a pair of addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PairMeasure {
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// Checks sent.
    pub sent: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Those that were not, since the first that was.
    pub lost: u64,
    /// Round-trip time of the last one that was answered.
    pub rtt: Option<TimeDelta>,
    /// Smoothed with a weight of 1/8 (RFC 6298, section 2).
    pub smoothed_rtt: Option<TimeDelta>,
    /// When it was answered.
    pub last_answer: Option<Timestamp>,
    /// The last outcomes, the newest in the lowest bit; set for lost.
    outcomes: u32,
    known: u32,
}

impl PairMeasure {
    const fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            sent: 0,
            answered: 0,
            lost: 0,
            rtt: None,
            smoothed_rtt: None,
            last_answer: None,
            outcomes: 0,
            known: 0,
        }
    }

    /// Loss among the last 32 checks, 0 to 1; `None` before the first outcome. Answers may be lost as well, so that it is that of
    /// both directions.
    pub fn loss(&self) -> Option<f64> {
        (self.known > 0).then(|| f64::from(self.outcomes.count_ones()) / f64::from(self.known))
    }

    fn outcome(&mut self, is_lost: bool) {
        self.outcomes = self.outcomes << 1 | u32::from(is_lost);
        self.known = (self.known + 1).min(HISTORY);
    }
}

/// A check that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: TransactionId,
    pair: usize,
    at: Timestamp,
    counts: bool,
}

/// The checks of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    sent: VecDeque<Sent>,
    pairs: Vec<PairMeasure>,
}

impl Checks {
    pub(super) fn pairs(&self) -> &[PairMeasure] {
        &self.pairs
    }
    pub(super) fn pair(&self, local: SocketAddr, remote: SocketAddr) -> Option<&PairMeasure> {
        self.pairs.iter().find(|p| (p.local, p.remote) == (local, remote))
    }

    /// A check was sent. Beyond the bounds it is not measured, and its answer is refused.
    pub(super) fn on_sent(&mut self, id: TransactionId, local: SocketAddr, remote: SocketAddr, now: Timestamp) {
        let found = self.pairs.iter().position(|p| (p.local, p.remote) == (local, remote));
        let pair = match found {
            Some(pair) => pair,
            None if self.pairs.len() < MAX_PAIRS => {
                self.pairs.push(PairMeasure::new(local, remote));
                self.pairs.len() - 1
            }
            None => return,
        };
        if self.sent.len() >= MAX_OUTSTANDING {
            self.sent.pop_front();
        }
        let p = &mut self.pairs[pair];
        p.sent += 1;
        self.sent.push_back(Sent { id, pair, at: now, counts: p.answered > 0 });
    }

    /// Whether a check with this identifier was sent to the address from which the answer comes, and is not answered yet
    /// (RFC 8445, section 7.2.5.2.1).
    pub(super) fn awaits(&self, id: TransactionId, local: SocketAddr, from: SocketAddr) -> bool {
        self.sent.iter().any(|s| {
            let p = &self.pairs[s.pair];
            s.id == id && (p.local, p.remote) == (local, from)
        })
    }

    /// An authentic answer has arrived.
    pub(super) fn on_answer(&mut self, id: TransactionId, now: Timestamp) {
        let Some(at) = self.sent.iter().position(|s| s.id == id) else { return };
        let Some(sent) = self.sent.remove(at) else { return };
        let p = &mut self.pairs[sent.pair];
        let rtt = now.saturating_since(sent.at);
        p.answered += 1;
        p.outcome(false);
        p.rtt = Some(rtt);
        p.smoothed_rtt = Some(p.smoothed_rtt.map_or(rtt, |s| s + (rtt - s) / 8));
        p.last_answer = Some(now);
    }

    /// Checks that were not answered in time are lost.
    pub(super) fn expire(&mut self, now: Timestamp) {
        while let Some(sent) = self.sent.front().copied().filter(|s| now.saturating_since(s.at) >= LOST_AFTER) {
            self.sent.pop_front();
            if sent.counts {
                let p = &mut self.pairs[sent.pair];
                p.lost += 1;
                p.outcome(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }
    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn id(n: u64) -> TransactionId {
        let mut id = [0; 12];
        id[..8].copy_from_slice(&n.to_be_bytes());
        id
    }

    #[test]
    fn round_trips_and_losses_are_those_of_the_checks() {
        let mut c = Checks::default();
        // Two that open the NATs' filters, then one of four is lost.
        for n in 0..34u64 {
            let now = ms(n as i64 * 1_000);
            c.expire(now);
            c.on_sent(id(n), at(1), at(2), now);
            if n >= 2 && n % 4 != 3 {
                assert!(c.awaits(id(n), at(1), at(2)) && !c.awaits(id(n), at(1), at(3)));
                c.on_answer(id(n), now + TimeDelta::from_millis(40));
                assert!(!c.awaits(id(n), at(1), at(2)), "once");
            }
        }
        c.expire(ms(60_000));
        let p = c.pair(at(1), at(2)).expect("measured");
        assert_eq!((p.sent, p.answered, p.lost), (34, 24, 8));
        assert_eq!(p.loss(), Some(0.25));
        assert_eq!((p.rtt, p.smoothed_rtt), (Some(TimeDelta::from_millis(40)), Some(TimeDelta::from_millis(40))));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut c = Checks::default();
        for n in 0..10_000u64 {
            c.on_sent(id(n), at(1), at((n % 500) as u16), ms(0));
        }
        assert_eq!((c.pairs.len(), c.sent.len()), (MAX_PAIRS, MAX_OUTSTANDING));
    }
}
