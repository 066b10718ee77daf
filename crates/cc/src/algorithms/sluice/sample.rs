//! First stage: what one feedback message says of its packets. Queueing delay, the time during which packets were waiting
//! behind each other, and what the link served in it.

mod late;
mod longer;
pub(super) mod stops;
pub(super) mod timing;
pub(super) mod usage;

use super::quantity::{Bits, Span, Time};
use crate::cue::PacketResult;
use crate::parts::base_delay::BaseDelay;
use late::{Late, Losses};
use longer::Longer;
use stops::{Gap, Stops};
use weir_units::{Ecn, TimeDelta, Timestamp};

/// Queueing delay from which a packet counts as having waited.
pub(super) const WAITED: Span = Span::secs(0.0015);
/// The same where marks hold a queue of a millisecond: RFC 8888 reports arrivals by the 1024th part of a second, so that of packets that
/// hardly wait those after a gap would count, and those beside them not.
pub(super) const WAITED_MARKED: Span = Span::secs(0.003);
/// Gap between arrivals from which it is an outage rather than a clump.
const OUTAGE: Span = Span::secs(0.1);
/// Greatest span of arrivals or departures that is believed.
const MAX_SPAN: Span = Span::secs(10.0);
/// An arrival this much before another shows that the receiver's clock was set back: its times begin again. 3 s, libwebrtc's
/// `kArrivalTimeOffsetThreshold`.
const CLOCK_JUMP: i64 = 3_000_000_000;
/// Packets sent after one among which the one that has overtaken it is looked for: the first of them mostly has.
const AHEAD: usize = 8;

/// Sums over the packets of one feedback message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Packets received.
    pub(super) received: u32,
    /// Packets lost, as far as that is believed by now.
    pub(super) lost: u32,
    /// Those of them that were sent behind one that waited longer than `Message::full`: a full queue's.
    pub(super) lost_waiting: u32,
    /// Packets received that an earlier sample had as lost.
    pub(super) revoked: u32,
    /// Packets sent before the newest of the message that no message has told of: their report was lost.
    pub(super) unreported: u32,
    /// Packets received with a CE mark.
    pub(super) marked: u32,
    /// Size of the packets received.
    pub(super) size: Bits,
    /// Size of the largest packet received in order.
    pub(super) largest: Bits,
    /// Time from the last arrival of the message before to the last of this one.
    pub(super) elapsed: Span,
    /// The part of that time in which the link was busy with this flow.
    pub(super) busy: Busy,
    /// Gaps between packets that waited behind each other.
    pub(super) gaps: Gaps,
    /// Queueing delays.
    pub(super) queue: QueueDelay,
    /// The delay to which those of the queue are added.
    pub(super) base: Span,
    /// Whether the delay has been the same, and not the least, for some messages.
    pub(super) is_same: bool,
    /// Departure of the packet sent first of all.
    pub(super) begin: Time,
    /// Departure of the packet sent first of those received.
    pub(super) first_departure: Time,
    /// Departure of the packet sent last of those received.
    pub(super) last_departure: Time,
}

/// The time during which the link served this flow's packets without a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Busy {
    /// Its length.
    pub(super) time: Span,
    /// Data served in it.
    pub(super) size: Bits,
    /// Packets served in it.
    pub(super) packets: u32,
    /// Time in which these packets had been sent.
    pub(super) sending: Span,
}

/// Gaps between packets in busy time that are no outage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gaps {
    /// Their sum.
    pub(super) sum: Span,
    /// The sum of their squares, s².
    pub(super) squares: f64,
    /// Their number.
    pub(super) count: u32,
}

/// Queueing delays of the packets of one feedback message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct QueueDelay {
    /// The least delay and its packet.
    pub(super) least: Standing,
    /// Delay of the packet sent last.
    pub(super) last: Span,
    /// The greatest delay.
    pub(super) most: Span,
}

/// A queueing delay that every packet of some time has had at least.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// The delay.
    pub(super) delay: Span,
    /// Departure of the packet that had no more.
    pub(super) departure: Time,
    /// Data sent up to that packet, itself included.
    pub(super) sent: Bits,
}

/// Turns feedback into samples; carries the last arrival from one message to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    base: BaseDelay,
    /// Latest arrival, ns by the receiver's clock.
    last_arrival: Option<i64>,
    /// Departure of the packet received before.
    last_departure: Option<Time>,
    /// Queueing delay of the packet received before.
    last_queue: Span,
    /// Sequence number after the newest packet reported.
    next: Option<u64>,
    /// Data sent up to the packet that is looked at.
    sent: Bits,
    /// Packets overtaken that no sample has counted yet.
    overtaken: Overtaken,
    late: Late,
    longer: Longer,
    stops: Stops,
}

