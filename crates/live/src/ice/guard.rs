//! Bounds on the effects of authentic messages. The other end's password proves that it wrote a message once, not who sends it
//! now or from where: integrity does not cover addresses, so that a copy of a check makes a new peer-reflexive candidate from
//! each address it comes from, each of which is then checked. And the other end itself may be hostile.

use super::stun::TransactionId;
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_units::{TimeDelta, Timestamp};

/// Addresses of the other end, or of this one as the other sees it, beside those that were announced. A NAT that assigns a port
/// to each destination makes a few.
const MAX_ADDRESSES: usize = 16;
/// Identifiers of the last requests.
const REMEMBERED: usize = 64;
/// Requests in one go, and the time for one more: an end checks every 50 ms at most (RFC 8445, section 14.2).
const BURST: i64 = 40;
const INTERVAL: TimeDelta = TimeDelta::from_millis(20);
/// Copies of a request that arrive within this time of its answer have waited with it, as in the buffer of a socket that was not
/// read: the one answer is enough. Below the 250 ms between retransmissions by the library, so that one after a lost answer is
/// answered (calibrated).
const TOGETHER: TimeDelta = TimeDelta::from_millis(100);

/// Why an authentic message was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The same request has come from another address.
    Replay,
    /// The same request from the same address, which was answered just before, or copies beyond their share of the rate:
    /// retransmissions that arrive together (RFC 8489, section 6.2.1), or somebody's copies.
    Repeated,
    /// More than checks can be.
    TooOften,
    /// More addresses than an end can have.
    TooMany,
}

/// A request that was taken, and when the last time.
#[derive(Clone, Copy, Debug)]
struct Request {
    id: TransactionId,
    from: SocketAddr,
    at: Timestamp,
}

/// The bounds of one agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    requests: VecDeque<Request>,
    sources: Vec<SocketAddr>,
    mapped: Vec<SocketAddr>,
    /// The time up to which requests were taken, one an interval; `None` before the first, when all of a burst is left, also
    /// if the clock begins with the call.
    taken: Option<Timestamp>,
}

fn admit(list: &mut Vec<SocketAddr>, address: SocketAddr) -> Result<(), Refusal> {
    if !list.contains(&address) {
        if list.len() >= MAX_ADDRESSES {
            return Err(Refusal::TooMany);
        }
        list.push(address);
    }
    Ok(())
}

impl Guard {
    /// An authentic request; `is_announced` if the other end has announced its source as a candidate.
    pub(super) fn on_request(
        &mut self,
        id: TransactionId,
        from: SocketAddr,
        is_announced: bool,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let known = self.requests.iter_mut().find(|known| known.id == id);
        if let Some(known) = &known {
            if known.from != from {
                return Err(Refusal::Replay);
            }
            if now.saturating_since(known.at) < TOGETHER {
                return Err(Refusal::Repeated);
            }
        }
        // Copies leave half of it to what is new.
        let reserve = if known.is_some() { INTERVAL * (BURST / 2) } else { TimeDelta::ZERO };
        let unused = now - INTERVAL * BURST;
        let taken = self.taken.map_or(unused, |taken| taken.max(unused)) + INTERVAL;
        if taken + reserve > now {
            return Err(if known.is_some() { Refusal::Repeated } else { Refusal::TooOften });
        }
        if !is_announced {
            admit(&mut self.sources, from)?;
        }
        self.taken = Some(taken);
        if let Some(known) = known {
            known.at = now;
            return Ok(());
        }
        if self.requests.len() >= REMEMBERED {
            self.requests.pop_front();
        }
        self.requests.push_back(Request { id, from, at: now });
        Ok(())
    }

    /// An authentic answer that says from where the check came; `is_own` if it is one of this end's candidates.
    pub(super) fn on_answer(&mut self, mapped: SocketAddr, is_own: bool) -> Result<(), Refusal> {
        if is_own { Ok(()) } else { admit(&mut self.mapped, mapped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }
    fn id(n: u32) -> TransactionId {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&n.to_be_bytes());
        id
    }

    #[test]
    fn a_copy_from_elsewhere_is_refused_and_a_repetition_is_not() {
        let mut g = Guard::default();
        let now = Timestamp::from_secs(9);
        assert_eq!(g.on_request(id(1), at(1), true, now), Ok(()));
        // A retransmission after its answer was lost.
        assert_eq!(g.on_request(id(1), at(1), true, now + TimeDelta::from_millis(250)), Ok(()));
        assert_eq!(g.on_request(id(1), at(2), true, now), Err(Refusal::Replay));
        assert_eq!(g.on_request(id(2), at(2), true, now), Ok(()));
    }

    #[test]
    fn retransmissions_that_arrive_together_leave_the_rate_to_others() {
        let mut g = Guard::default();
        // The clock begins with the call.
        let now = Timestamp::ZERO;
        // Thirty checks of a second in which nobody read the socket, each with three copies.
        for n in 0..30 {
            assert_eq!(g.on_request(id(n), at(1), true, now), Ok(()), "{n}");
            for _ in 0..3 {
                assert_eq!(g.on_request(id(n), at(1), true, now), Err(Refusal::Repeated), "{n}");
            }
        }
        // Somebody's copies take no more than half of the rate, whatever their pace.
        let later = |n: i64| now + TimeDelta::from_secs(2) + TimeDelta::from_millis(n);
        let taken = (0..1_000).filter(|n| g.on_request(id(*n as u32 % 30), at(1), true, later(*n)).is_ok()).count();
        assert!((20..=70).contains(&taken), "{taken}");
        let new = (0..20).filter(|n| g.on_request(id(100 + n), at(1), true, later(1_000)).is_ok()).count();
        assert_eq!(new, 20);
    }

    #[test]
    fn requests_have_a_rate_and_addresses_a_number() {
        let mut g = Guard::default();
        let now = Timestamp::from_secs(9);
        let taken = (0..1_000).filter(|n| g.on_request(id(*n), at(1), true, now).is_ok()).count();
        assert_eq!(taken, 40);
        let second = (0..1_000u32).filter(|n| {
            let at_ms = now + TimeDelta::from_millis(i64::from(*n) + 1);
            g.on_request(id(5_000 + n), at(1), true, at_ms).is_ok()
        });
        assert_eq!(second.count(), 50);
        let mut g = Guard::default();
        let new = (0..1_000u16).filter(|n| {
            let later = now + TimeDelta::from_secs(i64::from(*n));
            g.on_request(id(9_000 + u32::from(*n)), at(100 + n), false, later).is_ok()
        });
        assert_eq!(new.count(), 16);
        assert_eq!((0..100).filter(|n| g.on_answer(at(*n), false).is_ok()).count(), 16);
        assert_eq!(g.on_answer(at(99), true), Ok(()));
        assert!(g.requests.len() <= REMEMBERED);
    }
}
