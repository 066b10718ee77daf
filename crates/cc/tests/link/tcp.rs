//! Greedy TCP beside the flows.

use super::net::{Net, What};
use std::collections::VecDeque;
use weir_units::Timestamp;

/// A simplified greedy NewReno sender: slow start, congestion avoidance, one halving per window, selective
/// acknowledgements; retransmissions are treated as new data.
#[derive(Default)]
pub(super) struct Tcp {
    pub(super) window: f64,
    pub(super) threshold: f64,
    pub(super) next: u64,
    pub(super) flying: VecDeque<u64>,
    pub(super) recover: u64,
    pub(super) progress: Timestamp,
}

impl Net<'_> {
    pub(super) fn tcp_send(&mut self, now: Timestamp) {
        if self.plan.tcp.is_none_or(|(_, end)| now >= Timestamp::from_secs(end)) {
            return;
        }
        while (self.tcp.flying.len() as f64) < self.tcp.window {
            let sequence = self.tcp.next;
            self.tcp.next += 1;
            self.tcp.flying.push_back(sequence);
            if self.enqueue(now) {
                self.at(self.free_at + self.plan.one_way, What::TcpArrive { sequence });
            }
        }
    }

    pub(super) fn tcp_ack(&mut self, now: Timestamp, sequence: u64) {
        let tcp = &mut self.tcp;
        tcp.progress = now;
        tcp.flying.retain(|&s| s != sequence);
        let before = tcp.flying.len();
        tcp.flying.retain(|&s| s + 3 > sequence);
        if tcp.flying.len() < before && sequence >= tcp.recover {
            tcp.threshold = (tcp.window / 2.0).max(2.0);
            tcp.window = tcp.threshold;
            tcp.recover = tcp.next;
        } else if tcp.window < tcp.threshold {
            tcp.window += 1.0;
        } else {
            tcp.window += 1.0 / tcp.window;
        }
        self.tcp_send(now);
    }
}
