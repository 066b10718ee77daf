//! A leaky-bucket pacer: media before padding, probe clusters at their own rate.

use crate::controller::{ProbeCluster, Target};
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Most probe clusters pending; further requests drop the oldest.
const MAX_PROBES: usize = 8;
/// A probe that could not start or end within this time is dropped (libwebrtc's `kProbeClusterTimeout`, 5 s).
const PROBE_EXPIRY: TimeDelta = TimeDelta::from_secs(5);
/// Upper bound of the media debt left by a probe (libwebrtc's `kMaxDebtInTime`).
const MAX_PROBE_DEBT: TimeDelta = TimeDelta::from_millis(500);

/// Packets of a probe leave in bursts of at least what its rate sends in this time (libwebrtc's branch 7871 of June
/// 2026: `min_probe_delta`), since timers are no finer.
const MIN_PROBE_DELTA: TimeDelta = TimeDelta::from_millis(2);
/// Where that is less than a packet of usual size, packets leave one at a time, small ones too.
const FULL_PACKET: DataSize = DataSize::from_bytes(1_200);

/// Most time by which a packet that waits may leave late without loss of rate: two ticks of a timer of 15.6 ms.
const MAX_LATENESS: TimeDelta = TimeDelta::from_millis(32);

/// Most bytes of a burst (libwebrtc as of October 2025, 3fc0730: `kMaxBurstSize`).
const MAX_BURST: DataSize = DataSize::from_bytes(63_000);
/// Least time in which a queue is to be sent (`MaybeUpdateMediaRateDueToLongQueue`).
const LEAST_LEFT: TimeDelta = TimeDelta::from_millis(1);

/// Permission to send, at a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacerDecision {
    /// Send the packet at the head of the queue, as part of this probe cluster (0 for none).
    Media {
        /// Probe cluster.
        probe: u32,
    },
    /// Send padding, as part of this probe cluster (0 for none).
    Padding {
        /// Probe cluster.
        probe: u32,
    },
    /// Nothing before this time, unless a packet is queued.
    Wait(Timestamp),
    /// Nothing until a packet is queued.
    Idle,
}

#[derive(Clone, Copy, Debug)]
struct ActiveProbe {
    cluster: ProbeCluster,
    asked: Timestamp,
    started: Option<Timestamp>,
    packets: u32,
    size: DataSize,
    /// Bytes of the present burst; zero between two.
    burst: DataSize,
}

impl ActiveProbe {
    fn next_at(&self) -> Option<Timestamp> {
        let started = self.started?;
        if !self.burst.is_zero() {
            return Some(started);
        }
        Some(started + self.cluster.rate.time_for(self.size)?)
    }
    fn on_sent(&mut self, size: DataSize) {
        self.packets += 1;
        self.size += size;
        self.burst += size;
        let least = self.cluster.rate.size_in(MIN_PROBE_DELTA);
        if least < FULL_PACKET || self.burst >= least {
            self.burst = DataSize::ZERO;
        }
    }
}

/// Rules of libwebrtc's pacer beside the bucket (as of October 2025, 3fc0730, `modules/pacing/pacing_controller.cc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// Packets leave at once until the bucket takes this long to run empty (`kDefaultBurstInterval`, 40 ms), and at most 63,000 bytes; the
    /// next ones leave once it is empty.
    pub interval: TimeDelta,
    /// Greatest mean time in the queue (`kMaxExpectedQueueLength`, 2 s): above the pacing rate, if need be, what is queued leaves
    /// until then.
    pub queue_limit: TimeDelta,
    /// Time that a packet of a burst takes to be sent.
    pub spacing: TimeDelta,
}

/// [`Bursts`], and the pacing rate that was asked for.
#[derive(Clone, Copy, Debug)]
struct Bursting {
    bursts: Bursts,
    asked: DataRate,
    /// Whether a burst has ended, so that the bucket is to run empty.
    has_ended: bool,
    /// When the last packet was sent.
    last: Timestamp,
    /// Whether the next packet has no effect on the bucket.
    is_free: bool,
}

/// Spaces packets so that the rate over any span stays near the pacing rate.
///
/// The bucket is stored as the time at which it runs empty. A packet may be sent once that time has come, and moves it
/// on by the packet's duration at the pacing rate. Idle time earns no credit. Time by which a caller's timers are late does, while
/// packets wait: otherwise a timer of 15.6 ms allows one packet in each.
#[derive(Clone, Debug)]
pub struct Pacer {
    pacing: DataRate,
    padding: DataRate,
    empty_at: Timestamp,
    padding_empty_at: Timestamp,
    probes: VecDeque<ActiveProbe>,
    media_seen: bool,
    /// Whether media waits for the bucket.
    waits: bool,
    /// When media that waited was last sent.
    waited_at: Option<Timestamp>,
    bursting: Option<Box<Bursting>>,
}

