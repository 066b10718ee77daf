//! Timing of RTCP packets: RFC 3550, section 6.3, with the early-feedback rules of RFC 4585, section 3.5.
//!
//! Controllers' report plans are not randomised: with two members no synchronisation has to be avoided. RTCP's 5 % is
//! still respected, by the randomised interval of RFC 3550, whichever is longer.

use rand::{Rng, RngExt};
use weir_cc::ReportPlan;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Share of the session bandwidth for RTCP (RFC 3550, section 6.2: RECOMMENDED 5 %).
pub const RTCP_BANDWIDTH_SHARE: f64 = 0.05;
/// Share of the RTCP bandwidth dedicated to senders while they are at most this share of the members (RFC 3550,
/// section 6.2).
const SENDER_SHARE: f64 = 0.25;
/// e - 3/2: compensates for the bias of timer reconsideration (RFC 3550, section 6.3.1).
const COMPENSATION: f64 = core::f64::consts::E - 1.5;
/// Weight of a new packet in avg_rtcp_size (RFC 3550, section 6.3.3).
const SIZE_WEIGHT: f64 = 1.0 / 16.0;
/// Initial avg_rtcp_size in bytes, UDP and IP headers included: an SR with one block and SDES (RFC 3550, section 6.3.2,
/// asks for the likely size of the first packet).
const FIRST_SIZE: f64 = 120.0;
/// Round-trip time assumed by a plan until one is measured; RFC 8298 and RFC 9002 have similar assumptions. It is low
/// so that the first reports are early.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(250);

/// Least spacing of a subflow's packets, so that none follows at once.
const LEAST_SPACING: TimeDelta = TimeDelta::from_millis(1);

/// Inputs of the timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtcpTimerConfig {
    /// Session bandwidth; RTCP's share of it is [`RTCP_BANDWIDTH_SHARE`].
    pub session_bandwidth: DataRate,
    /// Least average interval of regular packets (RFC 4585, section 3.4 k); zero for none.
    pub t_rr_interval: TimeDelta,
    /// Least calculated interval Tmin (RFC 3550, section 6.3.1); zero in RFC 4585's profile.
    pub minimum: TimeDelta,
    /// Members of the session, this end included.
    pub members: u32,
    /// Members that send media, this end included.
    pub senders: u32,
    /// Whether this end sends media.
    pub we_sent: bool,
    /// Interval required by a controller; replaces `t_rr_interval`.
    pub plan: Option<ReportPlan>,
}

/// The timer of one session member. Point to point: `T_dither_max` and the initial `Tmin` are zero
/// (RFC 4585, sections 3.5.2 and 3.4).
///
/// The timer does not wake for a regular transmission that `T_rr_interval` would suppress: the next one is set at once
/// to the later of `tn` and `t_rr_last + T_rr_current_interval`, which only omits random draws without effect.
///
/// A [`ReportPlan`] derives `T_rr_interval` from the round-trip time. It is then not randomised: two members need not
/// be desynchronised, and controllers would take reports before the planned time for early ones. The interval by RTCP's
/// bandwidth share is still randomised, and takes precedence if it is longer, even than the plan's longest interval.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct RtcpTimer {
    next: Timestamp,
    early_allowed_at: Timestamp,
    config: RtcpTimerConfig,
    average_size: f64,
    round_trip: Option<TimeDelta>,
    last: Timestamp,
    /// The last interval drawn by RTCP's share.
    drawn: TimeDelta,
    /// Packets that RTCP's share has to hold in each interval.
    parts: u32,
}

impl RtcpTimer {
    /// A timer whose first regular packet is due a random fraction of the interval after `now`.
    pub fn new(config: RtcpTimerConfig, rng: &mut impl Rng, now: Timestamp) -> Self {
        let mut t = Self {
            config,
            average_size: FIRST_SIZE,
            round_trip: None,
            last: now,
            drawn: TimeDelta::ZERO,
            parts: 1,
            next: now,
            early_allowed_at: now,
        };
        t.drawn = t.interval(rng);
        t.next = now + t.drawn;
        t
    }

