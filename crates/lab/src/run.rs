//! One scenario and one seed to one result, and many of them on several threads.

mod agent;
mod bare;
mod call;
mod captured;
mod clips;
mod clock;
mod dccp;
mod ends;
mod first_packets;
mod forecast;
mod many;
mod network;
mod observer;
mod path_meter;
mod path_sampling;
mod paths;
mod recording;
mod recovery_delay;
mod sampled_side;
mod sampling;
mod station;
mod stepped;
mod stepped_udp;
mod stream_sampling;
mod streams;
mod traffic;
mod video;

pub use bare::BareRun;
pub use captured::{Capture, CapturePoint, CapturedPacket};
pub use many::{Job, Make, Task, run_each, run_many};
pub use stepped::{OUTSIDE, SteppedCall, Stepping};
pub use video::has_library;

use crate::metrics::{FlowEnd, Recorder};
use crate::results::{CodedFrames, RunResult};
use crate::scenario::Scenario;
use network::Network;
use observer::RunObserver;
use path_meter::PathMeter;
use sampled_side::{SampledSide, may_run_apart};
use sampling::{Discards, FlowSampler, PauseChange, SAMPLING_INTERVAL, SenderSample, TransportSample};
use std::sync::atomic::{AtomicBool, Ordering};
use stream_sampling::StreamSampler;
use weir_cc::{Registry, tunable::SetupError};
use weir_dccp::connection::Connection;
use weir_sim::{Outcome, Side};
use weir_units::cold_path;
use weir_units::{TimeDelta, Timestamp};

/// Shared by runs in real time and simulated ones: the ends of flows, their sampling, and the recorder's configuration.
pub mod parts {
    pub use super::call::{Call, call, flow_seed};
    pub use super::clock::EndClock;
    pub use super::dccp::{config as dccp_config, session_config as dccp_session_config};
    pub use super::ends::Ends;
    pub use super::forecast::ForecastFeeds;
    pub use super::network::{Foresight, access_link, foresight};
    pub use super::path_meter::PathMeter;
    pub use super::recording::recorder_config;
    pub use super::sampling::{
        Discards, FlowSampler, PauseChange, SAMPLING_INTERVAL, SenderSample, TransportSample, frame_record, pauses,
    };
    pub use super::station::LinkStation;
    pub use super::streams::REPAIR_PAYLOAD_TYPES;
    pub use super::traffic::{distribution, udp_agent};
    pub use super::video::Viewer;
}

/// How to run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// The registry of controllers.
    pub registry: &'a Registry,
    /// Whether to keep time series.
    pub series: bool,
    /// Ends the run early when it becomes true.
    pub stop: &'a AtomicBool,
    /// Called with the share of the run that is done, 0 to 1.
    pub progress: &'a (dyn Fn(f64) + Sync),
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A controller could not be constructed.
    #[error("flow `{flow}`: {source}")]
    Controller {
        /// The flow.
        flow: String,
        /// Why.
        source: Box<SetupError>,
    },
    /// A link cannot be built.
    #[error("link `{link}`: {source}")]
    Link {
        /// The link.
        link: String,
        /// Why.
        source: weir_path::ConfigError,
    },
    /// A flow's traffic cannot be built.
    #[error("flow `{flow}`: {message}")]
    Traffic {
        /// The flow.
        flow: String,
        /// The fault.
        message: String,
    },
    /// A run in real time failed.
    #[error("{what}")]
    Live {
        /// Where and why.
        what: String,
    },
    /// One machine cannot make the run in real time.
    #[error("{what}")]
    NotLive {
        /// The part that it cannot make, and the alternative.
        what: String,
    },
    /// The stop flag was raised.
    #[error("stopped at {at} of simulated time")]
    Stopped {
        /// Simulated time reached by the run.
        at: Timestamp,
    },
    /// Time stands still: packets loop at one time.
    #[error("the simulation makes no progress at {at}: flows answer each other without any delay")]
    Stuck {
        /// The instant.
        at: Timestamp,
    },
}

/// Runs a scenario with one seed. The result depends only on the two and the registry's controllers.
///
/// Errors: something that the scenario refers to cannot be constructed, or the stop flag was raised.
pub fn run(scenario: &Scenario, seed: u64, options: &RunOptions<'_>) -> Result<RunResult, RunError> {
    run_with(scenario, seed, options, None)
}

