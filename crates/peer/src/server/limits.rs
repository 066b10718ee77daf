//! Bounds of the service.

use std::time::Duration;

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
    /// Connections of HTTP at a time.
    pub connections: usize,
    /// Longest body of a request, in bytes.
    pub body: usize,
    /// Time for the head of a request.
    pub head_time: Duration,
    /// Time for a request.
    pub request_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 8,
            rooms: 4,
            members: crate::room::MAX_MEMBERS,
            ended: 8,
            connections: 64,
            body: crate::sdp::MAX_OFFER,
            head_time: Duration::from_secs(10),
            request_time: Duration::from_secs(10),
        }
    }
}
