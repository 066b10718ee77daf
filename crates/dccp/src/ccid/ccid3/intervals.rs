//! Loss intervals at the receiver (RFC 4342, section 6.1), and its loss event rate.

use super::history::{History, Loss};
use super::options::{INTERVALS, Interval, NDUPACK};
use weir_cc::tcp::LossIntervals;
use weir_units::Seq48;

/// Quarters of a round trip that the losses of one event may span (RFC 4342, section 10.2).
const EVENT: u64 = 4;
/// Quarters of a round trip of a short interval (RFC 4828, section 3: two round trips).
const SHORT: u64 = 8;

/// A loss interval that a loss event began.
#[derive(Clone, Copy, Debug)]
struct Started {
    /// The event's first and last packets lost or marked so far.
    event: Loss,
    dropped: u64,
    /// Data packets, once the interval is complete.
    data: u64,
}

/// Loss intervals, newest first.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    /// Whether each loss of a short interval counts (RFC 5622).
    small_packets: bool,
    discounting: bool,
    /// The first sequence number.
    first: Seq48,
    /// The length of the interval before the first event, once there was one.
    first_data: f64,
    started: [Option<Started>; INTERVALS],
    lengths: LossIntervals,
}

impl Intervals {
    pub(super) fn new(small_packets: bool, discounting: bool) -> Self {
        Self {
            small_packets,
            discounting,
            first: Seq48::new(0),
            first_data: 0.0,
            started: [None; INTERVALS],
            lengths: LossIntervals::new(),
        }
    }

    /// The first packet was received.
    pub(super) fn start(&mut self, first: Seq48) {
        self.first = first;
    }

    /// Records losses, in order; returns whether they began a loss event. `synthetic` computes the length of the
    /// interval before the first.
    pub(super) fn on_loss(&mut self, loss: Loss, synthetic: impl FnOnce() -> f64) -> bool {
        if let Some(open) = &mut self.started[0] {
            if loss.place.counter.saturating_sub(open.event.place.counter) <= EVENT {
                open.event.last = open.event.last.max(loss.last);
                open.dropped += loss.packets();
                return false;
            }
            open.data = data_packets(open, loss.first, loss.place.without_data);
        }
        let length = match &self.started[0] {
            None => {
                self.first_data = synthetic().max(1.0);
                self.first_data
            }
            Some(over) => self.length(over, over.data, loss.place.counter),
        };
        self.lengths.on_event(0, Some(length), self.discounting);
        self.started.copy_within(..INTERVALS - 1, 1);
        self.started[0] = Some(Started { event: loss, dropped: loss.packets(), data: 0 });
        true
    }

    /// The effective length of an interval.
    fn length(&self, interval: &Started, data: u64, counter: u64) -> f64 {
        let packets = data as f64;
        let is_short = counter.saturating_sub(interval.event.place.counter) <= SHORT;
        if self.small_packets && is_short { packets / interval.dropped.max(1) as f64 } else { packets }
    }

    /// p by the packets received.
    pub(super) fn loss_event_rate(&self, history: &History) -> f64 {
        let Some(open) = &self.started[0] else { return 0.0 };
        let place = history.place();
        let end = history.highest().map_or(open.event.first, Seq48::next);
        let is_short = place.counter.saturating_sub(open.event.place.counter) <= SHORT;
        let length = (!(self.small_packets && is_short)).then(|| data_packets(open, end, place.without_data) as f64);
        self.lengths.loss_event_rate_with(length, self.discounting)
    }

    /// Skip Length, and the intervals newest first, up to the greatest number received.
    pub(super) fn report(&self, history: &History) -> (u8, impl Iterator<Item = Interval> + Clone + '_) {
        let highest = history.highest().unwrap_or(self.first);
        // A pending hole longer than Skip Length can express stays in the lossless part until it is given up.
        let pending = history.pending().map_or(0, |p| (highest.since(p) + 1).clamp(0, NDUPACK as i64).unsigned_abs());
        let mut end = highest.next().sub(pending);
        let place = history.place();
        let known = self.started.iter().flatten().count();
        let started = self.started.iter().flatten().enumerate().map(move |(n, s)| {
            let past = end;
            end = s.event.first;
            Interval {
                lossless: (past.since(s.event.last) - 1).max(0).unsigned_abs(),
                lossy: s.event.packets(),
                data: if n == 0 { data_packets(s, past, place.without_data) } else { s.data },
                dropped: s.dropped,
            }
        });
        let oldest = self.started.iter().flatten().last().map_or(highest.next().sub(pending), |s| s.event.first);
        let first = Interval {
            lossless: oldest.since(self.first).max(0).unsigned_abs(),
            lossy: 0,
            data: (self.first_data + 0.5) as u64,
            dropped: 0,
        };
        (pending as u8, started.chain((known < INTERVALS).then_some(first)))
    }
}