/// As [`run`], handing the packets that pass a point of the network to a capture as well.
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
    capture: Option<Capture<'_>>,
) -> Result<RunResult, RunError> {
    let recorder = Recorder::new(recording::recorder_config(scenario, seed, options.series));
    let is_captured = capture.is_some();
    let mut network = network::network(scenario, seed, options.registry, RunObserver::new(recorder, capture))?;
    let bottleneck = network.links.get(scenario.bottleneck).copied();
    let reverse = scenario.reverse_of(scenario.bottleneck).and_then(|i| network.links.get(i).copied());
    network.sim.observer_mut().capture_at(bottleneck, reverse);
    for (flow, _) in scenario.flows.iter().enumerate().filter(|(_, f)| f.rtp().is_some_and(|r| r.needs_marker)) {
        network.sim.observer_mut().needs_marker(flow);
    }
    for (flow, m) in scenario.flows.iter().enumerate().filter_map(|(i, f)| Some((i, f.rtp()?.multipath.as_ref()?))) {
        network.sim.observer_mut().measure_paths(flow, PathMeter::new(m));
    }
    let streams = vec![StreamSampler::default(); scenario.flows.len()];
    if !is_captured && may_run_apart(scenario, &network) {
        network.sim.divide();
    }
    let sides = if network.sim.lookahead().is_some() { &Side::BOTH[..] } else { &Side::BOTH[..1] };
    let sampled = SampledSide::both(scenario, &mut network);
    Run { scenario, options, network, flows: FlowSampler::all(scenario), streams, sampled, sides }.go()
}

struct Run<'a, 'p> {
    scenario: &'a Scenario,
    options: &'a RunOptions<'a>,
    network: Network<RunObserver<'p>>,
    /// By flow.
    flows: Vec<FlowSampler>,
    /// The streams of each flow.
    streams: Vec<StreamSampler>,
    /// Of each side of the network.
    sampled: [SampledSide; 2],
    /// The sides that there are.
    sides: &'static [Side],
}

impl Run<'_, '_> {
    fn go(mut self) -> Result<RunResult, RunError> {
        let end = Timestamp::ZERO + self.scenario.duration;
        let interval = SAMPLING_INTERVAL.min(self.scenario.sample_interval).max(TimeDelta::from_millis(1));
        let mut now = Timestamp::ZERO;
        let pauses = self.pauses();
        let mut next_pause = pauses.iter().peekable();
        let mut next_percent = Timestamp::ZERO;
        let mut next_sample = now + interval;
        while now < end {
            let mut until = self.network.sim.observer_mut().recorder.next_boundary(now).min(end);
            if let Some(p) = next_pause.peek() {
                until = until.min(p.at.max(now));
            }
            self.advance(until, &mut next_sample, interval)?;
            now = until;
            let mut is_pause = false;
            while let Some(&&p) = next_pause.peek().filter(|p| p.at <= until) {
                self.pause(&p);
                next_pause.next();
                is_pause = true;
            }
            if is_pause || now >= next_sample || now >= end {
                self.pass_empty(1, now, interval);
                self.sides.iter().for_each(|side| self.sample(*side, now));
                next_sample = now + interval;
            }
            if now >= next_percent {
                cold_path();
                let done = (100.0 * (now.as_secs_f64() / end.as_secs_f64())).floor();
                next_percent = Timestamp::ZERO + TimeDelta::from_secs_f64(end.as_secs_f64() * (done + 1.0) / 100.0);
                (self.options.progress)(done / 100.0);
            }
        }
        for flow in 0..self.network.flows.len() {
            self.end_flow(flow, end);
        }
        Ok(self.network.sim.into_observer().finish(end))
    }

    /// The application pauses, or goes on.
    #[cold]
    fn pause(&mut self, change: &PauseChange) {
        let agent = self.network.flows[change.flow].sender;
        self.network.sim.with_agent(agent, |a, _| a.pause(change));
        self.network.sim.observer_mut().on_run(agent);
    }

