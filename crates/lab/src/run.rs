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

use crate::metrics::{FlowEnd, Recorder};
use crate::results::{CodedFrames, RunResult};
use crate::scenario::{Flow, Scenario};
use network::Network;
use observer::RunObserver;
use path_meter::PathMeter;
use sampling::{Discards, FlowSampler, PauseChange, SAMPLING_INTERVAL, SenderSample, TransportSample};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use stream_sampling::StreamSampler;
use weir_cc::{Registry, tunable::SetupError};
use weir_dccp::connection::Connection;
use weir_sim::Outcome;
use weir_units::cold_path;
use weir_units::{TimeDelta, Timestamp};

/// Shared by runs in real time and simulated ones: the ends of flows, their sampling, and the recorder's configuration.
pub mod parts {
    pub use super::call::{Call, call};
    pub use super::dccp::{config as dccp_config, session_config as dccp_session_config};
    pub use super::ends::Ends;
    pub use super::forecast::ForecastFeeds;
    pub use super::network::{Foresight, access_link, foresight};
    pub use super::path_meter::PathMeter;
    pub use super::recording::recorder_config;
    pub use super::sampling::{
        Discards, FlowSampler, PauseChange, SAMPLING_INTERVAL, SenderSample, TransportSample, frame_record, pauses,
    };
    pub use super::streams::REPAIR_PAYLOAD_TYPES;
    pub use super::traffic::{UDP_OVERHEAD, distribution, udp_agent};
    pub use super::video::Viewer;
}

/// Simulator events between two checks of the stop flag.
const EVENTS_PER_CHECK: u64 = 50_000;

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
    let last_first = |time: fn(&Flow) -> TimeDelta| {
        let mut all: Vec<_> = scenario.flows.iter().enumerate().map(|(i, f)| (Timestamp::ZERO + time(f), i)).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all
    };
    let (starts, stops) = (last_first(|f| f.start), last_first(|f| f.stop));
    let words = scenario.flows.len().div_ceil(64);
    let mut run = Run {
        scenario,
        options,
        network,
        flows: FlowSampler::all(scenario),
        streams,
        samples: 0,
        starts,
        stops,
        steady: vec![0; words],
        due: vec![0; words],
    };
    run.find_steady();
    run.go()
}

struct Run<'a, 'p> {
    scenario: &'a Scenario,
    options: &'a RunOptions<'a>,
    network: Network<RunObserver<'p>>,
    /// By flow.
    flows: Vec<FlowSampler>,
    /// The streams of each flow.
    streams: Vec<StreamSampler>,
    /// How many samples have been taken.
    samples: u64,
    /// When flows start and stop, the first at the end, until sampling has passed them.
    starts: Vec<(Timestamp, usize)>,
    stops: Vec<(Timestamp, usize)>,
    /// Flows that are sampled every time, and those that are sampled now: one bit each. The others change only when
    /// their sending agent runs.
    steady: Vec<u64>,
    due: Vec<u64>,
}

