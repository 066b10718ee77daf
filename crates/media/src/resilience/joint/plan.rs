//! The value of a plan, and the choice of the best one.
//!
//! A plan has a time of playout D after capture, a share f of repair packets over windows of w frames, and j copies of each packet that is sent
//! again for the last time. Its value is the share of the pictures that are shown whole, times their quality, times what their delay leaves:
//!
//! ```text
//! U = 1 / (1 + E) · (1 + c ln(1 - s)) · (1 - Idd(D) / 93.2)
//! E = r m q(b) + v (h + r) q(o)
//! ```
//!
//! - E, the pictures that losses spoil, for each that they do not.
//! - m, the chance that short bursts leave a frame that is not whole: their losses exceed the repair packets of its window ([`TwoStates`]).
//! - v, the outages in the time of a frame that are longer than the repair packets of a window ([`OUTAGES`]); h, the frames of an outage.
//! - q(l), the chance that requests do not bring back in time what l packets lost in succession are of a frame. A request needs `one way + frame
//!   interval + detection + rest of the burst + round trip + the time to send the answers`; each further one a round trip and the receiver's
//!   slack. n of them and j copies leave p^(n + j) of the packets.
//! - r, the pictures that a missed one spoils: those from its playout until a key frame that was requested then is played,
//!   `1 + max(one way + D, 300 ms) / frame interval`; 300 ms is the least interval of key frames on request.
//! - s, the share of the rate that repair takes: x / (1 + x) with x = f + p (1 + j p^(n - 1)) of the media.
//! - c, the quality that a rate is worth, of that of a picture: [`QUALITY_OF_RATE`].
//! - Idd, the impairment by delay (ITU-T G.107, equations 7-27 and 7-28), of 93.2 that a call without impairments has.

use super::bounds::Joint;
use super::conditions::Conditions;
use super::residual::{TwoStates, Window};
use crate::audio::emodel::delay_impairment;
use weir_units::TimeDelta;

/// Shares of repair packets that are tried, of the packets of media: none to one for two.
const SHARES: [(usize, usize); 6] = [(0, 1), (1, 10), (1, 5), (1, 3), (1, 2), (3, 4)];
/// Most frames of a window.
const FRAMES: usize = 8;
/// Most packets of a window, repair packets included: within the span of a repair packet, and few enough to be judged in time.
const PACKETS: usize = 160;
/// Most copies of a packet that is sent again for the last time.
const COPIES: u8 = 3;
/// Longest burst that is judged, in packets: longer ones are mended by nothing here.
const LONGEST: f64 = 1e4;
/// Distance of the times of playout that are tried.
const PLAYOUT_STEP: TimeDelta = TimeDelta::from_millis(20);
/// Moments of a burst at which a lost packet is looked at: the earlier in it, the longer until the loss is seen.
const MOMENTS: usize = 4;
/// Outages are taken as evenly long between these parts of their mean: a code mends those of no more packets than its window has repair
/// packets. Chosen here.
const OUTAGES: (f64, f64) = (0.5, 1.5);
/// Time that a packet takes of that between packets of media where many are sent again: controllers pace at twice the rate or more
/// (libwebrtc's `kDefaultPaceMultiplier` is 2.5).
const PACED: f64 = 0.5;
/// Time for which a missing packet may be late, and time beyond the round trip before it is requested again: those of
/// session's requests (`NackConfig`).
const DETECTION: TimeDelta = TimeDelta::from_millis(10);
const SLACK: TimeDelta = TimeDelta::from_millis(10);
/// Least interval of key frames on request (the session's `PictureFeedback`).
const KEY_FRAMES: TimeDelta = TimeDelta::from_millis(300);
/// Quality of a factor e of the rate, of that of a picture: 2.5 dB of PSNR for each doubling over the 20 dB between a picture and one that is
/// spoilt, 2.5 / ln 2 / 20. The first is a mean of OpenH264 at 250 to 1,000 kbit/s (320x240, clips `sports` and `hand-held`), the second a
/// rough reading of the same.
const QUALITY_OF_RATE: f64 = 0.18;
/// Rating of a call without impairments (ITU-T G.107, section 7.7).
const BEST_RATING: f64 = 93.2;
/// Another plan has to be worth so much more than the one in force: a half per cent, chosen here.
const MARGIN: f64 = 1.005;

/// Measures against losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// From capture to playout.
    pub playout: TimeDelta,
    /// Repair packets for so many packets of media.
    pub share: (usize, usize),
    /// Frames over which a repair packet goes: the newest, and those before it.
    pub window: usize,
    /// Copies of a packet that is sent again for the last time.
    pub copies: u8,
}