impl Pacer {
    /// A pacer at the rates of a target.
    pub fn new(target: &Target, now: Timestamp) -> Self {
        Self {
            pacing: target.pacing_rate,
            padding: target.padding_rate,
            empty_at: now,
            padding_empty_at: now,
            probes: VecDeque::new(),
            media_seen: false,
            waits: false,
            waited_at: None,
            bursting: None,
        }
    }

    /// Sends in bursts, and above the pacing rate what would wait for too long ([`Self::on_backlog`]).
    pub fn send_in_bursts(&mut self, bursts: Bursts) {
        let last = self.empty_at;
        self.bursting = Some(Box::new(Bursting { bursts, asked: self.pacing, has_ended: false, last, is_free: false }));
    }

    /// Whether [`Self::on_backlog`] has an effect.
    #[inline]
    pub fn sends_in_bursts(&self) -> bool {
        self.bursting.is_some()
    }

    /// So many bytes are queued, which have waited for `mean_age` in the mean: sets the rate above the pacing rate that sends them within
    /// the limit, if there is one.
    pub fn on_backlog(&mut self, queued: DataSize, mean_age: TimeDelta, now: Timestamp) {
        let Some(b) = &self.bursting else { return };
        let left = (b.bursts.queue_limit - mean_age).max(LEAST_LEFT);
        let needed = DataRate::from_bps_f64(queued.as_bits() as f64 / left.as_secs_f64());
        let rate = b.asked.max(needed);
        self.set_pacing(rate, now);
    }

    /// The next packet leaves whatever is in the bucket, and without an effect on it, as sound does in libwebrtc (`pace_audio_`,
    /// `account_for_audio_`); `false` takes that back. Of effect where packets leave in bursts.
    pub fn free_next(&mut self, is_free: bool) {
        if let Some(b) = &mut self.bursting {
            b.is_free = is_free;
        }
    }
    /// Whether a probe cluster is being sent, or waits.
    pub fn is_probing(&self) -> bool {
        !self.probes.is_empty()
    }

    fn set_pacing(&mut self, rate: DataRate, now: Timestamp) {
        if rate != self.pacing {
            self.empty_at = rescale(self.empty_at, now, self.pacing, rate);
            self.pacing = rate;
        }
    }

    /// Sets a new target; the bucket drains at the new rate from now on.
    pub fn set_target(&mut self, target: &Target, now: Timestamp) {
        if let Some(b) = &mut self.bursting {
            b.asked = target.pacing_rate;
        }
        self.set_pacing(target.pacing_rate, now);
        if target.padding_rate != self.padding {
            self.padding_empty_at = rescale(self.padding_empty_at, now, self.padding, target.padding_rate);
            self.padding = target.padding_rate;
        }
    }

    /// Queues a probe cluster; it starts once media has been sent.
    pub fn add_probe(&mut self, cluster: ProbeCluster, now: Timestamp) {
        if cluster.rate == DataRate::ZERO {
            return;
        }
        if self.probes.len() == MAX_PROBES {
            self.probes.pop_front();
        }
        let (size, burst) = (DataSize::ZERO, DataSize::ZERO);
        self.probes.push_back(ActiveProbe { cluster, asked: now, started: None, packets: 0, size, burst });
    }

    /// Whether packets may be due while no media is queued: padding, or those of a probe.
    #[inline]
    pub fn may_pad(&self) -> bool {
        self.padding > DataRate::ZERO || !self.probes.is_empty()
    }

    /// Whether padding decided by [`Self::poll`] is to be as small as possible ([`ProbeCluster::min_size`]).
    #[inline]
    pub fn pads_little(&self) -> bool {
        self.probes.front().is_some_and(|p| p.cluster.min_size.is_zero())
    }

