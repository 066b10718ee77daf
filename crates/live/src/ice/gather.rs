//! Asking a STUN server for an address as it is seen from outside (RFC 8489, section 6.2.1).

use super::stun::{Answer, HEADER, TransactionId, binding_request, read_answer};
use std::net::SocketAddr;
use weir_units::{TimeDelta, Timestamp};

/// Time to the second request, doubled with each (section 6.2.1: RTO).
const FIRST_WAIT: TimeDelta = TimeDelta::from_millis(500);
/// Requests (Rc), and the wait after the last one in first waits (Rm).
const REQUESTS: u32 = 7;
const LAST_WAIT: i64 = 16;

/// A request to one STUN server from one socket, until it is answered or given up.
#[derive(Clone, Debug)]
pub struct Gather {
    server: SocketAddr,
    id: TransactionId,
    sent: u32,
    next: Timestamp,
    is_over: bool,
    mapped: Option<SocketAddr>,
}

impl Gather {
    /// Asks this server from now on. `id` must not be foreseeable: whoever knows it can forge the answer.
    pub const fn new(server: SocketAddr, id: TransactionId, now: Timestamp) -> Self {
        Self { server, id, sent: 0, next: now, is_over: false, mapped: None }
    }

    /// The server.
    pub const fn server(&self) -> SocketAddr {
        self.server
    }
    /// The address that it has seen.
    pub const fn mapped(&self) -> Option<SocketAddr> {
        self.mapped
    }
    /// Whether nothing more is to be expected.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes a datagram from this source; returns whether it was the awaited answer. An address at which no end can be, or of
    /// another family than the server's, is none.
    pub fn handle_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if self.is_over || from != self.server {
            return false;
        }
        let Some(answer) = read_answer(datagram, self.id) else { return false };
        self.is_over = true;
        if let Answer::Mapped(at) = answer {
            let fits = at.is_ipv4() == self.server.is_ipv4() && super::candidate::is_of_an_end(at);
            self.mapped = Some(at).filter(|_| fits);
        }
        true
    }

    /// When the next request is due; `None` if none is.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (!self.is_over).then_some(self.next)
    }

    /// The next request, if it is due, for the server.
    pub fn poll_transmit(&mut self, now: Timestamp) -> Option<[u8; HEADER]> {
        if self.is_over || now < self.next {
            return None;
        }
        if self.sent >= REQUESTS {
            self.is_over = true;
            return None;
        }
        self.sent += 1;
        let waits = if self.sent == REQUESTS { LAST_WAIT } else { 1 << (self.sent - 1) };
        self.next = now + FIRST_WAIT * waits;
        Some(binding_request(self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ice::stun::answer;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn requests_are_repeated_and_given_up() {
        let mut g = Gather::new("192.0.2.1:3478".parse().unwrap(), [3; 12], ms(0));
        let due: Vec<i64> = (0..60_000).filter(|t| g.poll_transmit(ms(*t)).is_some()).collect();
        // RFC 8489, section 6.2.1, for an RTO of 500 ms; it fails at 39,500 ms.
        assert_eq!(due, [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500]);
        assert!(g.is_over() && g.mapped().is_none() && g.poll_timeout().is_none());
    }

    #[test]
    fn only_the_servers_answer_counts_and_only_a_usable_address() {
        let server = "192.0.2.1:3478".parse().unwrap();
        let own: SocketAddr = "198.51.100.2:6000".parse().unwrap();
        let mut g = Gather::new(server, [3; 12], ms(0));
        let request = g.poll_transmit(ms(0)).expect("due");
        let good = answer(&request, own).expect("a request");
        assert!(!g.handle_datagram("192.0.2.9:3478".parse().unwrap(), &good), "from elsewhere");
        assert!(!g.handle_datagram(server, &request));
        assert!(g.handle_datagram(server, &good) && !g.handle_datagram(server, &good));
        assert_eq!((g.mapped(), g.poll_timeout()), (Some(own), None));
        for lie in ["0.0.0.0:9", "224.0.0.1:9", "255.255.255.255:9", "198.51.100.2:0", "[2001:db8::1]:9"] {
            let mut g = Gather::new(server, [3; 12], ms(0));
            let request = g.poll_transmit(ms(0)).expect("due");
            assert!(g.handle_datagram(server, &answer(&request, lie.parse().unwrap()).expect("a request")));
            assert_eq!(g.mapped(), None, "{lie}");
        }
    }
}