impl Plan {
    /// Repair packets for each packet of media.
    pub fn repairs_for_each(&self) -> f64 {
        self.share.0 as f64 / self.share.1 as f64
    }
}

/// Finds plans.
#[derive(Clone, Copy, Debug)]
pub struct Planner {
    bounds: Joint,
    plan: Plan,
}

/// The chances of a share and a window, which are the same for each time of playout.
struct Code {
    share: (usize, usize),
    window: usize,
    /// Its repair packets.
    repairs: f64,
    /// The chance that a frame is not whole.
    missed: f64,
}

impl Planner {
    /// A planner within these bounds. Before losses are seen nothing is repaired, and playout is at the earliest.
    pub fn new(bounds: Joint) -> Self {
        let latest = bounds.latest.max(TimeDelta::ZERO);
        let bounds = Joint { earliest: bounds.earliest.max(TimeDelta::ZERO).min(latest), latest, ..bounds };
        Self { bounds, plan: Plan { playout: bounds.earliest, share: SHARES[0], window: 1, copies: 0 } }
    }

    /// The plan in force.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// The latest playout, for which pictures that are not whole wait.
    pub fn latest(&self) -> TimeDelta {
        self.bounds.latest
    }

    /// Takes the best plan under these conditions, if it is worth a change.
    pub fn update(&mut self, c: &Conditions) -> Plan {
        let codes = self.codes(c);
        let before = codes.iter().find(|code| (code.share, code.window) == (self.plan.share, self.plan.window));
        let before = before.map_or(0.0, |code| self.value(c, code, self.plan.playout, self.plan.copies));
        let (mut best, mut plan) = (before * MARGIN, self.plan);
        let Joint { earliest, latest, requests } = self.bounds;
        let mut playout = earliest;
        loop {
            for code in codes.iter().filter(|code| reaches(c, code, playout) || code.share.0 == 0) {
                for copies in 0..=if requests && c.loss + c.outages > 0.0 { COPIES } else { 0 } {
                    let value = self.value(c, code, playout, copies);
                    if value > best {
                        (best, plan) = (value, Plan { playout, share: code.share, window: code.window, copies });
                    }
                }
            }
            if playout >= latest {
                break;
            }
            playout = (playout + PLAYOUT_STEP).min(latest);
        }
        // A share grows by one step at a time: the encoder has to make room for it, or frames wait.
        let place = |share| SHARES.iter().position(|s| *s == share).unwrap_or(0);
        plan.share = SHARES[place(plan.share).min(place(self.plan.share) + 1)];
        self.plan = plan;
        plan
    }

    /// All codes that can be of use, with what each leaves.
    fn codes(&self, c: &Conditions) -> Vec<Code> {
        let path = TwoStates::new(c.loss, c.burst);
        // The rate is that of all packets: the more of them repair, the fewer a frame has.
        let packets_of = |share: (usize, usize)| {
            let packets = c.packets / (1.0 + share.0 as f64 / share.1 as f64);
            (packets.round() as usize).clamp(1, PACKETS)
        };
        let frame = packets_of(SHARES[0]);
        let nothing = Window { frame, media: frame, repairs: 0 };
        let mut all = vec![Code { share: SHARES[0], window: 1, repairs: 0.0, missed: path.missed(nothing) }];
        if c.loss + c.outages <= 0.0 {
            return all;
        }
        for window in 1..=FRAMES {
            for share in &SHARES[1..] {
                let frame = packets_of(*share);
                let media = window * frame;
                let repairs = media * share.0 / share.1;
                if repairs == 0 || media + repairs > PACKETS {
                    continue;
                }
                let missed = path.missed(Window { frame, media, repairs });
                let code = Code { share: *share, window, repairs: repairs as f64, missed };
                if reaches(c, &code, self.bounds.latest) {
                    all.push(code);
                }
            }
        }
        all
    }

