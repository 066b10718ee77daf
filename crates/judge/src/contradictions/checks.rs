//! Relations that hold between the numbers of one result.

use super::page;
use serde::Serialize;
use weir_lab::results::{Distribution, FlowSummary, RunResult, StreamSummary};
use weir_lab::scenario::{Flow, Link, Scenario};
use weir_lab::series::FlowSeries;
use weir_report::explain::explain;
use weir_units::TimeDelta;

/// Rounding of sums of many numbers, as a share.
const ROUNDING: f64 = 1e-6;
/// Error of quantiles, as a share ([`Distribution`]).
const QUANTILE: f64 = 0.005;
/// Share of a capacity that may be exceeded, by what waited in the queue when a flow or a window began.
const CAPACITY: f64 = 0.005;
const CAPACITY_OF_WINDOW: f64 = 0.05;
/// Error of round-trip times by the ends' clocks, as a share.
const CLOCKS: f64 = 0.01;
/// Longest time in ms for which a receiver that reports each 5 s holds the sender's last report: the interval is drawn up to 1.5 / 1.21828
/// times as long (RFC 3550, section 6.3.1). It measures that time by its own clock.
const HELD_MS: f64 = 6_160.0;
/// A frame's time of capture is its RTP timestamp, of a clock of 90 kHz at least.
const RTP_TICK_MS: f64 = 1.0 / 90.0 + 1e-6;
/// Findings of a run that are kept.
const KEPT: usize = 20;

/// Two numbers, or words and a number, that cannot both be true.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Contradiction"))]
pub struct Finding {
    /// The flow, link, stream or part of the result.
    pub place: String,
    /// Both, with their values.
    pub says: String,
}

/// Comparisons made, and what they found.
struct Checks {
    place: String,
    comparisons: u64,
    found: Vec<Finding>,
}

impl Checks {
    fn say(&mut self, says: String) {
        if self.found.len() < KEPT {
            self.found.push(Finding { place: self.place.clone(), says });
        }
    }
    fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }
    /// The first is at most the second, but for this difference. What is no number contradicts everything.
    fn at_most(&mut self, (less, a): (&str, f64), (more, b): (&str, f64), slack: f64) {
        self.comparisons += 1;
        if a.is_nan() || b.is_nan() || a > b + slack {
            self.say(format!("{less} {a} above {more} {b}"));
        }
    }
    fn equal(&mut self, (first, a): (&str, f64), (second, b): (&str, f64), slack: f64) {
        self.comparisons += 1;
        if a.is_nan() || b.is_nan() || (a - b).abs() > slack {
            self.say(format!("{first} {a} differs from {second} {b}"));
        }
    }
    fn share(&mut self, name: &str, value: f64) {
        self.at_most(("the least share", 0.0), (name, value), 0.0);
        self.at_most((name, value), ("the whole", 1.0), ROUNDING);
    }
    fn ordered(&mut self, name: &str, d: &Distribution) {
        let slack = |v: f64| QUANTILE * v.abs() + 1e-9;
        let named = |part: &str| format!("{name}'s {part}");
        let parts = [("minimum", d.min), ("median", d.p50), ("p95", d.p95), ("p99", d.p99), ("maximum", d.max)];
        for pair in parts.windows(2) {
            self.at_most((&named(pair[0].0), pair[0].1), (&named(pair[1].0), pair[1].1), slack(pair[1].1));
        }
        self.at_most((&named("minimum"), d.min), (&named("mean"), d.mean), slack(d.mean));
        self.at_most((&named("mean"), d.mean), (&named("maximum"), d.max), slack(d.max));
    }
}

/// Checks a result of this scenario; its series too, if it has them. Returns the number of comparisons and what contradicts.
pub fn check(scenario: &Scenario, result: &RunResult) -> (u64, Vec<Finding>) {
    let mut c = Checks { place: String::new(), comparisons: 0, found: Vec::new() };
    for (flow, spec) in result.flows.iter().zip(&scenario.flows) {
        c.at(flow.name.as_str());
        one_flow(&mut c, scenario, spec, flow);
        let series = result.series.as_ref();
        let series = series.and_then(|s| Some((s.interval_s, s.flows.iter().find(|f| f.name == flow.name)?)));
        if let Some((interval, series)) = series {
            over_time(&mut c, interval, flow, series);
        }
    }
    shared(&mut c, scenario, result);
    windows(&mut c, scenario, result);
    moves(&mut c, scenario, result);
    c.at("report beside JSON");
    match page::differences(result) {
        Ok((compared, differences)) => {
            c.comparisons += compared;
            differences.into_iter().for_each(|d| c.say(d));
        }
        Err(e) => c.say(e),
    }
    (c.comparisons, c.found)
}

