//! A path that has become longer. A queue that this flow fills or shares follows what is sent; a delay that jumps, and then stays
//! the same while the rate changes, is the path's own.

use super::super::quantity::{Bits, Span, Time};
use super::Sample;

/// Most messages that are compared, and the time within which they were sent: others answer what this flow leaves to them in some
/// feedback intervals and round trips, and may keep the queue as long as it was.
const CAPACITY: usize = 24;
const TIME: Span = Span::secs(0.5);
/// Least delay that is asked about.
const LEAST: Span = Span::secs(0.003);
/// Range of the messages' least delays within which the delay stays the same, for frames of a few packets: measured beside 1.5 and
/// 3 ms (`docs/sluice-tried.md`). A message whose least delay is longer than the last one's by more begins with a jump.
const SAME: Span = Span::secs(0.005);
/// Time for which it has been the same from which it is worth a drain to see whether it is the path's.
const WORTH: Span = Span::secs(0.2);
/// Least deviation of the data sent from a steady rate, as time at that rate, by which a queue would have changed: frames themselves
/// deviate by half of their interval.
const BEND: Span = Span::secs(0.025);
/// Least deviation over the range of the delay: of a queue that others share, it changes by this flow's share of the link.
const FOLLOWED: f64 = 10.0;

/// Queue beyond which losses show that it may be full, and the time for which one as long is none of the path's: others that do not
/// yield keep it full, and for moments they alone lose.
const FULL: Span = Span::secs(0.05);
const FULL_TIME: Span = Span::secs(10.0);

/// Data sent up to a departure, and the least delay of the message.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Time,
    sent: Bits,
    delay: Span,
}

/// The last messages without losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Longer {
    marks: [Mark; CAPACITY],
    count: usize,
    sent: Bits,
    /// How long the delay has been the same.
    same: Span,
    /// The least delay of the message before, and that from which it has jumped, while it has not come back.
    last: Span,
    before: Option<Span>,
    /// Departure and least delay, with that of the path, of the last message with losses of a queue that may be full.
    full: Option<(Time, Span)>,
}

impl Longer {
    /// Takes a message. The delay that is the path's, where it has shown to be.
    pub(super) fn observe(&mut self, sample: &Sample) -> Option<Span> {
        let delay = sample.queue.least.delay;
        self.sent += sample.size;
        self.same = Span::ZERO;
        let last = core::mem::replace(&mut self.last, delay);
        self.before = self.before.or((delay > last + SAME).then_some(last)).filter(|before| delay > *before + LEAST);
        let whole = sample.base + delay;
        if sample.lost > 0 && delay > FULL {
            self.full = Some((sample.last_departure, whole));
        }
        // A queue that is full is no longer either, and losses show it.
        if sample.lost > 0 || sample.unreported > 0 || delay < LEAST {
            self.count = 0;
            return None;
        }
        let last = Mark { at: sample.last_departure, sent: self.sent, delay };
        self.marks[self.count % CAPACITY] = last;
        self.count += 1;
        self.before?;
        if self.full.is_some_and(|(at, full)| last.at - at <= FULL_TIME && whole > full - SAME) {
            return None;
        }
        let kept = self.recent(last).count();
        let first = *self.recent(last).last()?;
        let (least, most) = self.recent(last).fold((delay, delay), |(a, b), m| (a.min(m.delay), b.max(m.delay)));
        let (time, sent) = (last.at - first.at, last.sent - first.sent);
        if most - least > SAME || kept < 3 || time <= Span::ZERO || sent <= Bits::ZERO {
            return None;
        }
        self.same = time;
        let steady = sent / time;
        let deviation = |m: &Mark| ((m.sent - first.sent) / steady - (m.at - first.at)).abs();
        let bend = self.recent(last).map(deviation).fold(Span::ZERO, Span::max);
        if bend < BEND.max(FOLLOWED * (most - least)) {
            return None;
        }
        self.count = 0;
        Some(least)
    }

    /// The messages up to the last one, newest first.
    fn recent(&self, last: Mark) -> impl Iterator<Item = &Mark> {
        let all = (1..=self.count.min(CAPACITY)).map(|k| &self.marks[(self.count - k) % CAPACITY]);
        all.take_while(move |m| last.at - m.at <= TIME)
    }

