//! Checks of an address from which a path's packets arrive, before the path is directed to it: as after a NAT's change of
//! mapping, or when the other end has moved to another network. A packet can be copied and sent on from a forged address;
//! the answer to a challenge can only be given by who receives there (RFC 9000, sections 8.2 and 9.3).

use super::Endpoint;
use super::handover::CHALLENGE;
use crate::multipath::MAX_PATHS;
use rand::RngExt;
use weir_units::{PathId, Timestamp};

/// Challenges that were sent to new addresses of paths, one a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressChecks {
    sent: [Option<[u8; 8]>; MAX_PATHS],
    answered: [bool; MAX_PATHS],
}

impl Endpoint {
    /// See [`PathMut::challenge_address`](super::PathMut::challenge_address).
    pub(super) fn challenge_address(&mut self, path: PathId, now: Timestamp, out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.is_multipath || path.index() >= self.path_count() {
            return false;
        }
        let nonce: [u8; 8] = self.rng.random();
        let checks = &mut self.paths.get_or_insert_default().address_checks;
        (checks.sent[path.index()], checks.answered[path.index()]) = (Some(nonce), false);
        self.write_check(path, CHALLENGE, &nonce, now, out);
        true
    }

    /// See [`PathMut::take_address_answer`](super::PathMut::take_address_answer).
    pub(super) fn take_address_answer(&mut self, path: PathId) -> bool {
        let answered = self.paths.as_mut().and_then(|p| p.address_checks.answered.get_mut(path.index()));
        answered.is_some_and(core::mem::take)
    }

    /// A response has arrived in a path's reports; returns whether it answers a challenge to an address.
    pub(super) fn on_address_answer(&mut self, path: usize, octets: [u8; 8]) -> bool {
        let Some(checks) = self.paths.as_mut().map(|p| &mut p.address_checks) else { return false };
        let Some(sent) = checks.sent.get_mut(path).filter(|sent| **sent == Some(octets)) else { return false };
        *sent = None;
        checks.answered[path] = true;
        true
    }
}