    /// U of a plan.
    fn value(&self, c: &Conditions, code: &Code, playout: TimeDelta, copies: u8) -> f64 {
        let one_way = c.rtt / 2;
        if playout < one_way + c.interval / 2 && playout < self.bounds.latest {
            // Frames without a loss would be late, too.
            return 0.0;
        }
        let interval = c.interval.as_secs_f64().max(1e-3);
        let after = 1.0 + (one_way + playout).max(KEY_FRAMES).as_secs_f64() / interval;
        let left = |burst| if self.bounds.requests { left(c, burst, playout, copies) } else { (1.0, 0.0) };
        let (short, answers) = left(c.burst);
        let mut spoilt = after * code.missed * short;
        let mut extra = code.share.0 as f64 / code.share.1 as f64 + c.loss * answers;
        if c.outages > 0.0 {
            let (long, answers) = left(c.outage);
            extra += c.outages * answers;
            let beyond =
                (OUTAGES.1 - code.repairs / c.outage).clamp(0.0, OUTAGES.1 - OUTAGES.0) / (OUTAGES.1 - OUTAGES.0);
            spoilt += beyond * c.outages / c.outage * c.packets * (c.outage / c.packets + after) * long;
        }
        let quality = (1.0 - QUALITY_OF_RATE * libm::log(1.0 + extra)).max(0.0);
        let delay = (1.0 - delay_impairment(playout) / BEST_RATING).max(0.0);
        quality * delay / (1.0 + spoilt)
    }
}

/// The chance that requests do not make a frame whole that has packets of a burst of this length, and the packets sent again for each that
/// is lost.
fn left(c: &Conditions, burst: f64, playout: TimeDelta, copies: u8) -> (f64, f64) {
    let loss = (c.loss + c.outages).min(1.0);
    let apart = c.interval.mul_f64(1.0 / c.packets.max(1.0));
    let burst = burst.min(LONGEST);
    let sending = apart.mul_f64(PACED * burst * f64::from(1 + copies));
    let rest = apart.mul_f64(burst - 1.0);
    let missing = burst.min(c.packets).max(1.0);
    let (mut left, mut answers) = (0.0, 0.0);
    for moment in 0..MOMENTS {
        let rest = rest.mul_f64((moment as f64 + 0.5) / MOMENTS as f64);
        let time = playout - (c.rtt / 2 + c.interval + DETECTION + rest + sending) - c.rtt;
        if time < TimeDelta::ZERO {
            left += 1.0;
            continue;
        }
        let again = (c.rtt + SLACK).max(TimeDelta::from_millis(1));
        let rounds = 1 + time.as_nanos() / again.as_nanos();
        let (before_last, rounds) = ((rounds - 1) as f64, rounds as f64);
        let each = libm::pow(loss, rounds + f64::from(copies));
        left += 1.0 - libm::pow(1.0 - each, missing);
        answers += 1.0 + f64::from(copies) * libm::pow(loss, before_last);
    }
    (left / MOMENTS as f64, answers / MOMENTS as f64)
}