/// Packets that were overtaken on the path.
#[derive(Clone, Copy, Debug, Default)]
struct Overtaken {
    received: u32,
    marked: u32,
    /// Those that had been reported lost, and the longest delay of them beyond the least.
    revoked: u32,
    lateness: Span,
    size: Bits,
    /// Their data since the last packet in order: the link has served it by the time of the next one.
    served: Bits,
}

/// A feedback message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) packets: &'a [PacketResult],
    /// Its arrival.
    pub(super) now: Time,
    /// Mean interval of messages.
    pub(super) interval: Span,
    /// The controller's start.
    pub(super) start: Timestamp,
    /// Age at which the least delay expires.
    pub(super) window: TimeDelta,
    /// Queueing delay beyond which what is lost is the queue's.
    pub(super) full: Span,
    /// Queueing delay from which a packet counts as having waited.
    pub(super) waited: Span,
}

impl Sampler {
    /// The sample of a message; `None` if no packet of it was received in order.
    pub(super) fn sample(&mut self, message: &Message<'_>) -> Option<Sample> {
        let &Message { packets, start, window, .. } = message;
        let delay_of = |p: &PacketResult| Some(p.arrival?.as_nanos().saturating_sub(p.departure.as_nanos()));
        let is_reordered = !packets.iter().filter_map(|p| p.arrival).is_sorted() || packets.iter().any(|p| p.was_lost);
        let mut sample = Sample { begin: Time::of(packets.first()?.departure, start), ..Sample::default() };
        let newest = packets.last()?;
        if let Some(least) = packets.iter().filter_map(delay_of).min() {
            // No packet waits for longer than its report takes to come: the receiver's clock was set on.
            let queue = self.base.get().map_or(0, |base| least.saturating_sub(base.as_nanos()));
            if Span::secs(queue as f64 * 1e-9) > message.now - sample.begin {
                self.base = BaseDelay::default();
                (self.last_arrival, self.last_departure) = (None, None);
            }
            self.base.observe(TimeDelta::from_nanos(least), newest.departure - start, window);
        }
        let base = self.base.get()?.as_nanos();
        sample.base = Span::secs(base as f64 * 1e-9);
        for (i, p) in packets.iter().enumerate() {
            self.look_for_holes(&mut sample, p);
            let (Some(arrival), Some(delay)) = (p.arrival, delay_of(p)) else {
                sample.lost += 1;
                sample.lost_waiting += u32::from(self.last_queue > message.full);
                self.stops.lose(Time::of(p.departure, start), self.sent - bits(p));
                continue;
            };
            let queue = Span::secs(delay.saturating_sub(base) as f64 * 1e-9).min(MAX_SPAN);
            if is_reordered && is_overtaken(p, &packets[i + 1..]) {
                self.overtaken.add(p, queue);
                continue;
            }
            self.last_queue = queue;
            sample.add(p, Time::of(p.departure, start), queue, self.sent);
            self.pass(&mut sample, p, (Time::of(p.departure, start), arrival.as_nanos()), queue, message.waited);
        }
        if sample.received == 0 {
            return None;
        }
        let lateness = self.overtaken.count(&mut sample);
        let reported = Losses { lost: sample.lost, revoked: sample.revoked };
        let Losses { lost, revoked } = self.late.observe(reported, lateness, message.interval, message.now);
        (sample.lost, sample.revoked) = (lost, revoked);
        sample.lost_waiting = sample.lost_waiting.min(lost);
        if let Some(longer) = self.longer.observe(&sample) {
            self.base = BaseDelay::default();
            self.base.observe(TimeDelta::from_nanos(base) + longer.into(), newest.departure - start, window);
            sample.queue.less(longer);
        }
        sample.is_same = self.longer.is_same();
        Some(sample)
    }

    /// The link's stops of late.
    pub(super) fn stops(&self) -> &Stops {
        &self.stops
    }

    /// Counts packets that were never reported between the newest one reported and this one, as large as this one. Nothing is known of
    /// what the link did then.
    fn look_for_holes(&mut self, sample: &mut Sample, p: &PacketResult) {
        let hole = self.next.map_or(0, |next| p.sequence.saturating_sub(next));
        if !p.was_lost {
            self.sent += bits(p) * (1.0 + hole as f64);
        }
        self.next = Some(self.next.unwrap_or(0).max(p.sequence.saturating_add(1)));
        if hole > 0 {
            sample.unreported = sample.unreported.saturating_add(u32::try_from(hole).unwrap_or(u32::MAX));
            (self.last_arrival, self.last_departure) = (None, None);
        }
    }

