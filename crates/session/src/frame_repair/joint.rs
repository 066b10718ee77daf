//! The sender's half of a [joint plan](weir_media::resilience::joint): the repair packets of frames and of what is sent again.
//!
//! The plan is made again twice a second, by the losses in the controller's feedback for each packet, or in receiver reports without
//! it. A share of repair packets goes over the newest frames of the plan's window. Packets that are sent again have copies, as
//! combinations of them, only if no further round fits before the playout.

use super::policy::{FramePolicy, Network, Order, SentFrame};
use std::collections::VecDeque;
use weir_cc::cue::PacketResult;
use weir_fec::Coverage;
use weir_media::resilience::joint::{Joint, Planner, Tally};
use weir_units::{TimeDelta, Timestamp};

/// Interval of plans: chosen here, some reports of RFC 8888 or of transport-wide feedback.
const INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// Round trip before one is measured, as for requests.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(100);

#[derive(Debug)]
pub(super) struct JointPolicy {
    planner: Planner,
    tally: Tally,
    /// Whether there is feedback for each packet.
    by_packets: bool,
    /// Packets of frames since the last report of a fraction.
    since_report: u64,
    /// Parts of a repair packet not yet sent.
    owed: f64,
    next: Option<Timestamp>,
}

impl JointPolicy {
    pub(super) fn new(bounds: Joint) -> Self {
        let (planner, tally) = (Planner::new(bounds), Tally::default());
        Self { planner, tally, by_packets: false, since_report: 0, owed: 0.0, next: None }
    }

    /// The packets of the newest frames.
    fn window(frames: &VecDeque<SentFrame>, count: usize) -> Option<Coverage> {
        let last = frames.back()?.packets.last()?;
        let newest = frames.iter().rev().take(count.max(1));
        let within = newest.take_while(|f| last - f.packets.first().unwrap_or(last) < Coverage::SPAN).count();
        let first = frames.get(frames.len() - within)?.packets.first()?;
        let mut window = Coverage::new(first);
        for packet in frames.range(frames.len() - within..).flat_map(|f| f.packets.iter()) {
            window.insert(packet);
        }
        Some(window)
    }
}

impl FramePolicy for JointPolicy {
    fn on_frame(
        &mut self,
        frames: &VecDeque<SentFrame>,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        let Some(frame) = frames.back() else { return };
        let packets = frame.packets.len();
        self.tally.on_frame(frame.captured);
        self.tally.on_media(packets as u64, self.planner.plan().repairs_for_each());
        self.since_report += packets as u64;
        if self.next.is_none_or(|next| now >= next) {
            self.next = Some(now + INTERVAL);
            self.tally.age(now);
            let rtt = network.round_trip().map_or(FIRST_ROUND_TRIP, |(mean, _)| mean);
            self.planner.update(&self.tally.conditions(rtt));
        }
        let plan = self.planner.plan();
        if plan.share.0 == 0 {
            self.owed = 0.0;
            return;
        }
        self.owed += packets as f64 * plan.repairs_for_each();
        let count = self.owed.floor();
        self.owed -= count;
        if let Some(packets) = Self::window(frames, plan.window) {
            order(Order { packets, count: count as u16 });
        }
    }

    fn on_resent(
        &mut self,
        frame: &SentFrame,
        packets: &Coverage,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        let plan = self.planner.plan();
        let rtt = network.round_trip().map_or(FIRST_ROUND_TRIP, |(mean, _)| mean);
        // Of pictures that are not whole the receiver waits for the latest playout.
        let left = self.planner.latest() - now.saturating_since(frame.captured);
        let is_last = left >= rtt / 2 && left < rtt.mul_f64(1.5);
        if is_last && plan.copies > 0 {
            order(Order { packets: *packets, count: u16::from(plan.copies) * packets.len() as u16 });
        }
    }

    fn on_results(&mut self, results: &[PacketResult]) {
        self.by_packets = true;
        for packet in results {
            match packet.arrival {
                Some(_) if packet.was_lost => self.tally.on_late(),
                arrival => self.tally.on_packets(1, arrival.is_none()),
            }
        }
    }

    fn on_report(&mut self, lost: f64, _: Timestamp) {
        let packets = core::mem::take(&mut self.since_report);
        if !self.by_packets {
            self.tally.on_fraction(lost, packets);
        }
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let plan = self.planner.plan();
        out("plan_share", plan.repairs_for_each());
        out("plan_window", plan.window as f64);
        out("plan_copies", f64::from(plan.copies));
        out("plan_playout_ms", plan.playout.as_millis_f64());
    }
}
