//! What one feedback message says: queueing delay, the time during which packets were waiting behind each other, and
//! what passed in it.

use crate::cue::PacketResult;
use crate::parts::base_delay::BaseDelay;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// A packet counts as having waited from this queueing delay, s.
const WAITED: f64 = 0.0015;
/// A gap of this length is an outage rather than a clump, s.
const OUTAGE: f64 = 0.1;
/// Greatest span of arrivals or departures that is believed, s.
const MAX_SPAN: f64 = 10.0;

/// Sums over the packets of one feedback message. Times in s, since the controller's start; rates from bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Digest {
    /// Packets received ...
    pub(super) received: u32,
    /// ... newly lost ...
    pub(super) lost: u32,
    /// ... and received with a CE mark.
    pub(super) marked: u32,
    /// Bytes received.
    pub(super) bytes: f64,
    /// Time from the last arrival of the message before to the last of this one.
    pub(super) elapsed: f64,
    /// Time of these during which the link served this flow's packets without a pause ...
    pub(super) busy_time: f64,
    /// ... the bytes that it served, ...
    pub(super) busy_bytes: f64,
    /// ... their number ...
    pub(super) busy_packets: u32,
    /// ... and the time in which they had been sent.
    pub(super) busy_sent: f64,
    /// Of the gaps between these that are no outage: their sum, ...
    pub(super) even_time: f64,
    /// ... the sum of their squares, s² ...
    pub(super) even_squares: f64,
    /// ... and their number.
    pub(super) even_packets: u32,
    /// Least queueing delay, and the departure of its packet.
    pub(super) queue_least: f64,
    /// See [`Self::queue_least`].
    pub(super) least_departure: f64,
    /// Queueing delay of the packet sent last.
    pub(super) queue_last: f64,
    /// Greatest queueing delay.
    pub(super) queue_most: f64,
    /// Departure of the packet sent first of those received.
    pub(super) first_departure: f64,
    /// Departure of the packet sent last.
    pub(super) last_departure: f64,
}

/// Turns feedback into digests; carries the last arrival from one message to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    base: BaseDelay,
    last_arrival: Option<i64>,
    /// Departure of the packet received before.
    last_departure: Option<f64>,
}

impl Arrivals {
    /// The digest of a message; `None` if no packet of it was received. `start` is the zero of the times.
    pub(super) fn digest(&mut self, packets: &[PacketResult], start: Timestamp, window: TimeDelta) -> Option<Digest> {
        let delay_of = |p: &PacketResult| Some(p.arrival?.as_nanos().saturating_sub(p.departure.as_nanos()));
        let at = |t: Timestamp| (t - start).as_secs_f64();
        let newest = packets.iter().rfind(|p| p.arrival.is_some())?;
        let least = packets.iter().filter_map(delay_of).min()?;
        self.base.observe(TimeDelta::from_nanos(least), newest.departure - start, window);
        let base = self.base.get()?.as_nanos();
        let mut d = Digest { queue_least: f64::INFINITY, last_departure: at(newest.departure), ..Digest::default() };
        for p in packets {
            let (Some(arrival), Some(delay)) = (p.arrival, delay_of(p)) else {
                d.lost += 1;
                continue;
            };
            let queue = (delay.saturating_sub(base) as f64 * 1e-9).min(MAX_SPAN);
            let size = p.size.as_bytes() as f64;
            if d.received == 0 {
                d.first_departure = at(p.departure);
            }
            d.received += 1;
            d.marked += u32::from(p.ecn == Ecn::Ce);
            d.bytes += size;
            d.queue_last = queue;
            d.queue_most = d.queue_most.max(queue);
            if queue < d.queue_least {
                (d.queue_least, d.least_departure) = (queue, at(p.departure));
            }
            let arrival = arrival.as_nanos();
            if let Some(last) = self.last_arrival {
                let gap = arrival.saturating_sub(last) as f64 * 1e-9;
                if (0.0..MAX_SPAN).contains(&gap) {
                    d.elapsed += gap;
                    // It was in the queue before the packet ahead had left.
                    if queue >= WAITED.max(0.5 * gap) {
                        d.busy_time += gap;
                        d.busy_bytes += size;
                        d.busy_packets += 1;
                        d.busy_sent += self.last_departure.map_or(0.0, |l| (at(p.departure) - l).max(0.0));
                        if gap < OUTAGE {
                            d.even_time += gap;
                            d.even_squares += gap * gap;
                            d.even_packets += 1;
                        }
                    }
                }
            }
            self.last_departure = Some(at(p.departure));
            self.last_arrival = Some(self.last_arrival.map_or(arrival, |l| l.max(arrival)));
        }
        Some(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataSize, RemoteTimestamp};

    const WINDOW: TimeDelta = TimeDelta::from_secs(10);

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
        let mut a = Arrivals::default();
        // Four packets at once through 1.2 Mbit/s: 8 ms each.
        let train = [(0, Some(50_000)), (0, Some(58_000)), (0, Some(66_000)), (0, Some(74_000))];
        let d = a.digest(&packets(&train), Timestamp::ZERO, WINDOW).expect("arrived");
        assert_eq!((d.received, d.lost, d.even_packets), (4, 0, 3));
        assert!((d.busy_time - 0.024).abs() < 1e-9 && (d.busy_bytes - 3_600.0).abs() < 1e-9);
        assert_eq!((d.busy_packets, d.busy_sent), (3, 0.0));
        assert!((d.busy_bytes * 8.0 / d.busy_time - 1.2e6).abs() < 1.0);
        assert!((d.queue_most - 0.024).abs() < 1e-9 && d.queue_least == 0.0);
    }