/// Least propagation delay over links, in ms: of routes that change, the shortest.
fn base_ms(scenario: &Scenario, flow: &Flow, links: &[usize]) -> f64 {
    let least = |link: usize| {
        let Some(link) = scenario.links.get(link) else { return TimeDelta::ZERO };
        let steps = link.config.variation.delay.iter().flat_map(|s| s.values());
        // Steps are in place of the delay.
        steps.copied().min().unwrap_or(link.config.delay)
    };
    links.iter().fold(flow.access_delay, |sum, link| sum + least(*link)).as_millis_f64()
}

/// The same by the shortest of a flow's paths.
fn shortest_ms(scenario: &Scenario, flow: &Flow, is_forward: bool) -> f64 {
    let of = |forward: &[usize], reverse: &[usize]| base_ms(scenario, flow, if is_forward { forward } else { reverse });
    let paths = flow.rtp().and_then(|r| r.multipath.as_ref()).into_iter().flat_map(|m| &m.paths);
    paths.map(|p| of(&p.forward, &p.reverse)).fold(of(&flow.forward, &flow.reverse), f64::min)
}

fn one_flow(c: &mut Checks, scenario: &Scenario, spec: &Flow, f: &FlowSummary) {
    let (r, p) = (&f.rates, &f.packets);
    let small = ROUNDING * r.sent_bps;
    c.at_most(("goodput in bit/s", r.goodput_bps), ("the rate received", r.received_bps), small);
    c.at_most(("rate received in bit/s", r.received_bps), ("the rate sent", r.sent_bps), small);
    c.at_most(("rate of repair in bit/s", r.repair_bps), ("the rate sent", r.sent_bps), small);
    if spec.rtp().is_none_or(|r| r.reported_headers.is_zero()) {
        c.at_most(("rate sent in bit/s", r.sent_bps), ("that with all headers", r.wire_bps), small);
    }
    let count = |n: u64| n as f64;
    let gone = p.dropped_queue + p.dropped_aqm + p.dropped_channel;
    // A packet lost on one path and received on another is both.
    let both = f.repair.as_ref().filter(|_| f.multipath.is_some()).map_or(0, |r| r.recovered);
    c.at_most(("packets received or dropped", count(p.received + gone)), ("those sent", count(p.sent + both)), 0.0);
    c.at_most(("packets discarded", count(p.discarded)), ("those received", count(p.received)), 0.0);
    c.at_most(("packets received with CE", count(p.ce_received)), ("those received", count(p.received)), 0.0);
    for (name, share) in [("loss", f.loss), ("share discarded", f.discard)] {
        c.share(name, share);
    }
    if p.sent > 0 {
        c.equal(("loss", f.loss), ("packets dropped over those sent", count(gone) / count(p.sent)), 1e-9);
    }
    let most = 1.0 + burst_share(scenario, spec, f.stop_s - f.start_s);
    if let Some(used) = f.utilisation_goodput {
        c.at_most(("goodput over capacity", used), ("the whole", most), CAPACITY);
    }
    for (name, value) in f.values() {
        c.comparisons += 1;
        if !value.is_finite() || (value < 0.0 && !["psnr", "ssim"].contains(&name)) {
            c.say(format!("{name} is {value}"));
        }
    }
    let active = f.stop_s - f.start_s;
    if let Some(ramp_up) = f.ramp_up_s {
        c.at_most(("ramp-up in s", ramp_up), ("the flow's time", active), 1e-6);
    }
    let base = shortest_ms(scenario, spec, true);
    if let Some(d) = &f.one_way_delay_ms {
        c.ordered("delay", d);
        c.at_most(("the path's delay in ms", base), ("least delay in ms", d.min), 1e-6);
    }
    if let Some(rtt) = f.rtt_ms {
        let least = base + shortest_ms(scenario, spec, false);
        let drift = spec.rtp().and_then(|r| r.clocks.receiver.as_ref()).map_or(0.0, |c| c.drift_ppb as f64 / 1e9);
        let error = CLOCKS * least + HELD_MS * drift.abs() + 0.1;
        c.at_most(("the path's round trip in ms", least), ("mean round trip in ms", rtt), error);
    }
    frames(c, f, active);
    parts(c, f);
}

