//! A fit as a scenario: the likeliest link, or one drawn within the bounds.

use crate::changes::Changes;
use crate::queue::Discipline;
use crate::stalls;
use crate::{BaseDelay, Capacity, Evidence, Fit};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_cc::Registry;
use weir_lab::scenario::{InputError, ScenarioFile};

/// The file with the capacity, beside the scenario.
pub const TRACE: &str = "capacity.csv";
/// The flow that has the place of the recorded sender.
pub(crate) const FLOW: &str = "video";
/// The flow of its audio.
pub(crate) const AUDIO: &str = "audio";

/// A scenario and the file that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FittedScenario {
    /// TOML.
    pub text: String,
    /// Capacity over time, the contents of [`TRACE`].
    pub trace: String,
}

impl FittedScenario {
    /// The scenario, without files.
    ///
    /// # Errors
    /// The scenario is none, or names a controller that does not exist.
    pub fn open(&self, name: &str, registry: &Registry) -> Result<ScenarioFile, InputError> {
        let files = BTreeMap::from([(TRACE.to_owned(), self.trace.clone().into_bytes())]);
        ScenarioFile::parse_with_files(name, &self.text, files, registry)
    }
}

/// Greatest factor on rates and on rooms that nothing bounds.
const BEYOND: f64 = 3.0;
/// Share of the draws in which others' traffic is of the kind that the fit tells.
const TOLD: f64 = 0.8;
/// Share of the draws in which a queue that never dropped would do so before it is full.
const MANAGED: f64 = 0.2;
/// Errors of a policer's bucket and of jitter that were found.
const BUCKET: f64 = 0.2;
const SPREAD: f64 = 0.1;
/// Error of rates that are known.
const KNOWN: f64 = 0.02;
/// Errors of rates, of a policer's bucket, of a queue's room and of losses by statistics.
const COARSE: Errors = Errors { known: 0.08, bucket: 0.8, room: 0.3, lost: 0.2 };
const FINE: Errors = Errors { known: KNOWN, bucket: BUCKET, room: 0.0, lost: 0.0 };
/// Room of a queue that never overflowed, in s of the mean rate: what access links usually have.
const ROOM_S: f64 = 0.3;
/// Least rate of the video, and least rate of audio that is a flow of its own, in bit/s.
const FLOOR_BPS: f64 = 50e3;
const LEAST_AUDIO_BPS: f64 = 8e3;
/// Delay within which frames are played, in ms.
const DEADLINE_MS: f64 = 400.0;
/// Delay of a path whose round-trip time is not known, in ms.
pub(crate) const RTT_MS: f64 = 60.0;

/// The place of a drawn value between its bounds, 0 to 1, and the number of the draw; the likeliest values without it.
struct Draw(Option<Pcg64Mcg>);

impl Draw {
    fn one(&mut self) -> Option<f64> {
        self.0.as_mut().map(|r| r.random::<f64>())
    }

    /// A factor that is uniform around 1, as much as `most` from it; 1 without a draw.
    fn error(&mut self, most: f64) -> f64 {
        self.one().map_or(1.0, |u| 1.0 + most * (2.0 * u - 1.0))
    }

    /// A value uniform in its logarithm from 1 to `most`; `likely` without a draw.
    fn factor(&mut self, likely: f64, most: f64) -> f64 {
        self.one().map_or(likely, |u| libm::exp(u * libm::log(most)))
    }
}

/// Largest errors of what was found, as shares.
struct Errors {
    known: f64,
    bucket: f64,
    room: f64,
    lost: f64,
}

impl Fit {
    fn errors(&self) -> Errors {
        match self.evidence {
            Evidence::Packets => FINE,
            Evidence::Statistics => COARSE,
        }
    }

    /// The path as a scenario with a sender like the recorded one. Without `draw` it has the likeliest values, else those of that draw
    /// within the bounds. `compare` are controllers' names.
    pub fn scenario(&self, title: &str, compare: &[String], draw: Option<u64>) -> FittedScenario {
        self.changed_scenario(title, compare, draw, &Changes::default())
    }