    /// A round-trip time was measured: a plan uses it from the next packet on; the first one applies at once.
    pub fn on_round_trip(&mut self, rtt: TimeDelta) {
        let first = self.round_trip.replace(rtt).is_none();
        if first && self.last < self.next {
            let planned = self.last + self.planned().max(self.drawn);
            self.next = self.next.min(planned);
        }
    }

    /// Interval of regular packets by the plan; zero without one.
    fn planned(&self) -> TimeDelta {
        self.config.plan.map_or(TimeDelta::ZERO, |p| {
            let rtt = self.round_trip.unwrap_or(FIRST_ROUND_TRIP);
            rtt.mul_f64(p.min_round_trips.max(0.0)).max(p.min_interval).min(p.max_interval)
        })
    }

    /// The session bandwidth, `T_rr_interval`, the plan and the shares have changed; this takes effect from the next
    /// packet.
    pub fn set_config(&mut self, config: RtcpTimerConfig) {
        self.config = config;
    }
    /// The timer's current inputs.
    pub fn config(&self) -> &RtcpTimerConfig {
        &self.config
    }

    /// When the next regular packet is due.
    pub fn next_regular(&self) -> Timestamp {
        self.next
    }

    /// Mean of packet sizes, UDP and IP headers included.
    pub fn average_size(&self) -> DataSize {
        DataSize::from_bytes(self.average_size as u64)
    }

    /// Sets how many packets this end sends in each interval: the regular one, and those of subflows.
    pub(crate) fn set_parts(&mut self, parts: u32) {
        self.parts = parts.max(1);
    }

    /// The spacing to the next packet of a subflow, in the mean `factor` times that of regular packets. A plan's reports
    /// are neither spaced by the factor nor randomised.
    pub(crate) fn draw(&self, factor: f64, rng: &mut impl Rng) -> TimeDelta {
        let share = self.interval(rng);
        let spacing = match self.config.plan {
            Some(_) => self.planned().max(share),
            None => self.config.t_rr_interval.mul_f64(rng.random_range(0.5..1.5)).max(share).mul_f64(factor),
        };
        spacing.max(LEAST_SPACING)
    }

    /// The mean spacing of regular packets.
    pub(crate) fn mean_interval(&self) -> TimeDelta {
        let planned = self.config.plan.map_or(self.config.t_rr_interval, |_| self.planned());
        self.calculated_interval().max(planned)
    }