    /// Passes to the recorder what is known of a flow only at the end.
    fn end_flow(&mut self, flow: usize, stop: Timestamp) {
        let (sim, ids) = (&mut self.network.sim, self.network.flows[flow]);
        let about = &self.scenario.flows[flow];
        let stop = stop.min(Timestamp::ZERO + about.stop);
        if let Some(side) = self.sampled.iter().find(|side| side.stops.iter().any(|s| s.1 == flow)) {
            self.flows[flow].catch_up(side.samples);
        }
        let headless = sim.agent(ids.sender).refused_first_packets() + sim.observer_mut().first_packets_lost(flow);
        let ends = sim.agent(ids.sender).call().zip(sim.agent(ids.receiver).call());
        let transfers = sim.agent(ids.sender).transfers(about, stop);
        let (quality, picture_quantiles) = sim.agent(ids.receiver).viewer().map(|v| v.summary()).unzip();
        let counters = ends.map(|e| e.0.stats().send_counters());
        let coded = counters.filter(|c| c.frames > 0);
        let coded = coded.map(|c| CodedFrames { frames: c.frames, key: c.key_frames, headless });
        let connection = sim.agent(ids.sender).connection();
        let recovery_delay_ms = self.network.recovery[flow].as_ref().and_then(|r| r.distribution());
        let known = self.flows[flow].finish(ends);
        let mut end = FlowEnd { transfers, quality, picture_quantiles, coded, recovery_delay_ms, ..known };
        if let (Some(rtp), Some((sender, receiver))) = (about.rtp().filter(|r| !r.streams.is_empty()), ends) {
            end.streams = self.streams[flow].finish(rtp, sender, receiver);
            end.stream_frames = self.streams[flow].frames(rtp);
        }
        if let Some(c) = connection {
            c.metrics(&mut |name, value| end.internals.push((name, value)));
        }
        if let Some((paths, _)) = sim.observer_mut().paths_mut(flow) {
            end.recovered += paths.recovered();
            end.multipath = Some(Box::new(paths.finish(Timestamp::ZERO + about.start, stop)));
        }
        sim.observer_mut().recorder.flow_end(flow, end);
    }

    /// Runs both sides up to just before `until`, so that samples at `until` belong to the row that ends there. Each is sampled
    /// as it passes the times between.
    fn advance(&mut self, until: Timestamp, next_sample: &mut Timestamp, interval: TimeDelta) -> Result<(), RunError> {
        let first = *next_sample;
        let mut ticks = self.sampled.each_ref().map(|s| if s.is_sampled() { first } else { Timestamp::MAX });
        loop {
            let sim = &self.network.sim;
            let due = Side::BOTH.map(|side| sim.next_event_of(side).min(ticks[side.index()]));
            let (side, other) = if due[0] <= due[1] { (Side::Near, due[1]) } else { (Side::Far, due[0]) };
            let own = due[side.index()];
            if own >= until {
                break;
            }
            let limit = sim.lookahead().map_or(until, |ahead| until.min(other.min(own + ahead) + ahead));
            let tick = &mut ticks[side.index()];
            while *tick < limit {
                self.run_side(side, *tick)?;
                self.sample(side, *tick);
                *tick += interval;
            }
            self.run_side(side, limit)?;
        }
        self.sides.iter().try_for_each(|side| self.run_side(*side, until))?;
        if first < until {
            let passed = (until - first).as_nanos().saturating_sub(1) / interval.as_nanos() + 1;
            *next_sample = first + interval * passed;
            self.pass_empty(passed as u64, *next_sample - interval, interval);
        }
        Ok(())
    }

    /// Passes `count` samples of the queues that are always empty to the recorder, the last one at `last`.
    fn pass_empty(&mut self, count: u64, last: Timestamp, interval: TimeDelta) {
        let recorder = &mut self.network.sim.observer_mut().recorder;
        for link in self.sampled.iter().flat_map(|s| &s.empty) {
            recorder.link_empty(*link, last, count, interval);
        }
    }

    #[inline]
    fn run_side(&mut self, side: Side, until: Timestamp) -> Result<(), RunError> {
        let outcome = self.network.sim.run_side(side, until - TimeDelta::from_nanos(1));
        if outcome == Outcome::Reached && !self.options.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        cold_path();
        let at = self.network.sim.now();
        Err(if outcome == Outcome::Stuck { RunError::Stuck { at } } else { RunError::Stopped { at } })
    }

    /// Samples the links and flows of a side, and passes the queues of their links to base stations.
    fn sample(&mut self, side: Side, now: Timestamp) {
        let (sim, s) = (&mut self.network.sim, &mut self.sampled[side.index()]);
        for &(i, id) in &s.links {
            let (size, delay) = sim.link(id).queue(now);
            sim.observer_mut().recorder.link(i, now, size, delay);
        }
        for station in s.stations.iter().map(|k| self.network.stations[*k]) {
            cold_path();
            let queue = sim.link(self.network.links[station.link]).queue_size(now);
            sim.with_agent(station.agent, |a, _| a.set_queue(queue));
        }
        s.samples += 1;
        while let Some(&(_, flow)) = s.stops.last().filter(|s| s.0 < now) {
            cold_path();
            self.flows[flow].catch_up(s.samples - 1);
            s.stops.pop();
        }
        let shows_metrics = self.options.series && now >= sim.observer_mut().recorder.next_row();
        s.find_due(now, shows_metrics, sim.observer_mut().active());
        let samples = s.samples;
        self.each(side, |s| &s.due, |run, flow| run.sample_sender(flow, now, samples, shows_metrics));
        self.each(
            side,
            |s| &s.sharing,
            |run, flow| {
                run.sample_streams(flow, now);
                path_sampling::sample(run.scenario, &mut run.network, flow, now);
            },
        );
        self.each(side, |s| &s.playing, |run, flow| run.take_playout(flow, now));
    }