fn frames(c: &mut Checks, f: &FlowSummary, active: f64) {
    let Some(frames) = &f.frames else { return };
    let count = |n: u64| n as f64;
    let parts = frames.played + frames.late + frames.lost;
    c.equal(("frames played, late or lost", count(parts)), ("frames with a known fate", count(frames.frames)), 0.0);
    if let Some(coded) = &f.coded {
        c.at_most(("frames with a known fate", count(frames.frames)), ("frames coded", count(coded.frames)), 0.0);
        c.at_most(("key frames", count(coded.key)), ("frames coded", count(coded.frames)), 0.0);
    }
    if let Some(d) = &frames.delay_ms {
        c.ordered("frames' delay", d);
        if let Some(packets) = &f.one_way_delay_ms {
            c.at_most(("least delay of a packet in ms", packets.min), ("least delay of a frame", d.min), RTP_TICK_MS);
        }
    }
    c.at_most(("time stalled in s", frames.stalled_s), ("the flow's time", active), 1.0);
    c.at_most(("longest stall in s", frames.longest_stall_s), ("all stalls", frames.stalled_s), 1e-6);
    c.comparisons += 1;
    if (frames.stalls == 0) != (frames.stalled_s == 0.0) {
        c.say(format!("{} stalls of {} s", frames.stalls, frames.stalled_s));
    }
}

/// Streams and paths beside their flow.
fn parts(c: &mut Checks, f: &FlowSummary) {
    let r = &f.rates;
    if !f.streams.is_empty() {
        let sum = |part: fn(&StreamSummary) -> f64| f.streams.iter().map(part).sum::<f64>();
        let repair = f.repair.as_ref().map_or(0, |r| r.sent) as f64;
        let packets = f.packets.sent as f64 + repair;
        c.equal(("the streams' rates sent", sum(|s| s.sent_bps)), ("the flow's", r.sent_bps), 1e-3 * r.sent_bps);
        c.equal(("the streams' packets", sum(|s| s.packets as f64)), ("the flow's", packets), 0.0);
        if let Some(target) = r.target_bps {
            c.at_most(("the streams' shares", sum(|s| s.share_bps)), ("the target", target), 1e-3 * target);
        }
        for s in &f.streams {
            c.share(&format!("loss of {}", s.name), s.loss);
            c.share(&format!("time of {} with a share", s.name), s.on);
        }
    }
    if let Some(m) = &f.multipath {
        c.equal(("the paths' shares", m.paths.iter().map(|p| p.share).sum()), ("the whole", 1.0), 1e-6);
        for p in &m.paths {
            let received = format!("rate received on {}", p.name);
            c.at_most((&received, p.received_bps), ("that sent", p.sent_bps), ROUNDING * p.sent_bps);
            c.share(&format!("loss on {}", p.name), p.loss);
            if let Some(d) = &p.one_way_delay_ms {
                c.ordered(&format!("delay on {}", p.name), d);
            }
        }
        let sent: f64 = m.paths.iter().map(|p| p.sent_bps).sum();
        c.equal(("the paths' rates sent", sent), ("the flow's", r.sent_bps), 1e-3 * r.sent_bps);
    }
}

/// The series beside the summary.
fn over_time(c: &mut Checks, interval: f64, f: &FlowSummary, s: &FlowSeries) {
    let active = f.stop_s - f.start_s;
    let bits = |rows: &[f64]| rows.iter().filter(|v| v.is_finite()).sum::<f64>() * interval;
    let pairs = [("sent", &s.sent_bps, f.rates.sent_bps), ("goodput", &s.goodput_bps, f.rates.goodput_bps)];
    for (name, rows, whole) in pairs {
        let whole = whole * active;
        let slack = 0.01 * whole + 2.0 * interval * f.rates.sent_bps;
        c.equal((&format!("bits of the series of {name}"), bits(rows)), ("those of the summary", whole), slack);
    }
    for loss in s.loss.iter().filter(|v| v.is_finite()) {
        c.share("loss in a row", *loss);
    }
    if let Some(least) = f.one_way_delay_ms.map(|d| d.min) {
        for delay in s.delay_ms.iter().filter(|v| v.is_finite()) {
            c.at_most(("least delay of the run in ms", least), ("a row's mean", *delay), 1e-6);
        }
    }
}