    /// The decision at `now`; `media_queued` states whether media is queued.
    pub fn poll(&mut self, now: Timestamp, media_queued: bool) -> PacerDecision {
        // A probe that has started but gets no packets, for instance because padding is refused, must not block the
        // rest for ever.
        while self.probes.front().is_some_and(|p| now - p.started.unwrap_or(p.asked) > PROBE_EXPIRY) {
            self.probes.pop_front();
        }
        if (self.media_seen || media_queued)
            && let Some(p) = self.probes.front()
        {
            let at = p.next_at().unwrap_or(now);
            return match (at <= now, media_queued) {
                (false, _) => PacerDecision::Wait(at),
                (true, true) => PacerDecision::Media { probe: p.cluster.id },
                (true, false) => PacerDecision::Padding { probe: p.cluster.id },
            };
        }
        if media_queued {
            if self.empty_at <= now {
                return PacerDecision::Media { probe: 0 };
            }
            if self.bursting.is_some()
                && let Some(at) = self.next_of_burst(now)
            {
                return if at <= now { PacerDecision::Media { probe: 0 } } else { PacerDecision::Wait(at) };
            }
            self.waits = true;
            return PacerDecision::Wait(self.empty_at);
        }
        self.stop_waiting();
        if self.padding > DataRate::ZERO && self.media_seen {
            let at = self.padding_empty_at.max(self.empty_at);
            return if at <= now { PacerDecision::Padding { probe: 0 } } else { PacerDecision::Wait(at) };
        }
        PacerDecision::Idle
    }

    /// Something other than the bucket holds media back, such as a window, or what was queued has been discarded: that time earns no
    /// credit.
    #[inline]
    pub fn stop_waiting(&mut self) {
        self.waits = false;
        if let Some(b) = &mut self.bursting {
            b.has_ended = false;
        }
    }

    /// When another packet leaves before the bucket is empty, if one does.
    #[cold]
    fn next_of_burst(&mut self, now: Timestamp) -> Option<Timestamp> {
        let b = self.bursting.as_mut()?;
        let longest = self.pacing.time_for(MAX_BURST).map_or(b.bursts.interval, |t| t.min(b.bursts.interval));
        b.has_ended |= self.empty_at - now >= longest;
        (!b.has_ended).then(|| b.last + b.bursts.spacing)
    }

    /// A packet has been sent as decided by [`Self::poll`].
    #[inline]
    pub fn on_sent(&mut self, now: Timestamp, size: DataSize, is_padding: bool, probe: u32) {
        self.media_seen |= !is_padding;
        if let Some(b) = &mut self.bursting {
            if core::mem::take(&mut b.is_free) {
                return;
            }
            b.last = now;
        }
        if core::mem::take(&mut self.waits) {
            self.waited_at = Some(now);
            if let Some(b) = &mut self.bursting {
                b.has_ended = false;
            }
        }
        // All that one timer releases makes up for its lateness.
        let since = if self.waited_at == Some(now) { now - MAX_LATENESS } else { now };
        let full = advance(self.empty_at, since, size, self.pacing);
        self.empty_at = if probe == 0 { full } else { full.min(self.empty_at.max(now + MAX_PROBE_DEBT)) };
        if self.padding > DataRate::ZERO {
            self.padding_empty_at = advance(self.padding_empty_at, now, size, self.padding);
        }
        if let Some(p) = self.probes.front_mut().filter(|p| probe != 0 && p.cluster.id == probe) {
            p.started.get_or_insert(now);
            p.on_sent(size);
            if p.packets >= p.cluster.min_packets && p.size >= p.cluster.min_size {
                self.probes.pop_front();
            }
        }
    }

    /// When media may be sent that is no part of a probe; in the past while nothing holds it back.
    #[inline]
    pub fn open_at(&self) -> Timestamp {
        self.empty_at
    }

    /// How long `queued` bytes take to be sent at the pacing rate, after what is in the bucket.
    pub fn drain_time(&self, queued: DataSize, now: Timestamp) -> Option<TimeDelta> {
        Some(self.empty_at.saturating_since(now) + self.pacing.time_for(queued)?)
    }
}

/// A rate of zero blocks for this long at a time, so that a later target can take effect.
const STOPPED: TimeDelta = TimeDelta::from_secs(1);

#[inline]
fn advance(empty_at: Timestamp, now: Timestamp, size: DataSize, rate: DataRate) -> Timestamp {
    if rate == Target::UNPACED {
        return empty_at.max(now);
    }
    empty_at.max(now) + rate.time_for(size).unwrap_or(STOPPED)
}

