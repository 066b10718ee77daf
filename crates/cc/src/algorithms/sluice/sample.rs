//! First stage: what one feedback message says of its packets. Queueing delay, the time during which packets were waiting
//! behind each other, and what the link served in it.

pub(super) mod timing;
pub(super) mod usage;

use super::quantity::{Bits, Span, Time};
use crate::cue::PacketResult;
use crate::parts::base_delay::BaseDelay;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// Queueing delay from which a packet counts as having waited.
const WAITED: Span = Span::secs(0.0015);
/// Gap between arrivals from which it is an outage rather than a clump.
const OUTAGE: Span = Span::secs(0.1);
/// Greatest span of arrivals or departures that is believed.
const MAX_SPAN: Span = Span::secs(10.0);

/// Sums over the packets of one feedback message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Packets received.
    pub(super) received: u32,
    /// Packets newly reported lost.
    pub(super) lost: u32,
    /// Packets received that an earlier message had as lost.
    pub(super) revoked: u32,
    /// Packets received with a CE mark.
    pub(super) marked: u32,
    /// Size of the packets received.
    pub(super) size: Bits,
    /// Time from the last arrival of the message before to the last of this one.
    pub(super) elapsed: Span,
    /// The part of that time in which the link was busy with this flow.
    pub(super) busy: Busy,
    /// Gaps between packets that waited behind each other.
    pub(super) gaps: Gaps,
    /// Queueing delays.
    pub(super) queue: QueueDelay,
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
}

/// A queueing delay that every packet of some time has had at least.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// The delay.
    pub(super) delay: Span,
    /// Departure of the packet that had no more.
    pub(super) departure: Time,
}

/// Turns feedback into samples; carries the last arrival from one message to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    base: BaseDelay,
    /// Latest arrival, ns by the receiver's clock.
    last_arrival: Option<i64>,
    /// Departure of the packet received before.
    last_departure: Option<Time>,
}

impl Sampler {
    /// The sample of a message; `None` if no packet of it was received. `start` is the controller's start, `window` the age at
    /// which the least delay expires.
    pub(super) fn sample(&mut self, packets: &[PacketResult], start: Timestamp, window: TimeDelta) -> Option<Sample> {
        let delay_of = |p: &PacketResult| Some(p.arrival?.as_nanos().saturating_sub(p.departure.as_nanos()));
        let newest = packets.iter().rfind(|p| p.arrival.is_some())?;
        let least = packets.iter().filter_map(delay_of).min()?;
        self.base.observe(TimeDelta::from_nanos(least), newest.departure - start, window);
        let base = self.base.get()?.as_nanos();
        let begin = Time::of(packets.first()?.departure, start);
        let mut sample = Sample { begin, last_departure: Time::of(newest.departure, start), ..Sample::default() };
        for p in packets {
            let (Some(arrival), Some(delay)) = (p.arrival, delay_of(p)) else {
                sample.lost += 1;
                continue;
            };
            let queue = Span::secs(delay.saturating_sub(base) as f64 * 1e-9).min(MAX_SPAN);
            sample.add(p, Time::of(p.departure, start), queue);
            self.pass(&mut sample, p, Time::of(p.departure, start), arrival.as_nanos(), queue);
        }
        Some(sample)
    }

    /// Counts the time since the arrival before, and whether the link was busy in it.
    fn pass(&mut self, sample: &mut Sample, p: &PacketResult, departure: Time, arrival: i64, queue: Span) {
        if let Some(last) = self.last_arrival {
            let gap = Span::secs(arrival.saturating_sub(last) as f64 * 1e-9);
            if (Span::ZERO..MAX_SPAN).contains(&gap) {
                sample.elapsed += gap;
                // It was in the queue before the packet ahead had left.
                if queue >= WAITED.max(0.5 * gap) {
                    let sending = self.last_departure.map_or(Span::ZERO, |l| (departure - l).max(Span::ZERO));
                    sample.add_busy(gap, bits(p), sending);
                }
            }
        }
        self.last_departure = Some(departure);
        self.last_arrival = Some(self.last_arrival.map_or(arrival, |l| l.max(arrival)));
    }
}

fn bits(p: &PacketResult) -> Bits {
    Bits::new(p.size.as_bits() as f64)
}

impl Sample {
    /// Counts a packet received.
    fn add(&mut self, p: &PacketResult, departure: Time, queue: Span) {
        if self.received == 0 {
            self.first_departure = departure;
        }
        if self.received == 0 || queue < self.queue.least.delay {
            self.queue.least = Standing { delay: queue, departure };
        }
        self.received += 1;
        self.revoked += u32::from(p.was_lost);
        self.marked += u32::from(p.ecn == Ecn::Ce);
        self.size += bits(p);
        self.queue.last = queue;
    }

    /// Counts a gap in which the link was busy with a packet.
    fn add_busy(&mut self, gap: Span, size: Bits, sending: Span) {
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

    const WINDOW: TimeDelta = TimeDelta::from_secs(10);

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
        let d = a.sample(&packets(&train), Timestamp::ZERO, WINDOW).expect("arrived");
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
        let d = a.sample(&packets(&apart), Timestamp::ZERO, WINDOW).expect("arrived");
        assert_eq!(d.busy, Busy::default());
        assert!(near(d.elapsed, 0.041));
    }

    #[test]
    fn busy_time_goes_on_from_message_to_message_and_a_loss_is_counted() {
        let mut a = Sampler::default();
        a.sample(&packets(&[(0, Some(50_000))]), Timestamp::ZERO, WINDOW).expect("arrived");
        let next = [(1_000, Some(70_000)), (2_000, None), (3_000, Some(80_000))];
        let d = a.sample(&packets(&next), Timestamp::ZERO, WINDOW).expect("arrived");
        assert_eq!((d.received, d.lost), (2, 1));
        // 20 ms to the first, which waited 19 ms, and 10 ms to the last, which waited 27 ms.
        assert!(near(d.busy.time, 0.03), "{d:?}");
        assert!(near(d.queue.last, 0.027));
        assert!(near(d.busy.sending, 0.003), "of three, one of which was lost: {d:?}");
    }

    #[test]
    fn an_outage_is_busy_time_and_no_clump() {
        let mut a = Sampler::default();
        let d = a.sample(&packets(&[(0, Some(50_000)), (1_000, Some(250_000))]), Timestamp::ZERO, WINDOW);
        let d = d.expect("arrived");
        assert!(near(d.busy.time, 0.2));
        assert_eq!(d.gaps, Gaps::default());
    }

    #[test]
    fn absurd_times_are_bounded() {
        let mut a = Sampler::default();
        assert_eq!(a.sample(&[], Timestamp::ZERO, WINDOW), None);
        assert_eq!(a.sample(&packets(&[(0, None)]), Timestamp::ZERO, WINDOW), None, "all lost");
        // Clocks that jump by hours, and times at the ends of their range.
        let wild =
            [(0, Some(50_000)), (1_000, Some(20_000_000_000)), (2_000, Some(-7)), (3_000, Some(i64::MIN / 2_000))];
        let d = a.sample(&packets(&wild), Timestamp::ZERO, WINDOW).expect("arrived");
        for v in [d.elapsed, d.busy.time, d.queue.least.delay, d.queue.last].map(Span::as_secs) {
            assert!((0.0..=10.0 * wild.len() as f64).contains(&v), "{d:?}");
        }
    }
}