/// Bits that a link's token buckets let through beyond their rate, and that rate in bit/s: capacity is the rate alone.
fn burst(link: &Link) -> (f64, f64) {
    let buckets = [link.config.policer, link.config.shaper];
    let least = buckets.into_iter().flatten().min_by_key(|b| b.rate);
    least.map_or((0.0, f64::INFINITY), |b| (b.burst.as_bits() as f64, b.rate.as_bps_f64()))
}

/// The same on a flow's way, as a share of what the rate carries in `seconds`.
fn burst_share(scenario: &Scenario, flow: &Flow, seconds: f64) -> f64 {
    let links = flow.forward.iter().filter_map(|l| scenario.links.get(*l));
    links.map(burst).map(|(bits, rate)| bits / (rate * seconds)).fold(0.0, f64::max)
}

/// Links, and how the flows shared them.
fn shared(c: &mut Checks, scenario: &Scenario, result: &RunResult) {
    for link in &result.links {
        c.at(link.name.as_str());
        for (name, d) in [("delay in the queue", &link.delay_ms), ("bytes in the queue", &link.bytes)] {
            if let Some(d) = d {
                c.ordered(name, d);
            }
        }
        let is_this = |l: &usize| scenario.links.get(*l).is_some_and(|l| l.name == link.name);
        let across = result.flows.iter().zip(&scenario.flows);
        let across = across.filter(|(f, spec)| f.multipath.is_none() && spec.forward.iter().any(is_this));
        let bits: f64 = across.map(|(f, _)| f.rates.goodput_bps * (f.stop_s - f.start_s)).sum();
        let burst = scenario.links.iter().find(|l| l.name == link.name).map_or(0.0, |l| burst(l).0);
        let Some(capacity) = link.capacity_bps else { continue };
        let most = capacity * result.duration_s + burst;
        c.at_most(("bits of use to all flows", bits), ("those that the link carries", most), CAPACITY * most);
    }
    c.at("fairness");
    let f = &result.fairness;
    let shares =
        [("jain_mean", f.jain_mean), ("jain_min", f.jain_min), ("jain_end", f.jain_end), ("tcp_share", f.tcp_share)];
    for (name, value) in shares {
        if let Some(value) = value {
            c.share(name, value);
        }
    }
    if let (Some(least), Some(mean)) = (f.jain_min, f.jain_mean) {
        c.at_most(("least of Jain's index", least), ("its mean", mean), 1e-9);
    }
}

fn windows(c: &mut Checks, scenario: &Scenario, result: &RunResult) {
    for window in &result.windows {
        for (flow, spec) in window.flows.iter().zip(&scenario.flows) {
            c.at(format!("{}, {}", flow.name, window.label));
            c.share("loss", flow.loss);
            let most = 1.0 + burst_share(scenario, spec, window.end_s - window.start_s);
            if let Some(used) = flow.utilisation_goodput {
                c.at_most(("goodput over capacity", used), ("the whole", most), CAPACITY_OF_WINDOW);
            }
            if let Some(delay) = flow.one_way_delay_ms {
                let base = shortest_ms(scenario, spec, true);
                c.at_most(("the path's delay in ms", base), ("mean delay in ms", delay), 1e-6);
            }
        }
    }
}

/// Explanations beside the moves.
fn moves(c: &mut Checks, scenario: &Scenario, result: &RunResult) {
    let Some(series) = &result.series else { return };
    let bounds = |name: &str| {
        let flow = scenario.flows.iter().find(|f| f.name == name)?.rtp()?;
        Some((flow.floor.as_bps_f64(), flow.ceiling.as_bps_f64()))
    };
    for flow in explain(series, 1.0, &bounds) {
        c.at(flow.flow.as_str());
        for span in &flow.spans {
            c.comparisons += 1;
            if span.contradicts_move() {
                let (from, to) = (span.from_bps / 1e6, span.to_bps / 1e6);
                c.say(format!("explained as \"{}\": {from:.3} to {to:.3} Mbit/s at {:.0} s", span.text, span.from_s));
            }
        }
    }
}