    /// Counts the time since the arrival before, and whether the link was busy in it.
    fn pass(
        &mut self,
        sample: &mut Sample,
        p: &PacketResult,
        (departure, arrival): (Time, i64),
        queue: Span,
        waited: Span,
    ) {
        let size = bits(p) + core::mem::take(&mut self.overtaken.served);
        if self.last_arrival.is_some_and(|last| last.saturating_sub(arrival) > CLOCK_JUMP) {
            (self.last_arrival, self.last_departure) = (None, None);
        }
        if let Some(last) = self.last_arrival {
            let gap = Span::secs(arrival.saturating_sub(last) as f64 * 1e-9);
            if (Span::ZERO..MAX_SPAN).contains(&gap) {
                sample.elapsed += gap;
                // It was in the queue before the packet ahead had left.
                if queue >= waited.max(0.5 * gap) {
                    let sending = self.last_departure.map_or(Span::ZERO, |l| (departure - l).max(Span::ZERO));
                    let gap = Gap { time: gap, size, sending };
                    let served = self.stops.pass(gap, departure + queue, self.sent - bits(p));
                    served.into_iter().flatten().for_each(|gap| sample.add_busy(gap));
                } else if let Some(gap) = self.stops.interrupt() {
                    sample.add_busy(gap);
                }
            }
        }
        self.last_departure = Some(departure);
        self.last_arrival = Some(self.last_arrival.map_or(arrival, |l| l.max(arrival)));
    }
}

/// Whether a packet sent later has arrived before one that was received. Its delay is then no queue's, which keeps the order, and
/// its arrival no end of service. One that was reported lost was overtaken by what was reported with it.
fn is_overtaken(p: &PacketResult, later: &[PacketResult]) -> bool {
    p.was_lost || later.iter().take(AHEAD).any(|l| l.arrival.is_some_and(|at| Some(at) < p.arrival))
}

impl Overtaken {
    fn add(&mut self, p: &PacketResult, delay: Span) {
        self.received += 1;
        self.marked += u32::from(p.ecn == Ecn::Ce);
        if p.was_lost {
            self.revoked += 1;
            self.lateness = self.lateness.max(delay);
        }
        self.size += bits(p);
        self.served += bits(p);
    }

    /// Counts them in a sample. Returns their lateness.
    fn count(&mut self, sample: &mut Sample) -> Span {
        let Self { received, marked, revoked, lateness, size, served } = *self;
        *self = Self { served, ..Self::default() };
        sample.received += received;
        sample.revoked += revoked;
        sample.marked += marked;
        sample.size += size;
        lateness
    }
}

fn bits(p: &PacketResult) -> Bits {
    Bits::new(p.size.as_bits() as f64)
}

impl QueueDelay {
    /// The path is longer by so much: less of the delay is a queue's.
    fn less(&mut self, longer: Span) {
        for delay in [&mut self.least.delay, &mut self.last, &mut self.most] {
            *delay = (*delay - longer).max(Span::ZERO);
        }
    }
}

impl Sample {
    /// Counts a packet received.
    fn add(&mut self, p: &PacketResult, departure: Time, queue: Span, sent: Bits) {
        if self.received == 0 {
            self.first_departure = departure;
        }
        self.last_departure = departure;
        if self.received == 0 || queue < self.queue.least.delay {
            self.queue.least = Standing { delay: queue, departure, sent };
        }
        self.received += 1;
        self.marked += u32::from(p.ecn == Ecn::Ce);
        self.size += bits(p);
        self.largest = self.largest.max(bits(p));
        self.queue.last = queue;
        self.queue.most = self.queue.most.max(queue);
    }

