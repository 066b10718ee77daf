//! Checks of paths that have failed: a challenge at short intervals, so that a path that works again is used again soon.
//! Regular reports alone are seconds apart.

use super::Endpoint;
use super::handover::CHALLENGE;
use crate::datagram::Transmit;
use crate::multipath::{MAX_PATHS, PathSet};
use rand::RngExt;
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// Interval of the checks of a path that failed less than [`SOON`] ago, and of one that failed earlier (calibrated).
const INTERVAL: TimeDelta = TimeDelta::from_millis(250);
const LONG_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const SOON: TimeDelta = TimeDelta::from_secs(30);
/// Checks and their answers take at most this part of RTCP's bandwidth (calibrated: the rest is that of reports).
const SHARE: f64 = 0.25;
/// Bytes of a check, without UDP and IP headers: the headers of multipath RTCP and of its block, and an APP packet with
/// 8 octets.
const SIZE: u64 = 12 + 4 + 20;
/// Challenges that can still be answered.
const ANSWERABLE: usize = 8;

/// The checks of all paths that have failed.
#[derive(Clone, Debug, Default)]
pub(super) struct PathChecks {
    checked: PathSet,
    checks: [PathCheck; MAX_PATHS],
}

/// The checks of a path. The last octet of each challenge is its number.
#[derive(Clone, Copy, Debug, Default)]
struct PathCheck {
    nonce: [u8; 7],
    next: Timestamp,
    since: Timestamp,
    count: u8,
    /// When the last challenges were sent that were not answered, by their numbers.
    sent: [Option<Timestamp>; ANSWERABLE],
}

impl PathCheck {
    fn challenge(&mut self, now: Timestamp) -> [u8; 8] {
        let [a, b, c, d, e, f, g] = self.nonce;
        let octets = [a, b, c, d, e, f, g, self.count];
        self.sent[usize::from(self.count) % ANSWERABLE] = Some(now);
        self.count = self.count.wrapping_add(1);
        octets
    }

    /// When the challenge with these octets was sent, once, if it is among the last.
    fn take_sent(&mut self, octets: [u8; 8]) -> Option<Timestamp> {
        let number = octets[7];
        let age = self.count.wrapping_sub(number);
        let is_ours = octets[..7] == self.nonce && (1..=ANSWERABLE).contains(&usize::from(age));
        if is_ours { self.sent[usize::from(number) % ANSWERABLE].take() } else { None }
    }
}

impl PathChecks {
    /// When the next check is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.checked.iter().map(|p| self.checks[p.index()].next).min()
    }
}

impl Endpoint {
    /// Follows the failures of paths that the sender has noticed, if there are any.
    #[inline]
    pub(super) fn note_failures(&mut self, now: Timestamp) {
        let multipath = self.sender.as_mut().and_then(|s| s.multipath.as_mut());
        if multipath.is_some_and(|m| m.take_failed_changed()) {
            self.follow_failures(now);
        }
    }

    /// Begins to check the paths that have failed, and ends the checks of those that work again.
    #[inline(never)]
    pub(super) fn follow_failures(&mut self, now: Timestamp) {
        let multipath = self.sender.as_ref().and_then(|s| s.multipath.as_ref());
        let failed = multipath.map_or(PathSet::NONE, |m| m.failed());
        let checks = self.paths.get_or_insert_default().checks.get_or_insert_default();
        for path in failed.minus(checks.checked).iter() {
            let check = PathCheck { nonce: self.rng.random(), next: now, since: now, ..PathCheck::default() };
            checks.checks[path.index()] = check;
        }
        checks.checked = failed;
        self.share_rtcp();
        self.note_subflow_due();
    }

    /// RTCP's bandwidth is divided among the compounds about the whole call and all subflows' reports; checks have a
    /// part of it.
    pub(super) fn share_rtcp(&mut self) {
        let parts = 1 + self.path_count() as u32;
        let checks = self.paths.as_ref().and_then(|p| p.checks.as_ref()).is_some_and(|c| !c.checked.is_empty());
        self.timer.set_parts(if checks { (f64::from(parts) / (1.0 - SHARE)).ceil() as u32 } else { parts });
    }

    /// The next challenge on a failed path that is due.
    pub(super) fn poll_path_check(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let size = DataSize::from_bytes(SIZE + u64::from(self.config.header_overhead));
        let checks = self.paths.as_mut()?.checks.as_mut()?;
        let path = checks.checked.iter().find(|p| checks.checks[p.index()].next <= now)?;
        let count = checks.checked.len() as f64;
        let check = &mut checks.checks[path.index()];
        let interval = if now.saturating_since(check.since) < SOON { INTERVAL } else { LONG_INTERVAL };
        let bandwidth = self.timer.bandwidth() * SHARE;
        let least = TimeDelta::from_secs_f64(size.as_bits() as f64 * count / bandwidth.max(1.0));
        check.next = now + interval.max(least);
        let octets = check.challenge(now);
        self.note_subflow_due();
        Some(self.write_check(path, CHALLENGE, &octets, now, out))
    }

    /// A response has arrived in a path's reports; returns whether it answers a check of a failed path.
    pub(super) fn on_path_check_answer(&mut self, path: usize, octets: [u8; 8], now: Timestamp) -> bool {
        let checks = self.paths.as_mut().and_then(|p| p.checks.as_mut());
        let Some(checks) = checks.filter(|c| c.checked.contains(PathId::new(path as u8))) else {
            return false;
        };
        let Some(sent) = checks.checks[path].take_sent(octets) else { return false };
        if let Some(s) = &mut self.sender {
            s.on_path_answered(path, now.saturating_since(sent), now);
        }
        self.follow_failures(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_last_challenges_is_answered_once() {
        let mut check = PathCheck { nonce: [7; 7], count: 250, ..PathCheck::default() };
        let at = |i: i64| Timestamp::from_millis(i * 250);
        let sent: Vec<_> = (0..20).map(|i| check.challenge(at(i))).collect();
        assert_eq!(check.take_sent(sent[11]), None, "too old");
        for (octets, i) in sent.iter().zip(0..).skip(12) {
            assert_eq!(check.take_sent(*octets), Some(at(i)));
            assert_eq!(check.take_sent(*octets), None, "answered before");
        }
        let next = [7, 7, 7, 7, 7, 7, 7, check.count];
        assert_eq!(check.take_sent(next), None, "not sent yet");
        check.challenge(at(20));
        assert_eq!(check.take_sent([7, 7, 7, 7, 7, 7, 8, next[7]]), None, "guessed");
        assert_eq!(check.take_sent(next), Some(at(20)));
    }
}