    /// The same with changes. They do not change what is drawn.
    pub fn changed_scenario(
        &self,
        title: &str,
        compare: &[String],
        draw: Option<u64>,
        changes: &Changes,
    ) -> FittedScenario {
        let mut random = Draw(draw.map(|n| Pcg64Mcg::seed_from_u64(n.wrapping_add(1))));
        let errors = self.errors();
        let rates = self.rates(&mut random);
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let delay = self.rtt_ms.unwrap_or(RTT_MS) / 2.0 + changes.extra_delay_ms;
        let names: Vec<String> = compare.iter().map(|c| format!("{c:?}")).collect();
        let mut t = format!(
            "title = {title:?}\nduration = \"{:.1} s\"\ncompare = [{}]\n\n[links.path]\nrate = {{ trace = \"{TRACE}\", format = \"csv\" }}\n",
            self.length_s.max(1.0),
            names.join(", "),
        );
        t += &steps_of(&self.base, delay);
        t += &self.queue_line(mean, &mut random, changes);
        if let Some(p) = &self.policer {
            let (rate, burst) =
                (p.rate_bps * random.error(errors.known), p.burst_bytes.max(3_000.0) * random.error(errors.bucket));
            let _ = writeln!(t, "policer = {{ rate = \"{rate:.0} bps\", burst = \"{burst:.0} B\" }}");
        }
        let lost = if errors.lost > 0.0 { random.error(errors.lost) } else { 1.0 };
        t += &self.loss_line(lost);
        t += &self.jitter_line(random.error(SPREAD));
        t += "\n[links.path.reverse]\n";
        t += &steps_of(&self.back, delay);
        if let Some(lost) = changes.reverse_loss.or(self.answers_lost).filter(|l| *l > 0.002) {
            let _ = writeln!(t, "loss = {lost:.4}");
        }
        t += &self.flows(changes);
        let is_as_told = random.one().is_none_or(|u| u < TOLD);
        t += &self.others(is_as_told);
        FittedScenario { text: t, trace: trace(&rates, self.capacity.bin_s) }
    }

    /// A rate a bin.
    fn rates(&self, random: &mut Draw) -> Vec<f64> {
        let Capacity { served_bps, likely_bps, least_bps, most_bps, .. } = &self.capacity;
        let known = random.error(self.errors().known);
        let between = random.one();
        let beyond = random.factor(1.25, BEYOND);
        let greatest = least_bps.iter().copied().fold(0.0, f64::max);
        let rate = |k: usize| match (served_bps[k], most_bps[k]) {
            (Some(rate), _) => rate * known,
            (None, Some(most)) => between.map_or(likely_bps[k], |u| least_bps[k] + u * (most - least_bps[k]).max(0.0)),
            (None, None) => greatest.max(least_bps[k]) * beyond,
        };
        let bin_s = self.capacity.bin_s;
        let flows = |k: usize| 1.0 - stalls::share(&self.stalls, k as f64 * bin_s, (k + 1) as f64 * bin_s);
        (0..served_bps.len()).map(|k| rate(k) * flows(k)).collect()
    }

    fn queue_line(&self, mean: f64, random: &mut Draw, changes: &Changes) -> String {
        let q = &self.queue;
        let at_least = q.at_least_bytes.max(3_000.0);
        let likely = at_least.max(ROOM_S * mean / 8.0);
        // Nothing says how a queue drops that never did.
        let is_managed = random.one().is_some_and(|u| u < MANAGED);
        let room = at_least * random.factor(likely / at_least, likely / at_least * BEYOND);
        let error = self.errors().room;
        let limit = q.limit_bytes.map(|limit| if error > 0.0 { limit * random.error(error) } else { limit });
        if let Some(line) = changes.queue_line(&format!("{:.0} B", limit.unwrap_or(room))) {
            return line;
        }
        match (q.discipline, limit) {
            (_, Some(limit)) => format!("queue = \"{limit:.0} B\"\n"),
            (Discipline::Unknown, None) if !is_managed => format!("queue = \"{room:.0} B\"\n"),
            (_, None) => format!("queue = {{ discipline = \"codel\", limit = \"{likely:.0} B\" }}\n"),
        }
    }

    /// Losses by chance, `error` times the shares found.
    fn loss_line(&self, error: f64) -> String {
        let share = |s: f64| {
            let s = (s * error).min(0.95);
            if self.loss.in_a_row < 1.3 {
                return format!("{s:.5}");
            }
            let end = 1.0 / self.loss.in_a_row;
            let begin = (end * s / (1.0 - s).max(0.01)).min(1.0);
            format!("{{ good_to_bad = {begin:.6}, bad_to_good = {end:.6} }}")
        };
        match &self.loss.steps_with_outages()[..] {
            [] => String::new(),
            [one] if one.share < 1e-5 => String::new(),
            [one] => format!("loss = {}\n", share(one.share)),
            steps => {
                let loss = |s: f64| if s < 1.0 { share(s) } else { "1".into() };
                let step = |s: &crate::LossStep| format!("{{ at = \"{:.3} s\", loss = {} }}", s.from_s, loss(s.share));
                let steps: Vec<String> = steps.iter().map(step).collect();
                format!("loss.steps = [{}]\n", steps.join(", "))
            }
        }
    }

