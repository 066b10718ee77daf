//! Calls with a cause at a known time.

use super::kinds::{Kind, MAGNITUDES};
use super::{LENGTH, ONSET};
use crate::draw::Draw;
use std::fmt::Write as _;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_timeline::{
    CandidatePair, Direction, Estimate, EstimateKind, NetworkType, PairChange, Recording, Rtcp, RtcpKind,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The recorded flow.
pub(super) const FLOW: &str = "video";
/// Ranges of the draws, each uniform in its logarithm: rate in bit/s, delay one way in s, the queue's room in s.
const RATE: (f64, f64) = (2.5e6, 8e6);
const DELAY_S: (f64, f64) = (0.008, 0.07);
const QUEUE_S: (f64, f64) = (0.15, 0.5);
/// Most that a call sends, as a share of its link's rate, and in bit/s.
const CEILING: (f64, f64) = (0.35, 0.8);
const MOST_BPS: f64 = 2.5e6;
/// Time between stalls, and between changes of capacity, in s. Packets in a burst of losses.
const STALL_EACH_S: (f64, f64) = (1.2, 2.5);
const FADE_S: (f64, f64) = (0.3, 2.0);
const BURST: (f64, f64) = (5.0, 20.0);
/// Room of a deep queue in s.
const DEEP_S: (f64, f64) = (1.5, 5.0);
/// Burst of a policer, in s of its rate.
const BUCKET_S: (f64, f64) = (0.1, 0.5);
/// Length of what others send beside a call, in s.
const BESIDE_S: f64 = 12.0;
/// Time between requests for pictures, in ms.
const REQUESTS_MS: i64 = 300;

/// A call with a cause.
#[derive(Clone, PartialEq, Debug)]
pub struct MadeCall {
    /// Its number, from 1, which is also the seed of its run.
    pub number: u64,
    /// The cause.
    pub kind: Kind,
    /// 0 to 2.
    pub magnitude: usize,
    /// The magnitude in words.
    pub text: String,
    /// The controller.
    pub controller: String,
    /// Whether it is one of the half on which bounds of rules are chosen.
    pub chosen_on: bool,
    ceiling_bps: f64,
    /// Limit that the other end asks for, in bit/s.
    asked_bps: f64,
    /// How much faster the receiver's clock runs, as a share.
    drift: f64,
    delay_s: f64,
    lines: String,
    flow: String,
}

fn seconds(s: f64) -> String {
    format!("\"{:.1} ms\"", s * 1e3)
}

fn bps(rate: f64) -> String {
    format!("\"{rate:.0} bps\"")
}

/// A field whose value changes at these times, in s.
fn steps(field: &str, of: &[(f64, String)]) -> String {
    let steps: Vec<String> =
        of.iter().map(|(at, value)| format!("{{ at = {}, {field} = {value} }}", seconds(*at))).collect();
    format!("{{ steps = [{}] }}", steps.join(", "))
}

impl MadeCall {
    /// Calls of a seed: each cause with each magnitude `draws` times under each of the controllers. Every second draw is one on which
    /// bounds are chosen.
    pub fn generate(seed: u64, draws: u64, controllers: &[String]) -> Vec<Self> {
        let mut out = Vec::new();
        for draw in 0..draws {
            for kind in Kind::ALL {
                for magnitude in 0..MAGNITUDES {
                    for controller in controllers {
                        let number = out.len() as u64 + 1;
                        out.push(Self::one(seed, number, kind, magnitude, controller, draw % 2 == 0));
                    }
                }
            }
        }
        out
    }

    fn one(seed: u64, number: u64, kind: Kind, magnitude: usize, controller: &str, chosen_on: bool) -> Self {
        let mut draw = Draw::of(seed, number);
        let (rate, delay_s) = (draw.log(RATE), draw.log(DELAY_S));
        let much = kind.draw(magnitude, &mut draw);
        let share = if kind == Kind::Healthy { much } else { draw.log(CEILING) };
        let ceiling_bps = (rate * share).min(MOST_BPS);
        let mut call = Self {
            number,
            kind,
            magnitude,
            text: String::new(),
            controller: controller.into(),
            chosen_on,
            ceiling_bps,
            asked_bps: ceiling_bps * much,
            drift: 0.0,
            delay_s,
            lines: String::new(),
            flow: String::new(),
        };
        call.put(much, rate, &mut draw);
        call
    }

    /// Writes the link's and the flow's fields, and the magnitude in words.
    fn put(&mut self, much: f64, rate: f64, draw: &mut Draw) {
        let (kind, ceiling) = (self.kind, self.ceiling_bps);
        let mut link = vec![
            ("rate", bps(rate)),
            ("delay", seconds(self.delay_s)),
            ("queue", seconds(draw.log(if kind == Kind::DeepQueue { DEEP_S } else { QUEUE_S }))),
        ];
        let mut back = vec![("delay", seconds(self.delay_s)), ("rate", bps(rate)), ("queue", seconds(0.3))];
        let set = |of: &mut Vec<(&'static str, String)>, field: &'static str, value: String| {
            of.retain(|f| f.0 != field);
            of.push((field, value));
        };
        let changed = |field: &str, before: String, behind: String| steps(field, &[(0.0, before), (ONSET, behind)]);
        let during = |field: &str, before: &str, inside: &str, length: f64| {
            steps(field, &[(0.0, before.into()), (ONSET, inside.into()), (ONSET + length, before.into())])
        };
        let left = ceiling * much;
        let kbps = |rate: f64| format!("{:.0} kbit/s", rate * 1e-3);
        let mut others = String::new();
        self.text = match kind {
            Kind::Healthy => kbps(ceiling),
            Kind::CapacityFell | Kind::DeepQueue => {
                set(&mut link, "rate", changed("rate", bps(rate), bps(left)));
                format!("{} to {}", kbps(ceiling), kbps(left))
            }
            Kind::CapacityVaries => {
                let (mut at, mut of) = (ONSET, vec![(0.0, bps(rate))]);
                while at < LENGTH {
                    of.push((at, bps(left * draw.log((0.4, 2.5)))));
                    at += draw.log(FADE_S);
                }
                set(&mut link, "rate", steps("rate", &of));
                format!("about {} of {}", kbps(left), kbps(ceiling))
            }
            Kind::Tcp => {
                let count = libm::round(much).max(1.0) as usize;
                for i in 0..count {
                    let _ = write!(
                        others,
                        "\n[tcp.download{i}]\nalgorithm = \"cubic\"\nstart = {}\nstop = {}\n",
                        seconds(ONSET + 0.1 * i as f64),
                        seconds(ONSET + BESIDE_S)
                    );
                }
                format!("{count} downloads")
            }
            Kind::Udp => {
                let _ = write!(
                    others,
                    "\n[udp.stream]\nrate = {}\nstart = {}\nstop = {}\n",
                    bps(rate - left),
                    seconds(ONSET),
                    seconds(ONSET + BESIDE_S)
                );
                format!("{} left of {}", kbps(left), kbps(ceiling))
            }
            Kind::RandomLoss => {
                set(&mut link, "loss", changed("loss", "0.0".into(), format!("{much:.4}")));
                format!("{:.0} %", much * 100.0)
            }
            Kind::BurstLoss => {
                let end = 1.0 / draw.log(BURST);
                let bursts = format!("{{ good_to_bad = {:.6}, bad_to_good = {end:.6} }}", end * much / (1.0 - much));
                set(&mut link, "loss", changed("loss", "0.0".into(), bursts));
                format!("{:.0} %, {:.0} in a row", much * 100.0, 1.0 / end)
            }
            Kind::DelayStep => {
                set(&mut link, "delay", changed("delay", seconds(self.delay_s), seconds(self.delay_s + much)));
                format!("+{:.0} ms", much * 1e3)
            }
            Kind::Jitter => {
                set(&mut link, "jitter", changed("max", seconds(0.0), seconds(much)));
                format!("{:.0} ms", much * 1e3)
            }
            Kind::Stalls => {
                let each = draw.log(STALL_EACH_S).max(2.0 * much);
                let (mut at, mut of) = (ONSET, vec![(0.0, bps(rate))]);
                while at < LENGTH - 4.0 {
                    of.extend([(at, "\"0 bps\"".into()), (at + much, bps(rate))]);
                    at += each;
                }
                set(&mut link, "rate", steps("rate", &of));
                format!("{:.0} ms each {each:.1} s", much * 1e3)
            }
            Kind::Outage => {
                set(&mut link, "loss", during("loss", "0.0", "1.0", much));
                if draw.below(2) == 0 {
                    set(&mut back, "loss", during("loss", "0.0", "1.0", much));
                }
                format!("{much:.1} s")
            }
            Kind::Policer => {
                let burst = (left * draw.log(BUCKET_S) / 8.0).max(6_000.0);
                set(&mut link, "policer", format!("{{ rate = {}, burst = \"{burst:.0} B\" }}", bps(left)));
                format!("{} of {}", kbps(left), kbps(ceiling))
            }
            Kind::FeedbackLost => {
                set(&mut back, "loss", during("loss", "0.0", "1.0", much));
                format!("{much:.1} s")
            }
            Kind::FeedbackLate => {
                set(&mut back, "delay", changed("delay", seconds(self.delay_s), seconds(self.delay_s + much)));
                format!("+{:.0} ms", much * 1e3)
            }
            Kind::SenderLimited | Kind::OtherEndAsked | Kind::KeyFrameRequests => kbps(left),
            Kind::SourcePaused => {
                self.flow = format!("pauses = [{{ from = {}, to = {} }}]\n", seconds(ONSET), seconds(ONSET + much));
                format!("{much:.1} s")
            }
            Kind::RouteChange => {
                let longer = self.delay_s + 0.05;
                set(&mut link, "rate", changed("rate", bps(rate), bps(left)));
                set(&mut link, "delay", changed("delay", seconds(self.delay_s), seconds(longer)));
                set(&mut back, "delay", changed("delay", seconds(self.delay_s), seconds(longer)));
                format!("{} to {}, +50 ms", kbps(ceiling), kbps(left))
            }
            Kind::ClockDrift => {
                let sign = if draw.below(2) == 0 { "" } else { "-" };
                self.drift = if sign.is_empty() { much * 1e-6 } else { -much * 1e-6 };
                self.flow = format!("clock = {{ receiver = {{ drift = \"{sign}{much:.0} ppm\" }} }}\n");
                format!("{sign}{much:.0} ppm")
            }
        };
        let fields = |of: &[(&str, String)]| of.iter().map(|(f, v)| format!("{f} = {v}\n")).collect::<String>();
        self.lines = format!("{}\n[links.access.reverse]\n{}{others}", fields(&link), fields(&back));
    }

    /// Its scenario.
    ///
    /// # Errors
    /// The controller does not exist, or has no such parameter.
    pub fn scenario(&self, registry: &Registry) -> Result<Scenario, InputError> {
        let limited = matches!(self.kind, Kind::SenderLimited | Kind::OtherEndAsked | Kind::KeyFrameRequests);
        let demand = if limited {
            let rates = [(0.0, bps(self.ceiling_bps)), (ONSET, bps(self.asked_bps))];
            format!(", demand = {}", steps("rate", &rates))
        } else {
            String::new()
        };
        let text = format!(
            "title = \"Known cause {}: {}\"\nduration = \"{LENGTH} s\"\nsample_interval = \"500 ms\"\n\n[links.access]\n{}\n\
             [rtp.{FLOW}]\ncontroller = \"{}\"\nfloor = \"50 kbps\"\nceiling = {}\nstart_rate = \"300 kbps\"\n\
             error_resilience = [\"nack\"]\nreceiver = \"chromium\"\nplayout_deadline = {}\n\
             source = {{ model = \"statistical\", fps = 30{demand} }}\n{}",
            self.number,
            self.kind.name(),
            self.lines,
            self.controller,
            bps(self.ceiling_bps),
            seconds(self.delay_s + 0.4),
            self.flow,
        );
        ScenarioFile::parse(&format!("cause-{}", self.number), &text, Path::new("."), registry)?
            .one(None, None, registry)
    }

    /// The recordings with what no simulated link can say: the other end's requests, and another candidate pair.
    pub(super) fn told(&self, mut ends: [Recording; 2]) -> [Recording; 2] {
        let at = Timestamp::ZERO + TimeDelta::from_secs_f64(ONSET);
        let way = TimeDelta::from_secs_f64(self.delay_s);
        let mut ask = |after: TimeDelta, kind: RtcpKind| {
            let row = Rtcp {
                at: at + after,
                number: 0,
                direction: Direction::Sent,
                sender_ssrc: 1,
                size: 24,
                kind,
                fingerprint: None,
            };
            ends[1].rtcp.push(row);
            ends[0].rtcp.push(Rtcp { at: row.at + way, direction: Direction::Received, ..row });
        };
        match self.kind {
            Kind::OtherEndAsked => {
                ask(TimeDelta::ZERO - way, RtcpKind::Remb(DataRate::from_bps(self.asked_bps as u64)));
            }
            Kind::KeyFrameRequests => {
                (0..20).for_each(|i| ask(TimeDelta::from_millis(REQUESTS_MS * i - 1_500), RtcpKind::Pli));
            }
            Kind::RouteChange => {
                for (pair, at) in [("1", Timestamp::ZERO), ("2", at)] {
                    let (change, network) = (PairChange::Selected, NetworkType::Unknown);
                    ends[0].pairs.push(CandidatePair { at, pair: pair.into(), change, network });
                }
            }
            // A capture has the times of its end's own clock.
            Kind::ClockDrift => {
                let faster = |at: &mut Timestamp| *at = *at + (*at - Timestamp::ZERO).mul_f64(self.drift);
                ends[1].packets.iter_mut().for_each(|p| faster(&mut p.at));
                ends[1].rtcp.iter_mut().for_each(|r| faster(&mut r.at));
            }
            _ => {}
        }
        if self.kind == Kind::OtherEndAsked {
            // The limit bounds the estimate.
            let most = DataRate::from_bps(self.asked_bps as u64);
            let asked = ends[0].estimates.iter_mut().filter(|e| e.at >= at && e.rate > most);
            asked.for_each(|e| e.rate = most);
            let (kind, loss, detector) = (EstimateKind::Target, None, None);
            ends[0].estimates.push(Estimate { at, kind, rate: most, loss, detector });
            ends[0].estimates.sort_by_key(|e| e.at);
        }
        ends.iter_mut().for_each(|e| e.rtcp.sort_by_key(|r| r.at));
        ends
    }
}