    /// Counts a gap in which the link was busy with a packet.
    fn add_busy(&mut self, Gap { time: gap, size, sending }: Gap) {
        self.busy.time += gap;
        self.busy.size += size;
        self.busy.packets += 1;
        self.busy.sending += sending;
        if gap < OUTAGE {
            self.gaps.sum += gap;
            self.gaps.squares += gap.as_secs() * gap.as_secs();
            self.gaps.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataSize, RemoteTimestamp};

    fn sample(sampler: &mut Sampler, packets: &[PacketResult]) -> Option<Sample> {
        let last = packets.last().map_or(Time::START, |p| Time::of(p.departure, Timestamp::ZERO));
        let (now, interval) = (last + Span::secs(0.2), Span::secs(0.05));
        let window = TimeDelta::from_secs(10);
        let full = Span::secs(0.1);
        sampler.sample(&Message { packets, now, interval, start: Timestamp::ZERO, window, full, waited: WAITED })
    }

    fn near(span: Span, s: f64) -> bool {
        (span - Span::secs(s)).abs() < Span::secs(1e-9)
    }

    /// Packets of 1,200 bytes: departure and arrival in µs; none for a lost one.
    fn packets(times: &[(i64, Option<i64>)]) -> Vec<PacketResult> {
        let one = |(i, (sent, arrived)): (usize, &(i64, Option<i64>))| PacketResult {
            sequence: i as u64,
            departure: Timestamp::from_micros(*sent),
            arrival: arrived.map(|us| RemoteTimestamp::from_nanos(us * 1_000)),
            size: DataSize::from_bytes(1_200),
            ecn: Ecn::NotEct,
            probe: 0,
            was_lost: false,
        };
        times.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_train_that_the_link_spreads_is_busy_time_at_the_links_rate() {
        let mut a = Sampler::default();
        // Four packets at once through 1.2 Mbit/s: 8 ms each.
        let train = [(0, Some(50_000)), (0, Some(58_000)), (0, Some(66_000)), (0, Some(74_000))];
        let d = sample(&mut a, &packets(&train)).expect("arrived");
        assert_eq!((d.received, d.lost, d.gaps.count), (4, 0, 3));
        assert!(near(d.busy.time, 0.024) && d.busy.size == Bits::new(28_800.0));
        assert_eq!((d.busy.packets, d.busy.sending), (3, Span::ZERO));
        assert!(((d.busy.size / d.busy.time).as_bps() - 1.2e6).abs() < 1.0);
        assert!(near(d.queue.last, 0.024) && d.queue.least.delay == Span::ZERO);
    }

    #[test]
    fn packets_that_did_not_wait_are_no_busy_time() {
        let mut a = Sampler::default();
        let apart = [(0, Some(50_000)), (20_000, Some(70_000)), (40_000, Some(91_000))];
        let d = sample(&mut a, &packets(&apart)).expect("arrived");
        assert_eq!(d.busy, Busy::default());
        assert!(near(d.elapsed, 0.041));
    }

    #[test]
    fn busy_time_goes_on_from_message_to_message_and_a_loss_is_counted() {
        let mut a = Sampler::default();
        sample(&mut a, &packets(&[(0, Some(50_000))])).expect("arrived");
        let next = [(1_000, Some(70_000)), (2_000, None), (3_000, Some(80_000))];
        let d = sample(&mut a, &packets(&next)).expect("arrived");
        assert_eq!((d.received, d.lost), (2, 1));
        // 20 ms to the first, which waited 19 ms, and 10 ms to the last, which waited 27 ms.
        assert!(near(d.busy.time, 0.03), "{d:?}");
        assert!(near(d.queue.last, 0.027));
        assert!(near(d.busy.sending, 0.003), "of three, one of which was lost: {d:?}");
    }

    #[test]
    fn what_is_lost_behind_a_packet_that_has_waited_is_the_full_queues() {
        let mut a = Sampler::default();
        sample(&mut a, &packets(&[(0, Some(50_000)), (1_000, None)])).expect("arrived");
        // A queue of 200 ms that drops two; the link then serves it at once, and loses one more.
        let outage =
            [(10_000, Some(260_000)), (20_000, None), (30_000, None), (210_000, Some(262_000)), (220_000, None)];
        let d = sample(&mut a, &packets(&outage)).expect("arrived");
        assert_eq!((d.received, d.lost, d.lost_waiting), (2, 3, 2), "{d:?}");
        let first = sample(&mut a, &packets(&[(300_000, None), (310_000, Some(360_000))])).expect("arrived");
        assert_eq!((first.lost, first.lost_waiting), (1, 0), "the packet before had not waited: {first:?}");
    }

    #[test]
    fn an_outage_is_busy_time_and_no_clump() {
        let mut a = Sampler::default();
        let d = sample(&mut a, &packets(&[(0, Some(50_000)), (1_000, Some(250_000))]));
        let d = d.expect("arrived");
        assert!(near(d.busy.time, 0.2));
        assert_eq!(d.gaps, Gaps::default());
    }

    #[test]
    fn a_packet_that_was_overtaken_has_no_delay_of_its_own_and_is_served_in_its_turn() {
        // A packet each 3 ms through 3.2 Mbit/s with 6 ms of queue; the third is held back by 10 ms.
        let mut a = Sampler::default();
        sample(&mut a, &packets(&[(-3_000, Some(44_000))])).expect("arrived");
        let held = [(0, Some(53_000)), (3_000, Some(56_000)), (6_000, Some(69_000)), (9_000, Some(62_000))];
        let mut all = packets(&held);
        all.iter_mut().for_each(|p| p.sequence += 1);
        let d = sample(&mut a, &all).expect("arrived");
        assert_eq!((d.received, d.lost, d.revoked), (4, 0, 0));
        assert!(near(d.queue.most, 0.006), "{d:?}");
        assert!(near(d.busy.time, 0.018) && d.busy.size == Bits::new(38_400.0) && d.gaps.count == 3, "{d:?}");
    }

    #[test]
    fn a_packet_reported_lost_and_then_received_is_taken_back() {
        let mut a = Sampler::default();
        let lost = sample(&mut a, &packets(&[(0, Some(50_000)), (3_000, None), (6_000, Some(56_000))]));
        assert_eq!(lost.expect("arrived").lost, 1);
        let mut late = packets(&[(0, Some(50_000)), (3_000, Some(173_000)), (6_000, None), (126_000, Some(176_000))]);
        let again: Vec<PacketResult> = late.drain(..).filter(|p| p.sequence == 1 || p.sequence == 3).collect();
        let again: Vec<PacketResult> =
            again.into_iter().map(|p| PacketResult { was_lost: p.sequence == 1, ..p }).collect();
        let d = sample(&mut a, &again).expect("arrived");
        assert_eq!((d.received, d.lost, d.revoked, d.unreported), (2, 0, 1, 0));
        assert!(d.queue.most < Span::secs(1e-9), "late by itself: {d:?}");
    }

    #[test]
    fn packets_whose_report_was_lost_are_known_to_have_been_sent_and_no_more() {
        let mut a = Sampler::default();
        sample(&mut a, &packets(&[(0, Some(50_000)), (3_000, Some(56_000))])).expect("arrived");
        let mut later = packets(&[(60_000, Some(130_000)), (63_000, Some(133_000))]);
        later.iter_mut().for_each(|p| p.sequence += 20);
        let d = sample(&mut a, &later).expect("arrived");
        assert_eq!((d.received, d.lost, d.unreported), (2, 0, 18));
        assert!(near(d.elapsed, 0.003) && near(d.busy.time, 0.003), "nothing is known of the time before: {d:?}");
    }

    /// A train through 3.2 Mbit/s with 15 ms of queue before its first packet, at 40 ms and then at 1 s; the receiver's clock is set by
    /// so many seconds between.
    fn after_a_step_by(s: i64) -> Sample {
        let mut a = Sampler::default();
        let train = |from: i64, by: i64| -> Vec<PacketResult> {
            let times = (0..4).map(|k| (from + 3_000 * k, Some(from + 55_000 + 3_000 * k + by)));
            packets(&times.collect::<Vec<_>>())
        };
        sample(&mut a, &packets(&[(0, Some(700_040_000))])).expect("arrived");
        sample(&mut a, &train(40_000, 700_000_000)).expect("arrived");
        let step = |from: i64| train(from, (700 + s) * 1_000_000);
        sample(&mut a, &step(1_000_000)).expect("arrived");
        sample(&mut a, &step(1_012_000)).expect("arrived")
    }

    #[test]
    fn a_receivers_clock_that_is_set_leaves_the_service_known() {
        let same = after_a_step_by(0);
        assert!(near(same.elapsed, 0.012) && near(same.busy.time, 0.012) && near(same.queue.most, 0.015), "{same:?}");
        for by in [-600, -4, 2, 3_600] {
            let set = after_a_step_by(by);
            assert!(near(set.elapsed, 0.012), "{by} s: {set:?}");
            assert!(set.queue.most <= Span::secs(0.016), "{by} s is no queue: {set:?}");
        }
    }

    #[test]
    fn absurd_times_are_bounded() {
        let mut a = Sampler::default();
        assert_eq!(sample(&mut a, &[]), None);
        assert_eq!(sample(&mut a, &packets(&[(0, None)])), None, "all lost");
        // Clocks that jump by hours, and times at the ends of their range.
        let wild =
            [(0, Some(50_000)), (1_000, Some(20_000_000_000)), (2_000, Some(-7)), (3_000, Some(i64::MIN / 2_000))];
        let d = sample(&mut a, &packets(&wild)).expect("arrived");
        for v in [d.elapsed, d.busy.time, d.queue.least.delay, d.queue.last].map(Span::as_secs) {
            assert!((0.0..=10.0 * wild.len() as f64).contains(&v), "{d:?}");
        }
    }
}