    fn jitter_line(&self, error: f64) -> String {
        match &self.jitter[..] {
            [] => String::new(),
            [one] => format!("jitter = {{ max = \"{:.1} ms\" }}\n", one.max_ms * error),
            steps => {
                let step = |s: &crate::JitterStep| {
                    format!("{{ at = \"{:.1} s\", max = \"{:.1} ms\" }}", s.from_s, s.max_ms * error)
                };
                let steps: Vec<String> = steps.iter().map(step).collect();
                format!("jitter.steps = [{}]\n", steps.join(", "))
            }
        }
    }

    fn flows(&self, changes: &Changes) -> String {
        let s = &self.source;
        let ceiling = changes.ceiling_bps.unwrap_or(s.ceiling_bps);
        let floor = changes.floor_bps.unwrap_or(FLOOR_BPS).min(ceiling);
        let start = changes.start_bps.unwrap_or(s.start_bps).min(ceiling).max(floor);
        let mut t = format!(
            "\n[rtp.{FLOW}]\ncontroller = \"$controller\"\nfloor = \"{floor:.0} bps\"\nceiling = \"{ceiling:.0} bps\"\n\
             start_rate = \"{start:.0} bps\"\nplayout_deadline = \"{:.0} ms\"\n",
            self.rtt_ms.unwrap_or(RTT_MS) / 2.0 + changes.extra_delay_ms + changes.deadline_ms.unwrap_or(DEADLINE_MS),
        );
        t += &changes.repair_line();
        let _ = write!(t, "source = {{ model = \"perfect-frames\", fps = {:.0}", changes.fps.unwrap_or(s.fps));
        if !s.demand.is_empty() {
            // Steps back to the call's ceiling lead to the one that is set.
            let most = |rate: f64| if rate >= s.ceiling_bps { ceiling } else { rate.min(ceiling) };
            let first = (s.demand[0].0 > 0.0).then(|| format!("{{ at = \"0 s\", rate = \"{ceiling:.0} bps\" }}"));
            let step = |(at, rate): &(f64, f64)| format!("{{ at = \"{at:.1} s\", rate = \"{:.0} bps\" }}", most(*rate));
            let steps: Vec<String> = first.into_iter().chain(s.demand.iter().map(step)).collect();
            let _ = write!(t, ", demand.steps = [{}]", steps.join(", "));
        }
        t.push_str(" }\n");
        let rate = changes.audio_bps.unwrap_or(s.audio_bps);
        if rate >= LEAST_AUDIO_BPS {
            let _ = write!(
                t,
                "\n[rtp.{AUDIO}]\ncontroller = \"fixed\"\nfloor = \"{rate:.0} bps\"\nceiling = \"{rate:.0} bps\"\nstart_rate = \"{rate:.0} bps\"\n\
                 source = {{ model = \"perfect-frames\", fps = 50 }}\n"
            );
        }
        t
    }
}

impl Fit {
    /// Others' traffic: a download that takes what it gets, or a constant rate; `is_as_told` by the fit, else the other one.
    fn others(&self, is_as_told: bool) -> String {
        let mut t = String::new();
        for (i, c) in self.cross.iter().enumerate() {
            let (start, stop) = (format!("{:.1} s", c.from_s), format!("{:.1} s", c.to_s));
            let _ = if c.elastic == is_as_told {
                write!(t, "\n[tcp.others-{i}]\nalgorithm = \"cubic\"\nstart = \"{start}\"\nstop = \"{stop}\"\n")
            } else {
                write!(
                    t,
                    "\n[udp.others-{i}]\nrate = \"{:.0} bps\"\nstart = \"{start}\"\nstop = \"{stop}\"\n",
                    c.rate_bps
                )
            };
        }
        t
    }
}

/// Delays of a way, of which `shortest` is the least, in ms: the round-trip time is that of the shortest path.
fn steps_of(changes: &[BaseDelay], shortest: f64) -> String {
    if changes.len() < 2 {
        return format!("delay = \"{shortest:.1} ms\"\n");
    }
    let least = changes.iter().map(|b| b.more_ms).fold(0.0, f64::min);
    let step =
        |b: &BaseDelay| format!("{{ at = \"{:.2} s\", delay = \"{:.1} ms\" }}", b.from_s, shortest + b.more_ms - least);
    let steps: Vec<String> = changes.iter().map(step).collect();
    format!("delay.steps = [{}]\n", steps.join(", "))
}

/// Steps of rates as a table of times in s and rates in kbit/s.
fn trace(rates: &[f64], bin_s: f64) -> String {
    let mut out = String::from("time_s,rate_kbps\n");
    let mut before = u64::MAX;
    for (k, rate) in rates.iter().enumerate() {
        let kbps = (rate * 1e-3 + 0.5) as u64;
        if kbps != before {
            let _ = writeln!(out, "{:.2},{kbps}", k as f64 * bin_s);
            before = kbps;
        }
    }
    out
}
