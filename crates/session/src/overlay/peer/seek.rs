//! The search for a parent in one tree.

use core::net::SocketAddr;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Addresses that wait to be asked, and those asked in one search: a hostile referral makes no search longer.
const MAX_WAITING: usize = 16;
const MAX_ASKED: usize = 48;
/// Wait for an answer: the longest round trip between two nodes of a continent, and as long again. Own choice.
const ANSWER: TimeDelta = TimeDelta::from_millis(250);
/// How often an address is asked.
const TRIES: u8 = 2;

/// A request under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub to: SocketAddr,
    pub cookie: u64,
    due: Timestamp,
    tries: u8,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Seek {
    waiting: VecDeque<SocketAddr>,
    seen: Vec<SocketAddr>,
    asked: Option<Asked>,
    /// When to begin again, since nobody was left to ask.
    again: Option<Timestamp>,
}

impl Seek {
    /// A search that does not ask this address.
    pub(super) fn avoiding(avoid: Option<SocketAddr>) -> Self {
        Self { seen: avoid.into_iter().collect(), ..Self::default() }
    }
    /// Adds an address to be asked after the others.
    pub(super) fn add(&mut self, address: SocketAddr) {
        if self.is_new(address) {
            self.waiting.push_back(address);
        }
    }
    /// Addresses that somebody who was asked knows: the first is asked next.
    pub(super) fn refer(&mut self, addresses: &[SocketAddr]) {
        for address in addresses.iter().rev() {
            if self.is_new(*address) {
                self.waiting.push_front(*address);
            }
        }
    }
    fn is_new(&mut self, address: SocketAddr) -> bool {
        if self.waiting.len() >= MAX_WAITING || self.seen.len() >= MAX_ASKED || self.seen.contains(&address) {
            return false;
        }
        self.seen.push(address);
        true
    }
    /// Whether the request under way is to this address.
    pub(super) fn asks(&self, from: SocketAddr) -> bool {
        self.asked.is_some_and(|a| a.to == from)
    }
    /// The next to ask now, if anybody is to be; `None` if an answer is awaited or nobody is left.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<Asked> {
        if let Some(asked) = &mut self.asked {
            if asked.due > now {
                return None;
            }
            if asked.tries < TRIES {
                (asked.tries, asked.due) = (asked.tries + 1, now + ANSWER);
                return Some(*asked);
            }
        }
        self.asked = self.waiting.pop_front().map(|to| Asked { to, cookie: 0, due: now + ANSWER, tries: 1 });
        self.asked
    }
    /// The one who was asked has answered and is no parent.
    pub(super) fn give_up_asked(&mut self) {
        self.asked = None;
    }
    /// A cookie: asked once more with it.
    pub(super) fn on_cookie(&mut self, from: SocketAddr, cookie: u64, now: Timestamp) -> Option<Asked> {
        let asked = self.asked.as_mut().filter(|a| a.to == from && a.cookie != cookie)?;
        (asked.cookie, asked.due) = (cookie, now + ANSWER);
        Some(*asked)
    }
    /// Whether nobody is asked or left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.asked.is_none() && self.waiting.is_empty()
    }
    /// Begins again at this time.
    pub(super) fn wait(&mut self, until: Timestamp) {
        self.again.get_or_insert(until);
    }
    /// Whether it is to begin again.
    pub(super) fn begins_again(&self, now: Timestamp) -> bool {
        self.again.is_some_and(|at| at <= now)
    }
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.asked.map(|a| a.due).or(self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(k: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, k], 5_004))
    }

    #[test]
    fn referrals_go_first_and_nobody_is_asked_again() {
        let (mut s, at) = (Seek::avoiding(Some(address(9))), Timestamp::from_millis);
        for k in [1, 2, 9] {
            s.add(address(k));
        }
        assert_eq!(s.next(at(0)).map(|a| a.to), Some(address(1)));
        assert_eq!(s.next(at(249)), None);
        assert_eq!(s.on_cookie(address(2), 5, at(50)), None, "it was not asked");
        assert_eq!(s.on_cookie(address(1), 5, at(50)).map(|a| a.cookie), Some(5));
        assert_eq!(s.on_cookie(address(1), 5, at(60)), None, "the same again");
        s.refer(&[address(3), address(1), address(4)]);
        s.give_up_asked();
        let order: Vec<_> = core::iter::from_fn(|| {
            let asked = s.next(at(100))?;
            s.give_up_asked();
            Some(asked.to)
        })
        .collect();
        assert_eq!(order, [3, 4, 2].map(address));
        assert!(s.is_exhausted());
    }

    #[test]
    fn an_address_is_asked_twice_and_a_search_is_bounded() {
        let (mut s, at) = (Seek::default(), Timestamp::from_millis);
        s.add(address(1));
        assert!(s.next(at(0)).is_some() && s.next(at(250)).is_some() && s.next(at(500)).is_none());
        let mut asked = 0;
        for k in 0..=255 {
            s.refer(&[address(k), SocketAddr::from(([198, 51, 100, k], 1))]);
            asked += u32::from(s.next(at(1_000 * i64::from(k) + 1_000)).is_some());
            s.give_up_asked();
        }
        assert!((40..=48).contains(&asked), "{asked}");
        assert!(s.waiting.len() <= MAX_WAITING && s.seen.len() <= MAX_ASKED);
    }
}