/// Whether the last frame of a window arrives by this playout of the first.
fn reaches(c: &Conditions, code: &Code, playout: TimeDelta) -> bool {
    c.rtt / 2 + c.interval * code.window as i64 <= playout
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }

    fn path(loss: f64, burst: f64, one_way: i64) -> Conditions {
        let interval = TimeDelta::from_nanos(33_333_333);
        Conditions { loss, burst, outages: 0.0, outage: 1.0, rtt: ms(2 * one_way), packets: 4.0, interval }
    }

    /// All packets are lost for 100 ms in every 3 s.
    fn outages(one_way: i64) -> Conditions {
        Conditions { outages: 0.0333, outage: 12.0, ..path(0.0, 1.0, one_way) }
    }

    /// The plan under lasting conditions, to which the share of repair has grown.
    fn planned(bounds: Joint, c: Conditions) -> Plan {
        let mut planner = Planner::new(bounds);
        (0..SHARES.len()).map(|_| planner.update(&c)).last().expect("plans")
    }

    fn fixed(at: i64) -> Joint {
        Joint { earliest: ms(at), latest: ms(at), requests: true }
    }

    #[test]
    fn a_value_is_that_of_hand() {
        // One packet a frame beside half a repair packet, 10 % by chance, no requests: m of a window of two frames is 0.019.
        let c = Conditions { packets: 1.5, ..path(0.1, 1.0, 20) };
        let planner = Planner::new(Joint { requests: false, ..fixed(200) });
        let codes = planner.codes(&c);
        let code = codes.iter().find(|code| code.share == (1, 2) && code.window == 2).expect("tried");
        assert!((code.missed - 0.019).abs() < 1e-12);
        // 300 ms are nine intervals; a half more takes a third of the rate.
        let expected =
            1.0 / (1.0 + 10.0 * 0.019) * (1.0 - 0.18 * libm::log(1.5)) * (1.0 - delay_impairment(ms(200)) / 93.2);
        assert!((planner.value(&c, code, ms(200), 0) - expected).abs() < 1e-6);
        let c = Conditions { packets: 1.0, ..c };
        // Requests: 20 ms one way, 33.3 of the frame, 10 until it is missed, 16.7 to be sent, and 40 there and back fit once into 130 ms,
        // with a copy (another 16.7) not at all.
        let (not, answers) = left(&c, 1.0, ms(130), 0);
        assert!((not - 0.1).abs() < 1e-9 && (answers - 1.0).abs() < 1e-9, "{not} {answers}");
        assert_eq!(left(&c, 1.0, ms(130), 1), (1.0, 0.0));
        // With 50 ms more there is a second one, or a copy.
        let (not, answers) = left(&c, 1.0, ms(180), 0);
        assert!((not - 0.01).abs() < 1e-9 && (answers - 1.0).abs() < 1e-9);
        let (not, answers) = left(&c, 1.0, ms(137), 1);
        assert!((not - 0.01).abs() < 1e-9 && (answers - 2.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_done_without_losses_and_requests_alone_where_rounds_fit() {
        assert_eq!(planned(fixed(200), path(0.0, 1.0, 100)).share, (0, 1));
        let plan = planned(Joint::default(), path(0.0, 1.0, 20));
        assert_eq!((plan.share, plan.playout), ((0, 1), ms(100)));
        let plan = planned(fixed(200), path(0.02, 1.0, 20));
        assert_eq!(plan.share, (0, 1), "{plan:?}");
    }

    #[test]
    fn a_code_stands_in_where_no_round_fits_and_a_window_spans_bursts() {
        let plan = planned(fixed(200), path(0.02, 1.0, 100));
        assert!(plan.share.0 > 0, "{plan:?}");
        let more = planned(fixed(200), path(0.08, 1.0, 100));
        assert!(more.share.0 * plan.share.1 > plan.share.0 * more.share.1, "{plan:?} {more:?}");
        let bursts = planned(fixed(300), path(0.05, 3.0, 140));
        assert!(bursts.share.0 > 0 && bursts.window >= 2, "{bursts:?}");
        // An outage of all packets for 100 ms in 3 s is beyond each code.
        assert_eq!(planned(fixed(200), outages(100)).share, (0, 1));
    }

    #[test]
    fn playout_is_later_where_that_lets_requests_mend_an_outage() {
        let plan = planned(Joint::default(), outages(20));
        assert!(plan.share == (0, 1) && plan.playout > ms(200), "{plan:?}");
        // Where there are no requests, delay buys nothing.
        let plan = planned(Joint { requests: false, ..Joint::default() }, outages(20));
        assert_eq!((plan.share, plan.playout), ((0, 1), ms(100)));
    }

    #[test]
    fn a_plan_stays_while_another_is_hardly_better() {
        let mut planner = Planner::new(Joint::default());
        let mut changes = 0;
        let mut before = planner.update(&path(0.05, 1.5, 60));
        for i in 0..200 {
            let plan = planner.update(&path(0.05 + 0.002 * f64::from(i % 5 - 2) / 2.0, 1.5, 60));
            changes += u32::from(plan != before);
            before = plan;
        }
        assert!(changes <= 4, "{changes}");
    }

    #[test]
    fn a_share_grows_by_a_step_at_a_time() {
        let mut planner = Planner::new(fixed(200));
        let shares: Vec<_> = (0..8).map(|_| planner.update(&path(0.1, 1.0, 100)).share).collect();
        assert_eq!(shares[..3], [(1, 10), (1, 5), (1, 3)]);
        assert_eq!(planner.update(&path(0.0, 1.0, 100)).share, (0, 1));
    }

    proptest! {
        #[test]
        fn any_conditions_have_a_plan_within_the_bounds(
            loss in 0.0f64..=1.0, burst in 1.0f64..1e6, outages in 0.0f64..=1.0, outage in 1.0f64..1e12,
            rtt in 0i64..100_000, packets in 1.0f64..1e5, interval in 8i64..500, earliest in -10i64..2_000, latest in -10i64..2_000, requests: bool,
        ) {
            let c = Conditions { loss, burst, outages, outage, rtt: ms(rtt), packets, interval: ms(interval) };
            let bounds = Joint { earliest: ms(earliest), latest: ms(latest), requests };
            let plan = planned(bounds, c);
            prop_assert!(plan.playout >= TimeDelta::ZERO && plan.playout <= ms(latest.max(0)));
            prop_assert!((1..=FRAMES).contains(&plan.window) && plan.copies <= COPIES);
            prop_assert_eq!(plan, planned(bounds, c));
        }
    }
}