impl Run<'_, '_> {
    fn go(mut self) -> Result<RunResult, RunError> {
        let end = Timestamp::ZERO + self.scenario.duration;
        let interval = SAMPLING_INTERVAL.min(self.scenario.sample_interval).max(TimeDelta::from_millis(1));
        let mut now = Timestamp::ZERO;
        let pauses = self.pauses();
        let mut next_pause = pauses.iter().peekable();
        let mut next_percent = Timestamp::ZERO;
        while now < end {
            let mut until = (now + interval).min(end);
            if let Some(p) = next_pause.peek().filter(|p| p.at < until) {
                until = p.at.max(now);
            }
            self.advance(until)?;
            while let Some(&&p) = next_pause.peek().filter(|p| p.at <= until) {
                self.pause(&p);
                next_pause.next();
            }
            now = until;
            self.sample(now);
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
        if self.stops.iter().any(|s| s.1 == flow) {
            self.flows[flow].catch_up(self.samples);
        }
        let headless = sim.agent(ids.sender).refused_first_packets() + sim.observer_mut().first_packets_lost(flow);
        let ends = sim.agent(ids.sender).call().zip(sim.agent(ids.receiver).call());
        let transfers = sim.agent(ids.sender).transfers(about, stop);
        let (quality, picture_quantiles) = sim.agent(ids.receiver).viewer().map(|v| v.summary()).unzip();
        let counters = ends.map(|e| e.0.stats().send_counters());
        let coded = counters.filter(|c| c.frames > 0);
        let coded = coded.map(|c| CodedFrames { frames: c.frames, key: c.key_frames, headless });
        let connection = sim.agent(ids.sender).connection();
        let mut end = FlowEnd { transfers, quality, picture_quantiles, coded, ..self.flows[flow].finish(ends) };
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

    /// Runs up to just before `until`, so that samples at `until` belong to the row that ends there.
    fn advance(&mut self, until: Timestamp) -> Result<(), RunError> {
        let stop = self.options.stop;
        let hook = |_| if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let before = until - TimeDelta::from_nanos(1);
        let outcome = self.network.sim.run_until_with(before, EVENTS_PER_CHECK, hook);
        let at = self.network.sim.now();
        match outcome {
            Outcome::Reached if stop.load(Ordering::Relaxed) => Err(RunError::Stopped { at }),
            Outcome::Reached => Ok(()),
            Outcome::Cancelled => Err(RunError::Stopped { at }),
            Outcome::Stuck => Err(RunError::Stuck { at }),
        }
    }

    /// Samples links and flows, and passes the queues of their links to base stations.
    fn sample(&mut self, now: Timestamp) {
        let sim = &mut self.network.sim;
        for (i, id) in self.network.links.iter().enumerate() {
            let link = sim.link(*id);
            let (size, delay) = (link.queue_size(now), link.queue_delay(now));
            sim.observer_mut().recorder.link(i, now, size, delay);
        }
        for station in &self.network.stations {
            cold_path();
            let queue = sim.link(self.network.links[station.link]).queue_size(now);
            sim.with_agent(station.agent, |a, _| a.set_queue(queue));
        }
        self.samples += 1;
        while let Some(&(_, flow)) = self.stops.last().filter(|s| s.0 < now) {
            cold_path();
            self.flows[flow].catch_up(self.samples - 1);
            self.stops.pop();
        }
        let shows_metrics = self.options.series && now >= sim.observer_mut().recorder.next_row();
        self.due.copy_from_slice(&self.steady);
        sim.observer_mut().take_active(&mut self.due);
        while let Some(&(_, flow)) = self.starts.last().filter(|s| s.0 <= now) {
            cold_path();
            self.due[flow / 64] |= 1 << (flow % 64);
            self.starts.pop();
        }
        if shows_metrics {
            self.due.fill(u64::MAX);
        }
        self.each_due(|run, flow| run.sample_sender(flow, now, shows_metrics));
        self.each_due(|run, flow| {
            run.sample_streams(flow, now);
            path_sampling::sample(run.scenario, &mut run.network, flow, now);
            run.take_playout(flow, now);
        });
    }

    fn each_due(&mut self, mut sample: impl FnMut(&mut Self, usize)) {
        for word in 0..self.due.len() {
            let mut left = self.due[word];
            while left != 0 {
                let flow = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if flow < self.flows.len() {
                    sample(self, flow);
                }
            }
        }
    }

    /// Finds the flows that change without their sending agent, or whose parts are sampled each time.
    fn find_steady(&mut self) {
        let sim = &self.network.sim;
        for (i, (ids, flow)) in self.network.flows.iter().zip(&self.scenario.flows).enumerate() {
            let plays = sim.agent(ids.receiver).call().is_some_and(|c| Discards::of(c).is_some());
            let has_streams = flow.rtp().is_some_and(|r| !r.streams.is_empty() || r.multipath.is_some());
            if plays || has_streams || sim.agent(ids.sender).is_over_dccp() {
                self.steady[i / 64] |= 1 << (i % 64);
            }
        }
    }

    fn sample_sender(&mut self, flow: usize, now: Timestamp, shows_metrics: bool) {
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
        let mut internals: Vec<(&'static str, f64)> = Vec::new();
        if shows_metrics {
            cold_path();
            let psnr = sim.agent(ids.receiver).viewer().and_then(|v| v.last_psnr());
            internals.extend(psnr.map(|db| ("psnr_db", db)));
            call.stats().metrics(&mut |name, value| internals.push((name, value)));
            if let Some(other) = sim.agent(ids.receiver).call() {
                other.stats().metrics(&mut |name, value| internals.push((name, value)));
            }
        }
        sampler.catch_up(self.samples - 1);
        let recorder = &mut sim.observer_mut().recorder;
        sampler.on_sender(recorder, now, &sample);
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
