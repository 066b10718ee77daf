//! Measures of one interval, from the feedback received in it.

use crate::cue::{PacketResult, SentPacket, TransportFeedback};
use std::collections::VecDeque;
use weir_units::{DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Sums over the packets reported in an interval. Delays are one-way, in ms, relative to that of the first packet of the
/// call: the ends' clocks are not synchronised.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// Its length.
    pub length: TimeDelta,
    /// The media rate in force, in bit/s.
    pub target_bps: f64,
    /// Packets sent, and their bytes (RTP headers included).
    pub sent_packets: u32,
    /// Bytes sent.
    pub sent: DataSize,
    /// Reports received.
    pub reports: u32,
    /// Time that the reports cover: since the last one of an earlier interval.
    pub covered: TimeDelta,
    /// Packets reported as received.
    pub received_packets: u32,
    /// Their bytes.
    pub received: DataSize,
    /// Packets reported as lost.
    pub lost: u32,
    /// Runs of consecutive lost packets.
    pub loss_runs: u32,
    /// Packets received that were probes.
    pub probes: u32,
    /// Packets received with a congestion mark.
    pub marked: u32,
    /// Sum of the delays of packets received.
    pub delay_sum_ms: f64,
    /// Least of them; 0 without any.
    pub delay_min_ms: f64,
    /// Interarrival times: number, sum and sum of squares.
    pub gaps: u32,
    /// Their sum.
    pub gap_sum_ms: f64,
    /// The sum of their squares.
    pub gap_squares: f64,
    /// Round-trip times reported, and their sum.
    pub rtts: u32,
    /// Sum of the round-trip times.
    pub rtt_sum_ms: f64,
    /// The least delay of the call so far.
    pub least_delay_ms: f64,
}

impl Interval {
    /// The rate received in bit/s over the time that reports cover; 0 without reports.
    pub fn receive_rate(&self) -> f64 {
        over(self.received, self.covered)
    }
    /// The rate sent in bit/s.
    pub fn send_rate(&self) -> f64 {
        over(self.sent, self.length)
    }
    /// The share of reported packets that were lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        f64::from(self.lost) / f64::from((self.lost.saturating_add(self.received_packets)).max(1))
    }
    /// The mean delay relative to the call's first packet, in ms; `None` without packets.
    pub fn delay_ms(&self) -> Option<f64> {
        (self.received_packets > 0).then(|| self.delay_sum_ms / f64::from(self.received_packets))
    }
    /// The mean delay above the least of the call so far, in ms; 0 without packets.
    pub fn queue_delay_ms(&self) -> f64 {
        self.delay_ms().map_or(0.0, |d| d - self.least_delay_ms)
    }
    /// The mean round-trip time in ms; `None` without a sample.
    pub fn rtt_ms(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_sum_ms / f64::from(self.rtts))
    }
    /// This interval and an earlier one as one.
    pub fn merged(&self, earlier: &Self) -> Self {
        let delay_min_ms = match (self.received_packets, earlier.received_packets) {
            (0, _) => earlier.delay_min_ms,
            (_, 0) => self.delay_min_ms,
            _ => self.delay_min_ms.min(earlier.delay_min_ms),
        };
        Self {
            length: self.length + earlier.length,
            target_bps: self.target_bps,
            sent_packets: self.sent_packets.saturating_add(earlier.sent_packets),
            sent: self.sent + earlier.sent,
            reports: self.reports.saturating_add(earlier.reports),
            covered: self.covered + earlier.covered,
            received_packets: self.received_packets.saturating_add(earlier.received_packets),
            received: self.received + earlier.received,
            lost: self.lost.saturating_add(earlier.lost),
            loss_runs: self.loss_runs.saturating_add(earlier.loss_runs),
            probes: self.probes.saturating_add(earlier.probes),
            marked: self.marked.saturating_add(earlier.marked),
            delay_sum_ms: self.delay_sum_ms + earlier.delay_sum_ms,
            delay_min_ms,
            gaps: self.gaps.saturating_add(earlier.gaps),
            gap_sum_ms: self.gap_sum_ms + earlier.gap_sum_ms,
            gap_squares: self.gap_squares + earlier.gap_squares,
            rtts: self.rtts.saturating_add(earlier.rtts),
            rtt_sum_ms: self.rtt_sum_ms + earlier.rtt_sum_ms,
            least_delay_ms: self.least_delay_ms,
        }
    }
}

