//! The rate at which the link serves this flow, from the samples of the last few messages.

use super::super::quantity::{Rate, Span, Time};
use super::super::sample::{Busy, Sample, Standing};

/// Messages remembered.
const CAPACITY: usize = 32;
/// Oldest message used.
const MAX_AGE: Span = Span::secs(0.5);
/// Time over which the share of busy time is taken.
const SHARE_TIME: Span = Span::secs(0.1);
/// Least busy time that has a rate.
const LEAST_BUSY: Span = Span::secs(1e-4);

/// Service of the link in a part of its busy time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Served {
    /// Data served over busy time.
    pub(in super::super) rate: Rate,
    /// The busy time.
    pub(in super::super) busy: Span,
    /// The time in which the data served had been sent.
    pub(in super::super) sending: Span,
    /// Departure of the first packet of the messages that say so.
    pub(in super::super) since: Time,
}

impl Served {
    /// The rate at which the data had been sent; `None` if all of it left at once.
    pub(in super::super) fn sent(&self) -> Option<Rate> {
        (self.sending > Span::ZERO).then(|| self.rate * (self.busy / self.sending))
    }
}

/// The part of a sample that is remembered.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    busy: Busy,
    elapsed: Span,
    least: Standing,
    first_departure: Time,
    last_departure: Time,
}

/// The last messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Service {
    ring: [Message; CAPACITY],
    count: usize,
}

impl Service {
    /// Takes the next sample.
    pub(super) fn push(&mut self, sample: &Sample) {
        let &Sample { busy, elapsed, first_departure, last_departure, .. } = sample;
        let least = sample.queue.least;
        self.ring[self.count % CAPACITY] = Message { busy, elapsed, least, first_departure, last_departure };
        self.count += 1;
    }

    /// The messages, newest first, up to the age allowed.
    fn recent(&self) -> impl Iterator<Item = &Message> {
        let newest = if self.count == 0 { Time::START } else { self.ring[(self.count - 1) % CAPACITY].last_departure };
        let remembered = self.count.min(CAPACITY);
        let all = (1..=remembered).map(|k| &self.ring[(self.count - k) % CAPACITY]);
        all.take_while(move |m| newest - m.last_departure <= MAX_AGE)
    }

    /// Service over at least the last `time` of busy time; `None` if there was none.
    pub(super) fn served(&self, time: Span) -> Option<Served> {
        self.served_of(time, 0.0)
    }

    /// Service over at least the last `time` of busy time and so many packets; `None` if there was none.
    pub(super) fn served_of(&self, time: Span, packets: f64) -> Option<Served> {
        let (mut total, mut since) = (Busy::default(), Time::START);
        for m in self.recent() {
            total.time += m.busy.time;
            total.size += m.busy.size;
            total.sending += m.busy.sending;
            total.packets += m.busy.packets;
            since = m.first_departure;
            if total.time >= time && f64::from(total.packets) >= packets {
                break;
            }
        }
        let Busy { time: busy, size, sending, .. } = total;
        (busy > LEAST_BUSY).then(|| Served { rate: size / busy, busy, sending, since })
    }

    /// Share of the last 100 ms during which the link was busy with this flow, 0 to 1.
    pub(super) fn busy_share(&self) -> f64 {
        let (mut busy, mut elapsed) = (Span::ZERO, Span::ZERO);
        for m in self.recent() {
            busy += m.busy.time;
            elapsed += m.elapsed;
            if elapsed >= SHARE_TIME {
                break;
            }
        }
        if elapsed > Span::ZERO { (busy / elapsed).min(1.0) } else { 0.0 }
    }

    /// The least queueing delay of the last `time`.
    pub(super) fn standing(&self, time: Span) -> Option<Standing> {
        let newest = self.recent().next()?;
        let within = self.recent().take_while(|m| newest.last_departure - m.last_departure <= time);
        let least = within.min_by(|a, b| a.least.delay.as_secs().total_cmp(&b.least.delay.as_secs()))?;
        Some(least.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::sluice::quantity::Bits;

    /// A message of 50 ms with `busy` s of busy time at `rate` bit/s, and a queue of `queue` s.
    fn sample(at: f64, busy: f64, rate: f64, queue: f64) -> Sample {
        let (time, size) = (Span::secs(busy), Bits::new(rate * busy));
        let mut s = Sample {
            elapsed: Span::secs(0.05),
            busy: Busy { time, size, packets: 5, ..Busy::default() },
            first_departure: Time::secs(at - 0.05),
            last_departure: Time::secs(at),
            ..Sample::default()
        };
        s.queue.least = Standing { delay: Span::secs(queue), departure: Time::secs(at - 0.02), ..Standing::default() };
        s
    }

    fn served(s: &Service, time: f64, packets: f64) -> Option<[f64; 3]> {
        let found = s.served_of(Span::secs(time), packets)?;
        Some([found.rate.as_bps(), found.busy.as_secs(), (found.since - Time::START).as_secs()])
    }

    fn near(found: Option<[f64; 3]>, expected: [f64; 3]) {
        let found = found.expect("busy");
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-6 * e), "{found:?} {expected:?}");
    }

    #[test]
    fn the_rate_is_data_over_busy_time_of_as_many_messages_as_it_takes() {
        let mut s = Service::default();
        assert_eq!((served(&s, 0.1, 0.0), s.standing(Span::secs(0.1))), (None, None));
        for (i, rate) in [2e6, 2e6, 2e6, 0.5e6].into_iter().enumerate() {
            s.push(&sample(0.05 * (i + 1) as f64, 0.05, rate, 0.0));
        }
        near(served(&s, 0.025, 0.0), [0.5e6, 0.05, 0.15]);
        near(served(&s, 0.1, 0.0), [1.25e6, 0.1, 0.1]);
        // Five packets a message.
        near(served(&s, 0.025, 6.0), [1.25e6, 0.1, 0.1]);
    }

    #[test]
    fn an_idle_link_has_no_rate_and_old_messages_do_not_count() {
        let mut s = Service::default();
        s.push(&sample(0.0, 0.05, 2e6, 0.0));
        s.push(&sample(0.6, 0.0, 1e6, 0.0));
        assert_eq!(served(&s, 0.1, 0.0), None, "half a second is too old");
        assert_eq!(s.busy_share(), 0.0);
        s.push(&sample(0.65, 0.03, 1e6, 0.0));
        assert!((s.busy_share() - 0.3).abs() < 1e-9, "30 of 100 ms: {}", s.busy_share());
    }

    #[test]
    fn the_standing_queue_is_the_least_of_the_window() {
        let mut s = Service::default();
        for (i, queue) in [0.01, 0.05, 0.03, 0.04].into_iter().enumerate() {
            s.push(&sample(0.05 * i as f64, 0.05, 1e6, queue));
        }
        for (window, queue, departure) in [(0.0, 0.04, 0.13), (0.06, 0.03, 0.08), (0.2, 0.01, -0.02)] {
            let found = s.standing(Span::secs(window)).expect("there");
            assert_eq!(found.delay, Span::secs(queue));
            assert!((found.departure - Time::secs(departure)).abs() < Span::secs(1e-9), "{found:?}");
        }
    }

    #[test]
    fn more_messages_than_are_remembered_overwrite_the_oldest() {
        let mut s = Service::default();
        for i in 0..100 {
            s.push(&sample(0.01 * f64::from(i), 0.01, if i < 90 { 9e6 } else { 1e6 }, 0.0));
        }
        let all = s.served(Span::secs(10.0)).expect("busy");
        assert!((all.busy.as_secs() - 0.01 * CAPACITY as f64).abs() < 1e-9, "{all:?}");
    }
}