    /// Calls `sample` for each flow of a set, in order.
    #[inline]
    fn each(&mut self, side: Side, set: impl Fn(&SampledSide) -> &[u64], mut sample: impl FnMut(&mut Self, usize)) {
        let words = set(&self.sampled[side.index()]).len();
        for word in 0..words {
            let mut left = set(&self.sampled[side.index()])[word];
            while left != 0 {
                sample(self, word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    fn sample_sender(&mut self, flow: usize, now: Timestamp, samples: u64, shows_metrics: bool) {
        if !self.flows[flow].is_there(now) {
            return;
        }
        let (sim, sampler, ids) = (&mut self.network.sim, &mut self.flows[flow], self.network.flows[flow]);
        let sender = sim.agent(ids.sender);
        let rtt = sender.connection().map(Connection::rtt);
        let transport = rtt.map(|rtt| TransportSample { refused: sender.refused_packets(), rtt });
        if let Some(sample) = transport {
            cold_path();
            sampler.on_transport(&mut sim.observer_mut().recorder, now, sample);
        }
        let Some(call) = sim.agent(ids.sender).call() else { return };
        let sample = SenderSample::of(call).with_transport(transport.is_some());
        sampler.catch_up(samples - 1);
        sampler.on_sender(&mut sim.observer_mut().recorder, now, &sample);
        if shows_metrics {
            cold_path();
            self.record_metrics(flow, now);
        }
    }

    /// Passes the internal values of a call's ends, and the round-trip time of its transport, to the recorder.
    #[inline(never)]
    fn record_metrics(&mut self, flow: usize, now: Timestamp) {
        let (sim, ids) = (&mut self.network.sim, self.network.flows[flow]);
        let mut internals: Vec<(&'static str, f64)> = Vec::new();
        let psnr = sim.agent(ids.receiver).viewer().and_then(|v| v.last_psnr());
        internals.extend(psnr.map(|db| ("psnr_db", db)));
        let rtt = sim.agent(ids.sender).connection().and_then(Connection::rtt);
        internals.extend(rtt.map(|rtt| ("transport_rtt_ms", rtt.as_millis_f64())));
        for end in [ids.sender, ids.receiver] {
            if let Some(call) = sim.agent(end).call() {
                call.stats().metrics(&mut |name, value| internals.push((name, value)));
            }
        }
        let recorder = &mut sim.observer_mut().recorder;
        for (name, value) in internals {
            recorder.metric(flow, now, name, value);
        }
    }

    /// Samples each stream's share of the target in a call of several.
    fn sample_streams(&mut self, flow: usize, now: Timestamp) {
        let about = &self.scenario.flows[flow];
        let Some(rtp) = about.rtp().filter(|r| !r.streams.is_empty()) else { return };
        if now < Timestamp::ZERO + about.start || now > Timestamp::ZERO + about.stop {
            return;
        }
        let (sim, sampler) = (&mut self.network.sim, &mut self.streams[flow]);
        let plays = self.flows[flow].plays(now);
        let rates = sim.agent(self.network.flows[flow].sender).call().map(|c| sampler.sample(c, now, plays));
        let recorder = &mut sim.observer_mut().recorder;
        if now >= recorder.next_row() {
            for (i, (rate, stream)) in rates.into_iter().flatten().zip(&rtp.streams).enumerate() {
                recorder.stream(flow, now, i, &stream.name, rate);
            }
        }
    }

    /// Passes frames whose playout time has come to the recorder, and the playout's discards.
    fn take_playout(&mut self, flow: usize, now: Timestamp) {
        let sim = &mut self.network.sim;
        let receiver = self.network.flows[flow].receiver;
        let Some(discards) = sim.agent(receiver).call().and_then(Discards::of) else { return };
        let about = &self.scenario.flows[flow];
        for stream in 0..about.rtp().map_or(0, |r| r.streams.len()).max(1) {
            while let Some(e) = sim.with_agent(receiver, |a, _| a.poll_playout(now, stream)) {
                let frame = sampling::frame_record(&e, about);
                sim.observer_mut().recorder.frame(flow, stream, frame);
            }
        }
        self.flows[flow].on_discards(&mut sim.observer_mut().recorder, now, discards);
    }

    /// Instants at which sources pause and resume, in order.
    fn pauses(&self) -> Vec<PauseChange> {
        let of = |(i, flow)| sampling::pauses(i, flow);
        let mut all: Vec<_> = self.scenario.flows.iter().enumerate().flat_map(of).collect();
        all.sort_unstable();
        all
    }
}
