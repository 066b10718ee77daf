//! Bounds of the service.

use std::time::Duration;
use weir_units::TimeDelta;

/// Bounds on what others can make the service do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls at a time, those in rooms not counted.
    pub calls: usize,
    /// Rooms at a time.
    pub rooms: usize,
    /// Members of a room, at most [`MAX_MEMBERS`](crate::room::MAX_MEMBERS).
    pub members: usize,
    /// Calls that have ended and are still shown.
    pub ended: usize,
    /// Connections of HTTP at a time that have presented the token; one that has been idle gives way to a new one.
    pub connections: usize,
    /// And of those that have not. For one more, the one that is next by [`weir_admission`] is closed: of the address with
    /// most, the one longest without a request.
    pub strangers: usize,
    /// Longest body of a request, in bytes.
    pub body: usize,
    /// Time for the head of a request.
    pub head_time: Duration,
    /// Time for a request.
    pub request_time: Duration,
}

/// Connections without proof that an address has without giving way to those with fewer: with 512 places it takes a flood
/// from 256 addresses to get at them.
const USUAL: usize = 2;
/// Connections in use that a browser has at a time to one service.
const OF_A_BROWSER: usize = 8;
/// The page asks once a second at least.
const IN_USE: TimeDelta = TimeDelta::from_secs(3);

impl Limits {
    /// The bounds on connections. Behind a proxy all come from one address: there is no bound on one with the token.
    pub(super) fn admission(&self) -> weir_admission::Limits {
        weir_admission::Limits {
            strangers: self.strangers,
            usual: USUAL,
            proven: self.connections,
            per_source: self.connections,
            kept: OF_A_BROWSER,
            quiet: IN_USE,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 8,
            rooms: 4,
            members: crate::room::MAX_MEMBERS,
            ended: 8,
            connections: 64,
            // At 1,000 connections a second each has half a second.
            strangers: 512,
            body: crate::sdp::MAX_OFFER,
            head_time: Duration::from_secs(5),
            request_time: Duration::from_secs(10),
        }
    }
}