/// Data packets of an interval that ends before `end`, which had this many packets without data.
fn data_packets(interval: &Started, end: Seq48, without_data: u64) -> u64 {
    let all = end.since(interval.event.first).max(0).unsigned_abs();
    all.saturating_sub(without_data.saturating_sub(interval.event.place.without_data)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccid::ReceivedPacket;
    use crate::ccid::ccid3::options::{self, Report};
    use crate::option::{DccpOption, Options};
    use crate::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
    use weir_units::{DataSize, Ecn, Timestamp};

    /// Feeds a pattern from number 0, `-` for received and `*` for lost; the counter increases every fifth packet.
    fn run(pattern: &str, small_packets: bool) -> (History, Intervals) {
        run_by(5, pattern, small_packets)
    }
    fn run_by(quarter: usize, pattern: &str, small_packets: bool) -> (History, Intervals) {
        let (mut history, mut intervals) = (History::new(), Intervals::new(small_packets, true));
        for (n, c) in pattern.chars().enumerate().filter(|(_, c)| *c != '*') {
            let packet = ReceivedPacket {
                now: Timestamp::ZERO,
                sequence: Seq48::new(n as u64),
                packet_type: if c == 'a' { PacketType::Ack } else { PacketType::Data },
                data: DataSize::from_bytes(1_000),
                ecn: if c == 'm' { Ecn::Ce } else { Ecn::Ect0 },
                ccval: (n / quarter % 16) as u8,
                ndp_count: None,
                rtt: None,
                options: Options::new(&[], PacketType::Data),
            };
            history.on_packet(&packet, |l| {
                intervals.on_loss(l, || 15.0);
            });
        }
        (history, intervals)
    }

    fn bytes(history: &History, intervals: &Intervals) -> Vec<u8> {
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(Seq48::new(1)),
            acknowledgement: Some(WireSequence::Long(history.highest().expect("packets"))),
        };
        let mut out = Vec::new();
        let mut writer = PacketWriter::new(&mut out, &header);
        let (skip, reported) = intervals.report(history);
        assert!(options::write_intervals(&mut writer, skip, reported.clone()));
        assert!(options::write_dropped(&mut writer, reported));
        writer.finish();
        out
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 4342, section 8.6.2, with RFC 5622, section 8.7.1. Counters increase every second packet, so that L1, L2
        // and L3 are separate events; in L3 one packet is an acknowledgement.
        let (history, intervals) = run_by(2, "----------*--------***-*--------*-------a--*-", false);
        let out = bytes(&history, &intervals);
        let packet = parse(&out, 0).expect("a packet");
        let reported: Vec<_> = packet.options.iter().map(|o| o.expect("an option")).collect();
        // Nonce echoes are zero, and L0 has no first number before it was seen.
        let expected = [
            2, 0, 0, 10, 0, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 13, 0, 0, 8, 0, 0, 1, 0, 0, 9, 0, 0, 10, 0, 0, 0,
            0, 0, 15,
        ];
        assert_eq!(reported[0], DccpOption::Ccid { number: 193, data: &expected });
        let dropped = [0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0, 0];
        assert_eq!(reported[1], DccpOption::Ccid { number: 195, data: &dropped });
        let report = Report::read(Seq48::new(44), &packet.options);
        let starts: Vec<_> =
            report.intervals().expect("reported").iter().map(|(s, i)| (s.get(), i.data, i.dropped)).collect();
        assert_eq!(starts, [(32, 10, 1), (19, 13, 4), (10, 9, 1), (0, 15, 0)]);
    }

    #[test]
    fn before_any_loss_there_is_one_interval_of_no_data() {
        let (history, intervals) = run("--------", false);
        let reported: Vec<_> = intervals.report(&history).1.collect();
        assert_eq!(reported, [Interval { lossless: 8, lossy: 0, data: 0, dropped: 0 }]);
        assert_eq!(intervals.loss_event_rate(&history), 0.0);
    }

    #[test]
    fn nine_intervals_are_reported() {
        let pattern = "*-----------------------------".repeat(20) + "---";
        let (history, intervals) = run(&format!("-{pattern}"), false);
        let reported: Vec<_> = intervals.report(&history).1.collect();
        assert_eq!(reported.len(), 9);
        assert!(reported[1..].iter().all(|i| *i == Interval { lossless: 29, lossy: 1, data: 30, dropped: 1 }), "{reported:?}");
        // The open one has three more: (33 + 5 * 30) / 6.
        assert_eq!(intervals.loss_event_rate(&history), 6.0 / 183.0);
    }

    #[test]
    fn losses_within_four_quarters_are_one_event() {
        // Counters: number / 5. The packet before 12 has 2, that before 31 has 6, that before 36 has 7.
        let with = |at: [usize; 2]| {
            let pattern: String = (0..60).map(|n| if at.contains(&n) { '*' } else { '-' }).collect();
            let (history, intervals) = run(&pattern, false);
            intervals.report(&history).1.next().expect("one")
        };
        assert_eq!(with([12, 31]), Interval { lossless: 28, lossy: 20, data: 48, dropped: 2 });
        assert_eq!(with([12, 36]), Interval { lossless: 23, lossy: 1, data: 24, dropped: 1 });
    }

    #[test]
    fn short_intervals_of_small_packets_count_their_losses() {
        // An event every 25 packets, which are 5 counters: two losses each, so the rate is 2 in 25 if each counts. The
        // open one has seven more and is omitted while it is short.
        let pattern = "**-----------------------".repeat(20) + "-------";
        let (history, intervals) = run(&format!("----------{pattern}"), false);
        assert_eq!(intervals.loss_event_rate(&history), 6.0 / 157.0);
        let (history, intervals) = run(&format!("----------{pattern}"), true);
        assert_eq!(intervals.loss_event_rate(&history), 2.0 / 25.0);
    }

    #[test]
    fn a_marked_first_packet_leaves_no_first_interval() {
        let (history, intervals) = run("m----", false);
        let reported: Vec<_> = intervals.report(&history).1.collect();
        assert_eq!(reported[0], Interval { lossless: 4, lossy: 1, data: 5, dropped: 1 });
        assert_eq!(reported[1], Interval { lossless: 0, lossy: 0, data: 15, dropped: 0 });
    }
}
