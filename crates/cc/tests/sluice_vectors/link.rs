//! A link of first in, first out in whole microseconds, and a loss-based flow beside the one that is controlled.

/// A value by time: from each second on, the value beside it.
pub(super) type Course = Vec<(f64, f64)>;

/// The value in force at a time in µs.
pub(super) fn at(course: &Course, now: i64) -> f64 {
    let begun = course.iter().take_while(|(s, _)| s * 1e6 <= now as f64);
    begun.last().map_or(0.0, |(_, value)| *value)
}

/// Effects of a path on packets.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Capacity in bit/s; 0 serves nothing.
    pub(super) capacity: Course,
    /// Queueing delay beyond which packets are dropped, in ms.
    pub(super) limit: f64,
    /// Delay of the path before and after the queue, in ms.
    pub(super) one_way: Course,
    /// Greatest addition to a packet's delay, in ms, in order.
    pub(super) jitter: f64,
    /// The link sends what waits at these intervals, in ms, at four times its capacity; 0 for always.
    pub(super) clumps: i64,
    /// Each so many-th packet arrives later, by so many ms.
    pub(super) held_back: (u64, f64),
    /// Addition to the delay of packets by the time at which they are sent, in ms, out of order: those sent later overtake them.
    pub(super) detour: Course,
    /// Share of packets lost by chance.
    pub(super) loss: Course,
    /// Rate in bit/s of a policer with a bucket of 20,000 bits; 0 for none.
    pub(super) policer: Course,
    /// Queueing delay from which packets are marked, in ms, and the least interval of marks, in ms.
    pub(super) marks: Option<(f64, f64)>,
    /// Seconds between which a loss-based flow shares the link.
    pub(super) rival: Vec<(f64, f64)>,
    /// Rate of other packets, in bit/s.
    pub(super) others: Course,
}

impl Plan {
    /// A link of one capacity with a queue of 300 ms, 25 ms long.
    pub(super) fn even(capacity: f64) -> Self {
        let none = || vec![(0.0, 0.0)];
        Self {
            capacity: vec![(0.0, capacity)],
            limit: 300.0,
            one_way: vec![(0.0, 25.0)],
            jitter: 0.0,
            clumps: 0,
            held_back: (0, 0.0),
            detour: none(),
            loss: none(),
            policer: none(),
            marks: None,
            rival: vec![],
            others: none(),
        }
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Arrival in µs; `None` if it is lost.
    pub(super) arrival: Option<i64>,
    pub(super) is_ce: bool,
}

/// The link's state.
pub(super) struct Link {
    plan: Plan,
    /// When it has sent what it has.
    free_at: i64,
    last_arrival: i64,
    marked_at: i64,
    tokens: f64,
    filled_at: i64,
    count: u64,
    dice: Dice,
    uneven: Dice,
    rival: Rival,
    others_at: i64,
}

/// Random numbers: a linear congruential generator (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A loss-based flow: a window that grows by a packet and halves on loss, once a round trip.
struct Rival {
    next: i64,
    window: f64,
    halved_at: i64,
}

/// Range of the time that a packet takes.
const UNEVEN: f64 = 0.01;
const BUCKET: f64 = 20e3;
const RIVAL_BITS: f64 = 12e3;
const RIVAL_RTT: f64 = 40e3;

impl Link {
    pub(super) fn new(plan: &Plan) -> Self {
        let rival = Rival { next: 0, window: 4.0, halved_at: 0 };
        let (plan, others_at) = (plan.clone(), 0);
        let (free_at, last_arrival, marked_at, filled_at) = (0, 0, 0, 0);
        Self {
            plan,
            free_at,
            last_arrival,
            marked_at,
            tokens: BUCKET,
            filled_at,
            count: 0,
            dice: Dice(1),
            uneven: Dice(2),
            rival,
            others_at,
        }
    }

    /// A number from 0 to 1.
    pub(super) fn random(&mut self) -> f64 {
        self.dice.next()
    }