    #[test]
    fn packets_that_did_not_wait_are_no_busy_time() {
        let mut a = Arrivals::default();
        let apart = [(0, Some(50_000)), (20_000, Some(70_000)), (40_000, Some(91_000))];
        let d = a.digest(&packets(&apart), Timestamp::ZERO, WINDOW).expect("arrived");
        assert_eq!((d.busy_time, d.busy_bytes), (0.0, 0.0));
        assert!((d.elapsed - 0.041).abs() < 1e-9);
    }

    #[test]
    fn busy_time_goes_on_from_message_to_message_and_a_loss_is_counted() {
        let mut a = Arrivals::default();
        a.digest(&packets(&[(0, Some(50_000))]), Timestamp::ZERO, WINDOW).expect("arrived");
        let next = [(1_000, Some(70_000)), (2_000, None), (3_000, Some(80_000))];
        let d = a.digest(&packets(&next), Timestamp::ZERO, WINDOW).expect("arrived");
        assert_eq!((d.received, d.lost), (2, 1));
        // 20 ms to the first, which waited 19 ms, and 10 ms to the last, which waited 27 ms.
        assert!((d.busy_time - 0.03).abs() < 1e-9, "{d:?}");
        assert!((d.queue_last - 0.027).abs() < 1e-9);
        assert!((d.busy_sent - 0.003).abs() < 1e-9, "of three, one of which was lost: {d:?}");
    }

    #[test]
    fn an_outage_is_busy_time_and_no_clump() {
        let mut a = Arrivals::default();
        let d = a.digest(&packets(&[(0, Some(50_000)), (1_000, Some(250_000))]), Timestamp::ZERO, WINDOW);
        let d = d.expect("arrived");
        assert!((d.busy_time - 0.2).abs() < 1e-9);
        assert_eq!((d.even_packets, d.even_time), (0, 0.0));
    }

    #[test]
    fn what_makes_no_sense_is_bounded() {
        let mut a = Arrivals::default();
        assert_eq!(a.digest(&[], Timestamp::ZERO, WINDOW), None);
        assert_eq!(a.digest(&packets(&[(0, None)]), Timestamp::ZERO, WINDOW), None, "all lost");
        // Clocks that jump by hours, and times at the ends of their range.
        let wild =
            [(0, Some(50_000)), (1_000, Some(20_000_000_000)), (2_000, Some(-7)), (3_000, Some(i64::MIN / 2_000))];
        let d = a.digest(&packets(&wild), Timestamp::ZERO, WINDOW).expect("arrived");
        for v in [d.elapsed, d.busy_time, d.queue_least, d.queue_most, d.queue_last] {
            assert!((0.0..=10.0 * wild.len() as f64).contains(&v), "{d:?}");
        }
    }
}
