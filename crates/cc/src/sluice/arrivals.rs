//! What one feedback message says: queueing delay, the time during which packets were waiting behind each other, and
//! what passed in it.

use crate::base_delay::BaseDelay;
use crate::cue::PacketResult;
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
    /// ... the bytes that it served ...
    pub(super) busy_bytes: f64,
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
                        if gap < OUTAGE {
                            d.even_time += gap;
                            d.even_squares += gap * gap;
                            d.even_packets += 1;
                        }
                    }
                }
            }
            self.last_arrival = Some(self.last_arrival.map_or(arrival, |l| l.max(arrival)));
        }
        Some(d)
    }
}