    /// Sends a packet at `now`. Packets of others before it go first.
    pub(super) fn send(&mut self, now: i64, bits: f64) -> Passed {
        self.send_others(now);
        self.count += 1;
        let lost = Passed { arrival: None, is_ce: false };
        if self.random() < at(&self.plan.loss, now) || self.is_policed(now, bits) {
            return lost;
        }
        let sojourn = self.free_at - now;
        let Some(left) = self.pass(now, bits) else { return lost };
        let is_ce = self.plan.marks.is_some_and(|(least, interval)| {
            sojourn as f64 > least * 1e3 && (now - self.marked_at) as f64 >= interval * 1e3
        });
        if is_ce {
            self.marked_at = now;
        }
        let jitter = (self.plan.jitter * 1e3 * self.random()) as i64;
        let arrival = left + (at(&self.plan.one_way, now) * 1e3) as i64 + jitter;
        let (each, late) = self.plan.held_back;
        let detour = at(&self.plan.detour, now);
        let late = if each > 0 && self.count.is_multiple_of(each) { late } else { detour };
        if late > 0.0 {
            return Passed { arrival: Some(arrival + (late * 1e3) as i64), is_ce };
        }
        self.last_arrival = self.last_arrival.max(arrival);
        Passed { arrival: Some(self.last_arrival), is_ce }
    }

    /// When a packet that comes at `now` has left the link; `None` if the queue is full.
    fn pass(&mut self, now: i64, bits: f64) -> Option<i64> {
        let mut begin = self.free_at.max(now);
        if (begin - now) as f64 > self.plan.limit * 1e3 {
            return None;
        }
        let mut capacity = at(&self.plan.capacity, begin);
        if capacity <= 0.0 {
            let next = self.plan.capacity.iter().find(|(s, bps)| s * 1e6 > begin as f64 && *bps > 0.0);
            let &(s, bps) = next.expect("an outage ends");
            (begin, capacity) = ((s * 1e6) as i64, bps);
        }
        if self.plan.clumps > 0 {
            // A quarter of each interval, in which four times as much is sent.
            let interval = self.plan.clumps * 1_000;
            if begin % interval > interval / 4 {
                begin = (begin / interval + 1) * interval;
            }
            capacity *= 4.0;
        }
        // Of an exactly even link, rates over different times would be equal but for rounding.
        let uneven = 1.0 + UNEVEN * (self.uneven.next() - 0.5);
        self.free_at = begin + (bits * 1e6 / capacity * uneven) as i64;
        Some(self.free_at)
    }

    fn is_policed(&mut self, now: i64, bits: f64) -> bool {
        let rate = at(&self.plan.policer, now);
        self.tokens = (self.tokens + rate * (now - self.filled_at) as f64 * 1e-6).min(BUCKET);
        self.filled_at = now;
        if rate > 0.0 && self.tokens < bits {
            return true;
        }
        self.tokens -= bits.min(self.tokens);
        false
    }

    fn send_others(&mut self, now: i64) {
        let spans = self.plan.rival.clone();
        for (from, to) in spans.into_iter().filter(|(from, _)| from * 1e6 <= now as f64) {
            self.rival.next = self.rival.next.max((from * 1e6) as i64);
            while self.rival.next <= now.min((to * 1e6) as i64) {
                let when = self.rival.next;
                let rtt = RIVAL_RTT + (self.free_at - when).max(0) as f64;
                if self.pass(when, RIVAL_BITS).is_some() {
                    self.rival.window += 1.0 / self.rival.window;
                } else if (when - self.rival.halved_at) as f64 > rtt {
                    (self.rival.window, self.rival.halved_at) = ((self.rival.window / 2.0).max(2.0), when);
                }
                self.rival.next += (rtt / self.rival.window) as i64;
            }
        }
        while self.others_at <= now {
            let (when, rate) = (self.others_at, at(&self.plan.others, self.others_at));
            if rate > 0.0 {
                self.pass(when, RIVAL_BITS);
            }
            self.others_at += if rate > 0.0 { (RIVAL_BITS * 1e6 / rate) as i64 } else { 10_000 };
        }
    }
}
