//! Causal bounds: what a sender could do that knew the past of its path exactly, and how much of it is asked.
//!
//! Such a sender knows what has reached it: a change of the path is known after [`Loop::heard`], the way of a packet, a feedback
//! interval and the way of the report. It sends what the link serves, in frames.

/// Share of a bound that is a goal: a rate has to be 0.95 of it, a delay or a time at most its 0.95th part, and as much as a sender may
/// fall short of a rate it may lose.
pub(super) const ASKED: f64 = 0.95;
/// Greatest loss, %.
pub(super) const LOST: f64 = 100.0 * (1.0 - ASKED);
/// Feedback interval, s, as of the fluid senders.
const FEEDBACK: f64 = 0.05;
/// Frames a second of the rows' sources, and bits of a packet.
const FPS: f64 = 30.0;
const PACKET: f64 = 1_200.0 * 8.0;

/// A delay or time that is asked, from its bound.
pub(super) fn most(bound: f64) -> f64 {
    bound / ASKED
}

/// A frame's time on the link at the link's own rate, ms: its last packet waits for the others.
pub(super) const fn frame_ms() -> f64 {
    1e3 / FPS
}

/// A packet's time on a link, ms.
pub(super) fn packet_ms(bps: f64) -> f64 {
    1e3 * PACKET / bps
}

/// A path's delays, s.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    pub(super) there: f64,
    pub(super) back: f64,
}

impl Loop {
    /// Time until the sender hears of a change.
    pub(super) fn heard(self) -> f64 {
        self.there + FEEDBACK + self.back
    }

    /// Longest queue, in s, of a sender that sends the capacity before a fall until it hears of the fall.
    pub(super) fn queue_after(self, before: f64, after: f64) -> f64 {
        self.heard() * (before - after) / after
    }

    /// Time from a fall until that queue is empty, if the sender then sends its floor.
    pub(super) fn drained_after(self, before: f64, after: f64, floor: f64) -> f64 {
        self.heard() + self.queue_after(before, after) * after / (after - floor)
    }
}

/// A player that fetches segments over a fair share of the link, beside a call that takes the rest: rates in bit/s of the call and of the
/// player.
pub(super) fn beside_player(link: f64, segment_bits: f64, idle_s: f64) -> (f64, f64) {
    let fetch = segment_bits / (0.5 * link);
    let period = fetch + idle_s;
    ((0.5 * link * fetch + link * idle_s) / period, segment_bits / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_to_half_is_heard_of_after_the_way_there_and_back() {
        // 25 ms there, 325 ms back and 50 ms between reports; 2 Mbit/s too much for 0.4 s are 0.8 Mbit, 0.4 s of what is left.
        let late = Loop { there: 0.025, back: 0.325 };
        assert!((late.heard() - 0.4).abs() < 1e-12);
        assert!((late.queue_after(4e6, 2e6) - 0.4).abs() < 1e-12);
        // They drain at 2 Mbit/s less the floor of 0.4: 0.5 s.
        assert!((late.drained_after(4e6, 2e6, 0.4e6) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_player_and_a_call_share_while_it_fetches() {
        // 12 Mbit at 3 of 6 Mbit/s take 4 s; then the call has all for 2 s.
        let (call, player) = beside_player(6e6, 12e6, 2.0);
        assert!((call - 4e6).abs() < 1.0 && (player - 2e6).abs() < 1.0);
    }
}