    /// RTCP's share of the session bandwidth in bit/s, of both ends together.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.config.session_bandwidth.as_bps_f64() * RTCP_BANDWIDTH_SHARE
    }

    /// Deterministic calculated interval T_d (RFC 3550, section 6.3.1).
    pub fn calculated_interval(&self) -> TimeDelta {
        let c = &self.config;
        let mut bandwidth = self.bandwidth() / f64::from(self.parts);
        let mut n = f64::from(c.members);
        if f64::from(c.senders) <= n * SENDER_SHARE {
            let (share, count) =
                if c.we_sent { (SENDER_SHARE, c.senders) } else { (1.0 - SENDER_SHARE, c.members - c.senders) };
            bandwidth *= share;
            n = f64::from(count);
        }
        TimeDelta::from_secs_f64(self.average_size * 8.0 * n / bandwidth.max(1.0)).max(c.minimum)
    }

    fn interval(&self, rng: &mut impl Rng) -> TimeDelta {
        let drawn = rng.random_range(0.5..1.5);
        // Without reconsideration the compensation leaves more than RTCP's share, which several packets must not take.
        self.calculated_interval().mul_f64(if self.parts > 1 { drawn } else { drawn / COMPENSATION })
    }

    /// Whether an early feedback packet may be sent at `now`; if not, feedback waits for the regular packet.
    pub fn may_send_early(&self, now: Timestamp) -> bool {
        now >= self.early_allowed_at && now < self.next
    }

    /// The time from which an early feedback packet may be sent, if that is before the next regular packet.
    pub fn early_from(&self) -> Timestamp {
        self.early_allowed_at
    }

    /// A regular packet was sent.
    pub fn on_regular_sent(&mut self, size: DataSize, rng: &mut impl Rng, now: Timestamp) {
        self.on_packet(size);
        let spacing = match self.config.plan {
            Some(_) => self.planned(),
            None => self.config.t_rr_interval.mul_f64(rng.random_range(0.5..1.5)),
        };
        self.last = now;
        self.early_allowed_at = now;
        self.drawn = self.interval(rng);
        self.next = now + self.drawn.max(spacing);
    }

    /// An early packet was sent: the next regular one is skipped (RFC 4585, section 3.5.2, step 6). A plan's reports
    /// are part of the controller and are not skipped, unless RTCP's bandwidth share spaces them: then the rule holds.
    /// Either way there is at most one early packet between two regular ones.
    pub fn on_early_sent(&mut self, size: DataSize, rng: &mut impl Rng, now: Timestamp) {
        self.on_packet(size);
        let tn = self.last + self.interval(rng).max(self.planned()) * 2;
        self.early_allowed_at = tn.max(now);
        if self.config.plan.is_none() || self.drawn > self.planned() {
            self.next = self.next.max(tn);
        }
    }

    /// An RTCP packet was received, or sent outside these rules: updates avg_rtcp_size.
    pub fn on_packet(&mut self, size: DataSize) {
        self.average_size += SIZE_WEIGHT * (size.as_bytes() as f64 - self.average_size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn config(kbps: u64, we_sent: bool) -> RtcpTimerConfig {
        RtcpTimerConfig {
            session_bandwidth: DataRate::from_kbps(kbps),
            t_rr_interval: TimeDelta::ZERO,
            minimum: TimeDelta::ZERO,
            members: 2,
            senders: 1,
            we_sent,
            plan: None,
        }
    }

    fn plan() -> ReportPlan {
        ReportPlan {
            min_round_trips: 2.0,
            min_interval: TimeDelta::from_millis(100),
            max_interval: TimeDelta::from_secs(1),
            extended: true,
            early: true,
        }
    }

    #[test]
    fn a_plan_follows_the_round_trip_between_its_bounds_and_inside_the_share() {
        let next = |kbps, rtt: Option<i64>| {
            let mut rng = Pcg64Mcg::seed_from_u64(5);
            let mut t = RtcpTimer::new(
                RtcpTimerConfig { plan: Some(plan()), ..config(kbps, false) },
                &mut rng,
                Timestamp::ZERO,
            );
            let now = t.next_regular();
            t.on_regular_sent(DataSize::from_bytes(120), &mut rng, now);
            if let Some(ms) = rtt {
                t.on_round_trip(TimeDelta::from_millis(ms));
            }
            (t.next_regular() - now).as_millis()
        };
        // 40 ms at most by the share of 960 kbit/s.
        assert_eq!([None, Some(150), Some(10), Some(5_000)].map(|rtt| next(960, rtt)), [500, 300, 100, 500]);
        // 4.9 s on average by the share of 8 kbit/s, regardless of the plan.
        assert!((1_900..=6_000).contains(&next(8, Some(10))));
    }

    #[test]
    fn an_early_packet_leaves_the_next_planned_one() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let c = RtcpTimerConfig { plan: Some(plan()), ..config(960, false) };
        let mut t = RtcpTimer::new(c, &mut rng, Timestamp::ZERO);
        t.on_round_trip(TimeDelta::from_millis(100));
        let start = t.next_regular();
        t.on_regular_sent(DataSize::from_bytes(120), &mut rng, start);
        let at = |ms| start + TimeDelta::from_millis(ms);
        assert_eq!(t.next_regular(), at(200));
        assert!(t.may_send_early(at(50)));
        t.on_early_sent(DataSize::from_bytes(120), &mut rng, at(50));
        assert_eq!(t.next_regular(), at(200));
        assert!(!t.may_send_early(at(60)) && !t.may_send_early(at(199)));
        t.on_regular_sent(DataSize::from_bytes(120), &mut rng, at(200));
        assert!(t.may_send_early(at(210)));
        // Where the bandwidth share spaces the reports, the next one is skipped.
        let mut t = RtcpTimer::new(RtcpTimerConfig { plan: Some(plan()), ..config(8, false) }, &mut rng, start);
        let first = t.next_regular();
        t.on_early_sent(DataSize::from_bytes(120), &mut rng, start);
        assert!(t.next_regular() > first);
    }

    #[test]
    fn two_members_share_five_percent() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let t = RtcpTimer::new(config(960, false), &mut rng, Timestamp::ZERO);
        // 120 bytes x 8 x 2 members over 48 kbit/s
        assert_eq!(t.calculated_interval(), TimeDelta::from_millis(40));
    }

    #[test]
    fn the_minimum_holds_where_the_share_is_shorter() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let interval = |ms| {
            let c = RtcpTimerConfig { minimum: TimeDelta::from_millis(ms), ..config(960, false) };
            RtcpTimer::new(c, &mut rng, Timestamp::ZERO).calculated_interval()
        };
        assert_eq!([39, 40, 375].map(interval), [40, 40, 375].map(TimeDelta::from_millis));
    }

    #[test]
    fn receivers_keep_three_quarters_of_large_groups() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let c = RtcpTimerConfig { members: 10, senders: 1, ..config(960, false) };
        let t = RtcpTimer::new(c, &mut rng, Timestamp::ZERO);
        assert_eq!(t.calculated_interval(), TimeDelta::from_millis(240));
        let t = RtcpTimer::new(RtcpTimerConfig { we_sent: true, ..c }, &mut rng, Timestamp::ZERO);
        assert_eq!(t.calculated_interval(), TimeDelta::from_millis(80));
    }

    #[test]
    fn the_mean_interval_is_the_calculated_one_less_the_compensation() {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut t = RtcpTimer::new(config(960, false), &mut rng, Timestamp::ZERO);
        let (mut now, n) = (Timestamp::ZERO, 20_000);
        for _ in 0..n {
            let wait = t.next_regular() - now;
            assert!(wait >= TimeDelta::from_micros(16_415) && wait <= TimeDelta::from_micros(49_247), "{wait}");
            now = t.next_regular();
            t.on_regular_sent(DataSize::from_bytes(120), &mut rng, now);
        }
        let mean = now.as_secs_f64() / f64::from(n);
        assert!((0.0325..0.0333).contains(&mean), "{mean}");
    }

    #[test]
    fn t_rr_interval_spaces_regular_packets() {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let c = RtcpTimerConfig { t_rr_interval: TimeDelta::from_secs(1), ..config(960, false) };
        let mut t = RtcpTimer::new(c, &mut rng, Timestamp::ZERO);
        let (mut now, n) = (Timestamp::ZERO, 2_000);
        for _ in 0..n {
            now = t.next_regular();
            t.on_regular_sent(DataSize::from_bytes(120), &mut rng, now);
        }
        let mean = now.as_secs_f64() / f64::from(n);
        assert!((0.98..1.02).contains(&mean), "{mean}");
    }

    #[test]
    fn early_feedback_costs_the_next_regular_packet() {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let mut t = RtcpTimer::new(config(96, false), &mut rng, Timestamp::ZERO);
        let first = t.next_regular();
        let now = Timestamp::from_millis(50);
        assert!(t.may_send_early(now));
        t.on_early_sent(DataSize::from_bytes(120), &mut rng, now);
        assert!(!t.may_send_early(now));
        assert!(t.next_regular() >= first && t.next_regular() > now);
        let next = t.next_regular();
        t.on_regular_sent(DataSize::from_bytes(120), &mut rng, next);
        assert!(t.may_send_early(next));
    }
}
