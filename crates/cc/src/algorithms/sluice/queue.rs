//! Fourth stage: the queue expected now and the queue wanted.

use super::config::QueueConfig;
use super::history::RateHistory;
use super::path::View;
use super::quantity::{Bits, Rate, Span, Time};

/// Rate at which the queue wanted is `queue_target`.
const REFERENCE: Rate = Rate::bps(4e6);
/// Least rate of service that is reckoned with.
const LEAST_RATE: Rate = Rate::bps(1e3);
/// Packets that the queue wanted has room for, of their own size: those of audio are a tenth of video's.
const PACKETS: f64 = 0.75;
/// Queue to which one that marks could not hold is reduced, beside a packet's time: L4S links aim at a millisecond (RFC 9332).
const MARKED: Span = Span::secs(0.001);
/// Longest queue wanted for the packets' sake.
const LONGEST_PACKET: Span = Span::secs(0.15);
/// Greatest share of the allowed rate that the packets under way are reckoned with.
const MOST_USED: f64 = 1.1;

/// Queueing delays that the decision is made by: this stage's result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// Expected of a packet sent now.
    pub(super) expected: Span,
    /// Wanted.
    pub(super) wanted: Span,
}

/// The queue expected at `now`: the standing one, and the data sent since its packet less the data that the link has served
/// since. `share` is this flow's rate of service, `arrived` the share of the allowed rate that arrives.
pub(super) fn expected(view: &View, history: &RateHistory, share: Rate, arrived: f64, now: Time) -> Span {
    let (arrived, share) = (arrived.min(MOST_USED), share.max(LEAST_RATE));
    // An empty link serves nothing: what it could have served meanwhile is not left for later.
    let grow =
        |queue: Span, (rate, time): (Rate, Span)| (queue + (rate * arrived / share - 1.0) * time).max(Span::ZERO);
    history.rates(view.standing.departure, now).fold(view.standing.delay, grow)
}

/// Longest queue that this much data in flight can make at `share`.
pub(super) fn most(in_flight: Bits, share: Rate) -> Span {
    in_flight / share.max(LEAST_RATE)
}

/// Time that one of the larger packets takes at this flow's share.
pub(super) fn packet_time(view: &View, share: Rate) -> Span {
    view.packet / share.max(LEAST_RATE)
}

/// The queue wanted on a path. `share` is this flow's rate of service, `weight` the share of one flow that it takes.
pub(super) fn wanted(view: &View, share: Rate, weight: f64, c: &QueueConfig) -> Span {
    let uneven = (c.stalls * view.stall).max(view.noise);
    let mut wanted = if view.l4s.is_some() {
        MARKED + packet_time(view, share) + uneven
    } else {
        (by_rate(share, weight, view.packet, c) + uneven) * libm::pow(1.0 - view.marked, c.mark_power)
    };
    // Queue management that cannot mark drops instead; loss that has another cause stays, and costs little by this.
    wanted *= libm::pow(1.0 - view.lost, c.loss_power);
    wanted + view.residual
}

/// The queue wanted on an even path without marks and losses.
fn by_rate(share: Rate, weight: f64, packet: Bits, c: &QueueConfig) -> Span {
    let share = share.max(LEAST_RATE);
    // A coupled flow wants the queue of one with a higher rate: it meets others at its share of theirs. The power is measured.
    let weight = weight * weight;
    let slope = Span::from(c.slope) * libm::log(REFERENCE * weight / share);
    let wanted = Span::from(c.target) + slope;
    let packet = PACKETS * packet / share;
    wanted.min(c.most.into()).max(c.least.into()).max(packet.min(LONGEST_PACKET))
}

#[cfg(test)]
mod tests {
    use super::super::quantity::PACKET;
    use super::*;

    #[test]
    fn slower_flows_want_longer_queues_within_bounds() {
        let c = QueueConfig::default();
        let at = |mbps: f64| by_rate(Rate::bps(mbps * 1e6), 1.0, PACKET, &c).as_millis();
        assert!((at(4.0) - 7.8).abs() < 1e-9 && (at(4.0 / core::f64::consts::E) - 19.7).abs() < 1e-6);
        assert_eq!((at(500.0), at(0.25)), (5.0, 40.0));
        // At 60 kbit/s a packet takes 160 ms, of which three quarters are wanted.
        assert!((at(0.06) - 120.0).abs() < 1e-9);
        // Half of a flow wants the queue of a whole one of four times its rate.
        assert_eq!(by_rate(Rate::bps(1e6), 0.5, PACKET, &c), by_rate(Rate::bps(4e6), 1.0, PACKET, &c));
        // Of audio's packets of 100 bytes, one takes 13 ms.
        assert_eq!(by_rate(Rate::bps(0.06e6), 1.0, Bits::new(800.0), &c).as_millis(), 40.0);
    }

    #[test]
    fn marks_and_losses_shorten_the_queue_and_a_residual_delay_is_none() {
        let c = QueueConfig::default();
        let wanted = |view: View| wanted(&view, Rate::bps(4e6), 1.0, &c).as_millis();
        assert!((wanted(View { marked: 0.5, ..View::default() }) - 7.8 / 16.0).abs() < 1e-9);
        assert!((wanted(View { lost: 0.5, ..View::default() }) - 7.8 / 4096.0).abs() < 1e-9);
        let residual = View { marked: 1.0, residual: Span::secs(0.01), ..View::default() };
        assert!((wanted(residual) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_queue_expected_counts_the_data_sent_since_its_packet() {
        // For 100 ms twice the rate of service.
        let history = RateHistory::new(Rate::bps(2e6));
        let mut view = View::default();
        view.standing.delay = Span::secs(0.02);
        let expected = |arrived| expected(&view, &history, Rate::bps(1e6), arrived, Time::secs(0.1)).as_millis();
        assert!((expected(1.0) - 120.0).abs() < 1e-9 && (expected(0.5) - 20.0).abs() < 1e-9);
        assert_eq!(expected(0.0), 0.0);
    }

    #[test]
    fn what_an_empty_link_could_have_served_is_not_left_for_later() {
        // A queue of 20 ms is empty after 40 ms at half of the rate of service; from 100 ms on it grows by half of the time.
        let mut history = RateHistory::new(Rate::bps(0.5e6));
        history.set(Rate::bps(1.5e6), Rate::bps(1e6), Time::secs(0.1));
        let mut view = View::default();
        view.standing.delay = Span::secs(0.02);
        let expected = expected(&view, &history, Rate::bps(1e6), 1.0, Time::secs(0.2)).as_millis();
        assert!((expected - 50.0).abs() < 1e-9, "{expected}");
    }
}
