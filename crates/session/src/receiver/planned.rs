//! The receiver's half of a [joint plan](weir_media::resilience::joint): the time of playout.

use crate::received_packet::ReceivedPacket;
use weir_media::resilience::joint::{Joint, Planner, Tally};
use weir_media::{AdaptivePlayout, Playout};
use weir_units::{TimeDelta, Timestamp};

/// Interval of plans, as at the sender.
const INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// Round trip before one is measured, as for requests.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(100);
/// Playout moves by so much of the time that passes: an eighth, at which speech is still followed and motion looks as before; chosen here.
const SPEED: f64 = 0.125;
/// A longer gap in sequence numbers is a source that has begun again (RFC 3550, appendix A.1).
const MOST_MISSING: u64 = 3_000;

/// When frames are played, by losses and round trips.
#[derive(Debug)]
pub(crate) struct PlannedPlayout {
    bounds: Joint,
    planner: Planner,
    tally: Tally,
    rtt: Option<TimeDelta>,
    highest: Option<u64>,
    frame: Option<u32>,
    next: Option<Timestamp>,
    /// The delay in force, since when, and its sum over the time since the first packet, both in seconds.
    delay: TimeDelta,
    since: Option<Timestamp>,
    mean: (f64, f64),
}

impl PlannedPlayout {
    pub(super) fn new(bounds: Joint) -> Self {
        let planner = Planner::new(bounds);
        Self {
            bounds,
            planner,
            tally: Tally::default(),
            rtt: None,
            highest: None,
            frame: None,
            next: None,
            delay: planner.plan().playout,
            since: None,
            mean: (0.0, 0.0),
        }
    }

    pub(super) fn bounds(&self) -> Joint {
        self.bounds
    }

    /// Playout between the bounds: frames that are not whole wait until the latest.
    pub(super) fn playout(bounds: Joint) -> AdaptivePlayout {
        AdaptivePlayout { min: bounds.earliest.min(bounds.latest), max: bounds.latest, patience: None }
    }

    pub(super) fn on_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = Some(rtt);
    }

    /// A packet of media has arrived.
    pub(super) fn on_packet(&mut self, sequence: u64, packet: &ReceivedPacket<'_>, playout: &mut Playout) {
        let now = packet.now;
        self.count(sequence, packet.rtp.timestamp(), now);
        if self.next.is_none_or(|next| now >= next) {
            self.next = Some(now + INTERVAL);
            self.tally.age(now);
            self.planner.update(&self.tally.conditions(self.rtt.unwrap_or(FIRST_ROUND_TRIP)));
        }
        let passed = self.since.replace(now).map_or(TimeDelta::ZERO, |since| now.saturating_since(since));
        let seconds = passed.as_secs_f64();
        self.mean = (self.mean.0 + playout.delay().as_secs_f64() * seconds, self.mean.1 + seconds);
        let wanted = self.planner.plan().playout;
        let step = passed.mul_f64(SPEED);
        let delay = wanted.max(self.delay - step).min(self.delay + step);
        if delay != self.delay {
            self.delay = delay;
            playout.set_min_delay(delay, now);
        }
    }

    fn count(&mut self, sequence: u64, rtp_timestamp: u32, now: Timestamp) {
        if self.frame != Some(rtp_timestamp) {
            self.frame = Some(rtp_timestamp);
            self.tally.on_frame(now);
        }
        match self.highest {
            Some(highest) if sequence <= highest => self.tally.on_late(),
            highest => {
                let missing = highest.map_or(0, |highest| sequence - highest - 1);
                let missing = if missing <= MOST_MISSING { missing } else { 0 };
                if missing > 0 {
                    self.tally.on_packets(missing, true);
                }
                self.tally.on_packets(1, false);
                self.tally.on_media(1 + missing, self.planner.plan().repairs_for_each());
                self.highest = Some(sequence);
            }
        }
    }

    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("playout_planned_ms", self.delay.as_millis_f64());
        if self.mean.1 > 0.0 {
            out("playout_mean_ms", self.mean.0 / self.mean.1 * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::{Header, PacketView};

    /// Frames of four packets 33 ms apart for `seconds`, those of `is_lost` lost; returns the playout delay at the end, in ms.
    fn played(rtt: i64, seconds: i64, is_lost: impl Fn(u64) -> bool) -> f64 {
        let mut planned = PlannedPlayout::new(Joint::default());
        let mut playout = Playout::adaptive(PlannedPlayout::playout(Joint::default()));
        planned.on_rtt(TimeDelta::from_millis(rtt));
        for frame in 0..seconds * 30 {
            let now = Timestamp::from_millis(frame * 100 / 3);
            for k in 0..4 {
                let sequence = 65_536 + frame as u64 * 4 + k;
                if is_lost(sequence) {
                    continue;
                }
                let mut bytes = vec![];
                let timestamp = frame as u32 * 3_000;
                Header { sequence: sequence as u16, timestamp, ..Header::default() }.write_into(&mut bytes);
                let rtp = PacketView::parse_header(&bytes).expect("RTP");
                planned.on_packet(sequence, &ReceivedPacket::recovered(rtp, &bytes, 100, now), &mut playout);
            }
        }
        playout.delay().as_millis_f64()
    }

    #[test]
    fn playout_is_as_early_as_requests_allow() {
        assert_eq!(played(40, 10, |_| false), 100.0);
        // Requests fit into 160 ms.
        let few = played(40, 20, |s| s % 50 == 0);
        assert!((120.0..=180.0).contains(&few), "{few}");
        // Outages of 100 ms every 3 s need more.
        let outages = played(40, 20, |s| s % 360 < 12);
        assert!(outages > few + 40.0, "{outages} {few}");
    }

    #[test]
    fn forged_numbers_leave_playout_within_its_bounds() {
        let mut planned = PlannedPlayout::new(Joint::default());
        let mut playout = Playout::adaptive(PlannedPlayout::playout(Joint::default()));
        planned.on_rtt(TimeDelta::from_secs(60_000));
        for i in 0..5_000_u64 {
            let sequence = if i % 2 == 0 { i * 1_000_000_007 } else { i };
            let mut bytes = vec![];
            Header { timestamp: (i as u32).wrapping_mul(0x9e37_79b9), ..Header::default() }.write_into(&mut bytes);
            let rtp = PacketView::parse_header(&bytes).expect("RTP");
            let now = Timestamp::from_millis(i as i64 * 7);
            planned.on_packet(sequence, &ReceivedPacket::recovered(rtp, &bytes, 100, now), &mut playout);
            let delay = playout.delay();
            assert!((Joint::default().earliest..=Joint::default().latest).contains(&delay), "{delay:?}");
        }
    }
}