fn over(size: DataSize, time: TimeDelta) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { 8.0 * size.as_bytes() as f64 / seconds } else { 0.0 }
}

/// Collects the intervals of a call, the latest ones of which it keeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Meter {
    current: Interval,
    since: Timestamp,
    /// The newest first.
    intervals: VecDeque<Interval>,
    kept: usize,
    first_delay: Option<i64>,
    least_delay_ms: f64,
    last_arrival: Option<RemoteTimestamp>,
    last_report: Timestamp,
    was_lost: bool,
}

impl Meter {
    /// A meter that keeps so many intervals.
    pub fn new(now: Timestamp, kept: usize) -> Self {
        Self {
            current: Interval::default(),
            since: now,
            intervals: VecDeque::with_capacity(kept),
            kept,
            first_delay: None,
            least_delay_ms: 0.0,
            last_arrival: None,
            last_report: now,
            was_lost: false,
        }
    }

    /// A packet has been sent.
    pub fn on_sent(&mut self, packet: &SentPacket) {
        self.current.sent_packets = self.current.sent_packets.saturating_add(1);
        self.current.sent += packet.size;
    }

    /// A report has been received.
    pub fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        let i = &mut self.current;
        i.reports = i.reports.saturating_add(1);
        i.covered += feedback.now.saturating_since(self.last_report);
        self.last_report = feedback.now;
        if let Some(rtt) = feedback.rtt {
            i.rtts = i.rtts.saturating_add(1);
            i.rtt_sum_ms += rtt.as_millis_f64();
        }
        for packet in feedback.packets {
            self.on_packet(packet);
        }
    }

    fn on_packet(&mut self, packet: &PacketResult) {
        let i = &mut self.current;
        let Some(arrival) = packet.arrival else {
            i.lost = i.lost.saturating_add(1);
            i.loss_runs = i.loss_runs.saturating_add(u32::from(!self.was_lost));
            self.was_lost = true;
            return;
        };
        self.was_lost = false;
        let delay = arrival.as_nanos().saturating_sub(packet.departure.as_nanos());
        let first = *self.first_delay.get_or_insert(delay);
        let delay_ms = TimeDelta::from_nanos(delay.saturating_sub(first)).as_millis_f64();
        self.least_delay_ms = self.least_delay_ms.min(delay_ms);
        i.delay_min_ms = if i.received_packets == 0 { delay_ms } else { i.delay_min_ms.min(delay_ms) };
        i.delay_sum_ms += delay_ms;
        i.received_packets = i.received_packets.saturating_add(1);
        i.received += packet.size;
        i.probes = i.probes.saturating_add(u32::from(packet.probe != 0));
        i.marked = i.marked.saturating_add(u32::from(packet.ecn == weir_units::Ecn::Ce));
        if let Some(last) = self.last_arrival {
            let gap_ms = TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(last.as_nanos())).as_millis_f64();
            i.gaps = i.gaps.saturating_add(1);
            i.gap_sum_ms += gap_ms;
            i.gap_squares += gap_ms * gap_ms;
        }
        self.last_arrival = Some(arrival);
    }

    /// Ends the interval at `now`, in which the media rate was `target_bps`, and gives it.
    pub fn end(&mut self, now: Timestamp, target_bps: f64) -> Interval {
        let ended = Interval {
            length: now.saturating_since(self.since),
            target_bps,
            least_delay_ms: self.least_delay_ms,
            ..std::mem::take(&mut self.current)
        };
        self.since = now;
        self.intervals.truncate(self.kept.saturating_sub(1));
        self.intervals.push_front(ended);
        ended
    }

    /// The intervals that have ended, the newest first.
    pub fn intervals(&self) -> &VecDeque<Interval> {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Ecn;

    fn packet(sequence: u64, sent_ms: i64, arrival_ms: Option<i64>) -> PacketResult {
        PacketResult {
            sequence,
            departure: Timestamp::from_millis(sent_ms),
            arrival: arrival_ms.map(RemoteTimestamp::from_millis),
            size: DataSize::from_bytes(1_000),
            ecn: Ecn::NotEct,
            probe: 0,
            was_lost: false,
        }
    }

    fn report(meter: &mut Meter, at_ms: i64, packets: &[PacketResult]) {
        meter.on_feedback(&TransportFeedback {
            now: Timestamp::from_millis(at_ms),
            packets,
            bytes_in_flight: DataSize::ZERO,
            rtt: Some(TimeDelta::from_millis(40)),
        });
    }

    #[test]
    fn rates_delays_gaps_and_losses_of_an_interval() {
        let mut meter = Meter::new(Timestamp::ZERO, 2);
        meter.on_sent(&SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(3_000)));
        report(&mut meter, 20, &[packet(0, 0, Some(1_000)), packet(1, 1, None), packet(2, 2, None)]);
        report(&mut meter, 40, &[packet(3, 10, Some(1_020)), packet(4, 11, None), packet(5, 12, Some(1_023))]);
        let i = meter.end(Timestamp::from_millis(60), 500e3);
        // 3,000 bytes in the 40 ms that the reports cover, and sent in 60 ms.
        assert!((i.receive_rate() - 600e3).abs() < 1e-6 && (i.send_rate() - 400e3).abs() < 1e-6);
        assert_eq!((i.lost, i.loss_runs, i.loss()), (3, 2, 0.5));
        // Delays of 1,000, 1,010 and 1,011 ms, the first being zero.
        assert_eq!((i.delay_ms(), i.queue_delay_ms(), i.delay_min_ms), (Some(7.0), 7.0, 0.0));
        assert_eq!((i.gaps, i.gap_sum_ms, i.gap_squares), (2, 23.0, 409.0));
        assert_eq!(i.rtt_ms(), Some(40.0));
        // A packet with less delay moves the least one; a report covers what the one before left.
        report(&mut meter, 100, &[packet(6, 70, Some(1_066))]);
        let j = meter.end(Timestamp::from_millis(120), 500e3);
        assert_eq!((j.least_delay_ms, j.queue_delay_ms(), j.covered), (-4.0, 0.0, TimeDelta::from_millis(60)));
        let both = j.merged(&i);
        assert_eq!((both.received_packets, both.delay_min_ms, both.length), (4, -4.0, TimeDelta::from_millis(120)));
        meter.end(Timestamp::from_millis(180), 0.0);
        assert_eq!(meter.intervals().len(), 2);
    }

    #[test]
    fn wild_times_stay_finite() {
        let mut meter = Meter::new(Timestamp::ZERO, 1);
        let wild = [i64::MIN, i64::MAX, 0];
        for (n, (sent, arrival)) in wild.iter().flat_map(|a| wild.map(|b| (*a, b))).enumerate() {
            let mut p = packet(n as u64, 0, Some(0));
            (p.departure, p.arrival) = (Timestamp::from_nanos(sent), Some(RemoteTimestamp::from_nanos(arrival)));
            report(&mut meter, 1, &[p]);
        }
        let i = meter.end(Timestamp::from_millis(60), 0.0);
        assert!(i.delay_sum_ms.is_finite() && i.gap_squares.is_finite() && i.queue_delay_ms() >= 0.0);
    }
}