    /// Whether the delay has been the same for some time.
    pub(super) fn is_same(&self) -> bool {
        self.same >= WORTH
    }
}

#[cfg(test)]
mod tests {
    use super::super::{QueueDelay, Standing};
    use super::*;

    /// Messages each 25 ms at a rate in Mbit/s, whose packets have all waited for `delay` s. The delay found to be the path's.
    fn drive(l: &mut Longer, from: f64, messages: &[(f64, f64)]) -> Option<Span> {
        drive_lossy(l, from, 0, messages)
    }

    /// The same where the first message has so many losses.
    fn drive_lossy(l: &mut Longer, from: f64, lost: u32, messages: &[(f64, f64)]) -> Option<Span> {
        let mut found = None;
        for (k, (mbps, delay)) in messages.iter().enumerate() {
            let at = Time::secs(from + 0.025 * k as f64);
            let least = Standing { delay: Span::secs(*delay), departure: at, ..Standing::default() };
            let sample = Sample {
                received: 10,
                lost: if k == 0 { lost } else { 0 },
                size: Bits::new(mbps * 25e3),
                last_departure: at,
                queue: QueueDelay { least, ..QueueDelay::default() },
                ..Sample::default()
            };
            found = found.or(l.observe(&sample));
        }
        found
    }

    #[test]
    fn a_delay_that_stays_while_the_rate_falls_is_the_paths() {
        let mut messages = vec![(3.0, 0.15); 6];
        messages.extend([(0.3, 0.1505); 6]);
        assert_eq!(drive(&mut Longer::default(), 0.0, &messages), Some(Span::secs(0.15)));
        assert_eq!(drive(&mut Longer::default(), 0.0, &[(3.0, 0.15); 200]), None, "a steady rate shows nothing");
    }

    #[test]
    fn a_delay_that_has_grown_little_by_little_may_be_kept_by_others() {
        let mut messages: Vec<_> = (0..30).map(|k| (3.0, 0.003 + 0.001 * f64::from(k))).collect();
        messages.extend([(3.0, 0.033); 8]);
        messages.extend([(0.3, 0.033); 8]);
        assert_eq!(drive(&mut Longer::default(), 0.0, &messages), None);
    }

    #[test]
    fn a_queue_that_follows_the_rate_and_one_that_is_full_are_queues() {
        let mut l = Longer::default();
        // Each message at 0.3 of 3 Mbit/s takes 22.5 ms off the queue.
        let shrinking =
            (0..20).map(|k| if k < 6 { (3.0, 0.3) } else { (0.3, 0.3 - 0.0225 * f64::from(k - 5).min(13.0)) });
        assert_eq!(drive(&mut l, 0.0, &shrinking.collect::<Vec<_>>()), None);
        let mut full = Longer::default();
        for k in 0..40 {
            let least =
                Standing { delay: Span::secs(0.3), departure: Time::secs(0.025 * f64::from(k)), ..Standing::default() };
            let queue = QueueDelay { least, ..QueueDelay::default() };
            let size = Bits::new(if k % 20 < 10 { 75e3 } else { 25e3 });
            let sample =
                Sample { received: 5, lost: 2, size, last_departure: least.departure, queue, ..Sample::default() };
            assert_eq!(full.observe(&sample), None);
        }
    }

    #[test]
    fn a_queue_that_was_full_a_moment_ago_is_no_path() {
        let bent = [[(3.0, 0.3); 6], [(0.3, 0.3); 6]].concat();
        let mut l = Longer::default();
        assert_eq!(drive_lossy(&mut l, 0.0, 1, &bent), None, "others keep it full");
        assert_eq!(drive(&mut l, 9.0, &bent), None);
        assert_eq!(drive(&mut l, 11.0, &bent), Some(Span::secs(0.3)), "nothing was lost for 10 s");
        // A shorter queue was not full, and what is lost in a short one is chance's.
        for (lost_at, delay) in [(0.3, 0.2), (0.04, 0.04)] {
            let mut messages = vec![(3.0, lost_at)];
            messages.extend([[(3.0, delay); 6], [(0.3, delay); 6]].concat());
            assert_eq!(drive_lossy(&mut Longer::default(), 0.0, 1, &messages), Some(Span::secs(delay)));
        }
    }
}