fn rescale(empty_at: Timestamp, now: Timestamp, from: DataRate, to: DataRate) -> Timestamp {
    if empty_at <= now {
        return empty_at;
    }
    if to == Target::UNPACED {
        return now;
    }
    let left = from.size_in(empty_at - now);
    now + to.time_for(left).unwrap_or(STOPPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KB: DataSize = DataSize::from_bytes(1_000);

    fn pacer(kbps: u64, padding_kbps: u64) -> Pacer {
        let mut t = Target::paced(DataRate::from_kbps(kbps), DataRate::from_kbps(kbps));
        t.padding_rate = DataRate::from_kbps(padding_kbps);
        Pacer::new(&t, Timestamp::ZERO)
    }
    /// Runs for `ms` milliseconds with the queue always or never full; returns the media and padding packets sent.
    fn run(p: &mut Pacer, ms: i64, queued: bool) -> (u32, u32) {
        let (mut now, mut media, mut padding) = (Timestamp::ZERO, 0, 0);
        while now < Timestamp::from_millis(ms) {
            match p.poll(now, queued) {
                PacerDecision::Media { probe } => {
                    media += 1;
                    p.on_sent(now, KB, false, probe);
                }
                PacerDecision::Padding { probe } => {
                    padding += 1;
                    p.on_sent(now, KB, true, probe);
                }
                PacerDecision::Wait(t) => now = t,
                PacerDecision::Idle => break,
            }
        }
        (media, padding)
    }

    #[test]
    fn keeps_to_the_rate_exactly() {
        assert_eq!(run(&mut pacer(800, 0), 1_000, true), (100, 0));
    }

    /// Media packets of 1,000 bytes sent in a second at 800 kbit/s and this tick, with a frame of so many each `every` ticks.
    fn ticked(tick_ms: i64, frame: u32, every: i64) -> (u32, u32) {
        let mut p = pacer(800, 0);
        let (mut queued, mut sent, mut most) = (0, 0, 0);
        for tick in 0..1_000 / tick_ms {
            let now = Timestamp::from_millis(tick * tick_ms);
            queued += if tick % every == 0 { frame } else { 0 };
            let before = sent;
            while let PacerDecision::Media { probe } = p.poll(now, queued > 0) {
                p.on_sent(now, KB, false, probe);
                (queued, sent) = (queued - 1, sent + 1);
            }
            most = most.max(sent - before);
        }
        (sent, most)
    }

    #[test]
    fn late_timers_cost_no_rate_and_idle_time_earns_none() {
        // 100 packets a second are 10 ms each. By ticks of 25 ms two or three leave at once; of 50 ms, 32 ms count.
        assert_eq!(ticked(25, 1_000, 1_000), (98, 3));
        assert_eq!(ticked(50, 1_000, 1_000), (77, 4));
        // A frame of two packets each 50 ms: the second one waits for the next tick.
        assert_eq!(ticked(25, 2, 2), (40, 1));
        let mut p = pacer(800, 0);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        assert_eq!(p.poll(Timestamp::ZERO, true), PacerDecision::Wait(Timestamp::from_millis(10)));
        p.stop_waiting();
        p.on_sent(Timestamp::from_millis(30), KB, false, 0);
        assert_eq!(p.poll(Timestamp::from_millis(30), true), PacerDecision::Wait(Timestamp::from_millis(40)));
    }

    #[test]
    fn pads_only_after_media_and_at_its_own_rate() {
        assert_eq!(run(&mut pacer(800, 80), 1_000, false), (0, 0));
        let mut p = pacer(800, 80);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        assert_eq!(run(&mut p, 1_000, false), (0, 9));
    }

    #[test]
    fn a_probe_runs_at_its_rate_and_ends() {
        let mut p = pacer(80, 0);
        p.add_probe(
            ProbeCluster { id: 7, rate: DataRate::from_mbps(8), min_packets: 5, min_size: KB },
            Timestamp::ZERO,
        );
        let mut at = vec![];
        let mut now = Timestamp::ZERO;
        while at.len() < 6 {
            match p.poll(now, true) {
                PacerDecision::Media { probe } => {
                    at.push((now.as_millis(), probe));
                    p.on_sent(now, KB, false, probe);
                }
                PacerDecision::Wait(t) => now = t,
                other => unreachable!("{other:?}"),
            }
        }
        // Two packets make 2 ms at this rate.
        assert_eq!(at, [(0, 7), (0, 7), (2, 7), (2, 7), (4, 7), (500, 0)]);
    }

    #[test]
    fn a_probe_that_is_not_fed_gives_up() {
        let mut p = pacer(80, 0);
        let cluster = ProbeCluster { id: 1, rate: DataRate::from_mbps(8), min_packets: 5, min_size: KB };
        p.add_probe(cluster, Timestamp::ZERO);
        p.on_sent(Timestamp::ZERO, KB, false, 1);
        assert_eq!(p.poll(Timestamp::from_secs(5), false), PacerDecision::Padding { probe: 1 });
        assert_eq!(p.poll(Timestamp::from_millis(5_001), false), PacerDecision::Idle);
    }

    #[test]
    fn one_small_packet_is_a_probe_of_the_delay() {
        let mut p = pacer(8, 0);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        let cluster = |id, min_size| ProbeCluster { id, rate: DataRate::from_mbps(8), min_packets: 1, min_size };
        p.add_probe(cluster(1, DataSize::ZERO), Timestamp::ZERO);
        p.add_probe(cluster(2, KB), Timestamp::ZERO);
        assert!(p.pads_little());
        assert_eq!(p.poll(Timestamp::ZERO, false), PacerDecision::Padding { probe: 1 });
        p.on_sent(Timestamp::ZERO, DataSize::from_bytes(21), true, 1);
        // The other's padding is as usual.
        assert!(!p.pads_little());
        assert_eq!(p.poll(Timestamp::ZERO, false), PacerDecision::Padding { probe: 2 });
    }

    #[test]
    fn a_probe_holds_media_up_for_half_a_second_at_most() {
        let mut p = pacer(8, 0);
        let cluster = ProbeCluster { id: 1, rate: DataRate::from_mbps(8), min_packets: 3, min_size: KB };
        p.add_probe(cluster, Timestamp::ZERO);
        (0..3).for_each(|ms| p.on_sent(Timestamp::from_millis(ms), KB, false, 1));
        assert_eq!(p.poll(Timestamp::from_millis(2), true), PacerDecision::Wait(Timestamp::from_millis(502)));
    }

    /// Bytes of packets of 1,000 that leave in each burst, and when, of a queue that is never empty.
    fn bursts(p: &mut Pacer, count: usize, mut backlog: impl FnMut(&mut Pacer, Timestamp)) -> Vec<(i64, u32)> {
        let (mut now, mut all) = (Timestamp::ZERO, Vec::new());
        while all.len() < count {
            let mut packets = 0;
            let next = loop {
                backlog(p, now);
                match p.poll(now, true) {
                    PacerDecision::Media { probe } => p.on_sent(now, KB, false, probe),
                    PacerDecision::Wait(t) => break t,
                    other => unreachable!("{other:?}"),
                }
                packets += 1;
            };
            all.push((now.as_millis(), packets));
            now = next;
        }
        all
    }
    const BURSTS: Bursts =
        Bursts { interval: TimeDelta::from_millis(40), queue_limit: TimeDelta::from_secs(2), spacing: TimeDelta::ZERO };

    #[test]
    fn packets_of_a_burst_take_their_time() {
        let mut p = pacer(800, 0);
        p.send_in_bursts(Bursts { spacing: TimeDelta::from_millis(1), ..BURSTS });
        // Five of 10 ms: what leaks meanwhile has room for one more.
        let mut at = vec![];
        let mut now = Timestamp::ZERO;
        while at.len() < 7 {
            match p.poll(now, true) {
                PacerDecision::Media { probe } => {
                    at.push(now.as_millis());
                    p.on_sent(now, KB, false, probe);
                }
                PacerDecision::Wait(t) => now = t,
                other => unreachable!("{other:?}"),
            }
        }
        assert_eq!(at, [0, 1, 2, 3, 4, 50, 51]);
    }

    #[test]
    fn a_burst_is_what_the_rate_sends_in_40_ms_and_the_next_one_waits_for_the_bucket() {
        let mut p = pacer(800, 0);
        p.send_in_bursts(BURSTS);
        // A packet is 10 ms.
        assert_eq!(bursts(&mut p, 3, |_, _| ()), [(0, 4), (40, 4), (80, 4)]);
        // A frame that comes while the bucket has 20 ms left, after an empty queue, leaves at once.
        let mut p = pacer(800, 0);
        p.send_in_bursts(BURSTS);
        (0..2).for_each(|_| p.on_sent(Timestamp::ZERO, KB, false, 0));
        assert_eq!(p.poll(Timestamp::ZERO, false), PacerDecision::Idle);
        assert_eq!(p.poll(Timestamp::ZERO, true), PacerDecision::Media { probe: 0 });
        // 63,000 bytes bound it: 63 packets, and the one that exceeds them, at 80 Mbit/s.
        let mut p = pacer(80_000, 0);
        p.send_in_bursts(BURSTS);
        assert_eq!(bursts(&mut p, 1, |_, _| ())[0].1, 63);
    }

    #[test]
    fn a_free_packet_changes_nothing() {
        let mut p = pacer(800, 0);
        p.send_in_bursts(BURSTS);
        p.free_next(true);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        assert_eq!(p.open_at(), Timestamp::ZERO);
        p.free_next(true);
        p.free_next(false);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        assert_eq!(p.open_at(), Timestamp::from_millis(10));
    }

    #[test]
    fn a_long_queue_leaves_within_two_seconds_above_the_rate() {
        let mut p = pacer(80, 0);
        p.send_in_bursts(BURSTS);
        // 200,000 bytes that have waited for 1 s in the mean: 1.6 Mbit/s, hence 8 packets of 5 ms in 40 ms.
        let queued = DataSize::from_bytes(200_000);
        let all = bursts(&mut p, 2, |p, now| p.on_backlog(queued, TimeDelta::from_secs(1), now));
        assert_eq!(all, [(0, 8), (40, 8)]);
        // 10,000 bytes have 2 s: 40 kbit/s, less than the pacing rate of which a packet takes 100 ms.
        let mut p = pacer(80, 0);
        p.send_in_bursts(BURSTS);
        let all = bursts(&mut p, 2, |p, now| p.on_backlog(DataSize::from_bytes(10_000), TimeDelta::ZERO, now));
        assert_eq!(all, [(0, 1), (100, 1)]);
        // Without bursts a backlog changes nothing, and the age above the limit is a millisecond to go.
        let mut p = pacer(800, 0);
        p.on_backlog(queued, TimeDelta::from_secs(1), Timestamp::ZERO);
        assert_eq!(p.pacing, DataRate::from_kbps(800));
        p.send_in_bursts(BURSTS);
        p.on_backlog(KB, TimeDelta::from_secs(9), Timestamp::ZERO);
        assert_eq!(p.pacing, DataRate::from_mbps(8));
        // A new target counts at once.
        p.set_target(&Target::paced(DataRate::ZERO, DataRate::from_kbps(80)), Timestamp::ZERO);
        assert_eq!(p.pacing, DataRate::from_kbps(80));
    }

    proptest! {
        #[test]
        fn it_never_waits_for_the_past_nor_exceeds_its_rate(
            ops in proptest::collection::vec((0u8..8, 0u64..50_000, 0u64..3_000), 1..200),
        ) {
            let mut p = pacer(1_000, 0);
            let mut now = Timestamp::ZERO;
            let mut sent = DataSize::ZERO;
            for (op, us, size) in ops {
                now += TimeDelta::from_micros(us as i64);
                match p.poll(now, op < 6) {
                    PacerDecision::Media { probe } => {
                        p.on_sent(now, DataSize::from_bytes(size), false, probe);
                        sent += DataSize::from_bytes(size);
                        // No more than the rate allows, except for the packet just sent.
                        let allowed = DataRate::from_kbps(1_000).size_in(now - Timestamp::ZERO);
                        prop_assert!(sent.as_bytes() <= allowed.as_bytes() + size + 1);
                    }
                    PacerDecision::Wait(at) => prop_assert!(at > now),
                    PacerDecision::Idle => prop_assert!(op >= 6),
                    PacerDecision::Padding { .. } => prop_assert!(false, "no padding was asked for"),
                }
            }
        }
    }

    #[test]
    fn unpaced_packets_leave_at_one_instant() {
        let mut p = pacer(8, 0);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        // The debt in the bucket is cancelled.
        p.set_target(&Target::paced(DataRate::ZERO, Target::UNPACED), Timestamp::ZERO);
        for _ in 0..1_000 {
            assert_eq!(p.poll(Timestamp::ZERO, true), PacerDecision::Media { probe: 0 });
            p.on_sent(Timestamp::ZERO, KB, false, 0);
        }
    }

    #[test]
    fn a_new_rate_applies_to_what_the_bucket_holds() {
        let mut p = pacer(8, 0);
        p.on_sent(Timestamp::ZERO, KB, false, 0);
        assert_eq!(p.poll(Timestamp::ZERO, true), PacerDecision::Wait(Timestamp::from_secs(1)));
        p.set_target(&Target::paced(DataRate::ZERO, DataRate::from_kbps(80)), Timestamp::ZERO);
        assert_eq!(p.poll(Timestamp::ZERO, true), PacerDecision::Wait(Timestamp::from_millis(100)));
    }
}
