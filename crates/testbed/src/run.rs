//! One scenario and one seed in real time.

use super::capture::{self, CaptureFile, capture};
use super::error::LiveError;
use super::flow_run::FlowRun;
use super::flows::{FlowFactory, LiveFlow, remark};
use super::network::{emulated, hosts};
use super::observer::LiveObserver;
use super::samples::{FlowRecording, SharedSamples};
use super::start::Start;
use super::station::LiveStation;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use weir_lab::metrics::{FlowEnd, Recorder};
use weir_lab::results::{self, Live, RunResult};
use weir_lab::run::parts::{FlowSampler, PathMeter, SAMPLING_INTERVAL, TransportSample, recorder_config};
use weir_lab::run::{RunError, RunOptions};
use weir_lab::scenario::{Clocks, FlowKind, Scenario, Source};
use weir_live::emulate::{Accuracy, Emulator, Network};
use weir_live::tun::Side;
use weir_path::Capacity;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Most flows that one machine runs at once.
const MAX_FLOWS: usize = 40;
/// Fastest link that is emulated.
const MAX_RATE: DataRate = DataRate::from_mbps(200);
/// Luma samples per second that can be coded in the thread of a call's end: 640x480 at 30 pictures per second. OpenH264
/// takes about 1 to 4 ms per picture of that size, which delays packets by as much.
const MAX_SAMPLES: f64 = 640.0 * 480.0 * 30.0;
/// Interval at which progress is reported and the stop flag checked.
const TICK: Duration = Duration::from_millis(50);

/// Options of a live run.
#[derive(Clone, Copy)]
pub struct LiveOptions<'a> {
    /// As for a simulated run.
    pub run: RunOptions<'a>,
    /// The kernel's congestion control for every TCP flow, such as `bbr`; the scenario's own if absent.
    pub congestion: Option<&'a str>,
    /// Files for its packets.
    pub captures: &'a [CaptureFile<'a>],
}

/// Result of a live run.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveRun {
    /// The same as a simulated run, with [`RunResult::live`] set.
    pub result: RunResult,
    /// Timing accuracy of the emulator.
    pub accuracy: Accuracy,
    /// Packets in each of the captures.
    pub captured: Vec<u64>,
}

/// Rejects what one machine cannot run in real time.
fn check(s: &Scenario) -> Result<(), LiveError> {
    let cannot = |what: String| Err(LiveError::Cannot { what: format!("{what}: run it simulated, by `weir run`") });
    let routes = hosts(&s.flows).len();
    if routes > MAX_FLOWS {
        return cannot(format!("{routes} flows and further paths are more than the {MAX_FLOWS} that run live"));
    }
    for link in &s.links {
        let fastest = match &link.config.capacity {
            Capacity::Unlimited => continue,
            Capacity::Schedule(steps) if link.trace.is_none() => {
                steps.steps().iter().map(|s| s.rate).max().unwrap_or(DataRate::ZERO)
            }
            constant_or_recorded => constant_or_recorded.rate_at(Timestamp::ZERO),
        };
        if fastest > MAX_RATE {
            return cannot(format!("link `{}` with {fastest} is faster than the {MAX_RATE} that run live", link.name));
        }
    }
    for flow in &s.flows {
        if let FlowKind::Rtp(r) = &flow.kind
            && r.payload().as_bytes() > 1_400
        {
            let (name, size) = (&flow.name, r.payload().as_bytes());
            return cannot(format!("flow `{name}`: RTP payloads of {size} bytes do not fit into packets of 1500"));
        }
        if flow.rtp().is_some_and(|r| is_coarse(&r.clocks)) {
            let name = &flow.name;
            return cannot(format!(
                "flow `{name}`: only simulated ends have a `clock` with a `granularity`; leave it out"
            ));
        }
    }
    check_pictures(s)
}

fn is_coarse(clocks: &Clocks) -> bool {
    [&clocks.sender, &clocks.receiver].into_iter().flatten().any(|c| c.granularity > TimeDelta::ZERO)
}

/// Rejects pictures that the ends' threads, and the machine's cores, cannot code in time.
fn check_pictures(s: &Scenario) -> Result<(), LiveError> {
    let cores = thread::available_parallelism().map_or(1, usize::from) as f64;
    let cannot = |what: String| {
        let way_out = "give it a smaller `picture` or `fps`, or run it simulated, by `weir run`";
        Err(LiveError::Cannot { what: format!("{what}: {way_out}") })
    };
    let mut all = 0.0;
    for flow in &s.flows {
        let Some(Source::Encoder(video)) = flow.rtp().map(|r| &r.source) else { continue };
        // An unreadable file is rejected with its reasons when the flow is made.
        let Some((width, height)) = video.clip.size() else { continue };
        let samples = f64::from(width) * f64::from(height) * video.fps;
        all += samples;
        let (name, fps) = (&flow.name, video.fps);
        if samples > MAX_SAMPLES {
            return cannot(format!(
                "flow `{name}`: pictures of {width}x{height} at {fps} a second are coded between its packets, \
                 which those of more than 640x480 at 30 a second would hold up"
            ));
        }
        if all > cores * MAX_SAMPLES {
            return cannot(format!(
                "flow `{name}`: with the flows before it {:.1} million samples a second are to be coded, more than the \
                 {:.1} million of 640x480 at 30 for each of {cores} cores",
                all / 1e6,
                cores * MAX_SAMPLES / 1e6
            ));
        }
    }
    Ok(())
}

/// Runs a scenario in real time: network namespaces, the emulated links, calls on sockets, the kernel's TCP. It takes
/// the scenario's duration. Everything is cleaned up in any case.
///
/// Errors: what cannot run live, a missing privilege or program, or the stop flag.
pub fn run_live(scenario: &Scenario, seed: u64, options: &LiveOptions<'_>) -> Result<LiveRun, LiveError> {
    check(scenario)?;
    let mut config = recorder_config(scenario, seed, options.run.series);
    for flow in config.flows.iter_mut().filter(|f| f.kind == results::FlowKind::Tcp) {
        if let Some(name) = options.congestion {
            flow.controller = name.to_owned();
        }
    }
    let recorder = Recorder::new(config);
    let (sinks, captured) = options.captures.iter().map(|file| capture(file.at)).unzip::<_, _, Vec<_>, Vec<_>>();
    let mut emulator = Emulator::new(&emulated(scenario, seed), LiveObserver::new(scenario, recorder, sinks))?;
    let stations = LiveStation::all(scenario, seed, &mut emulator)?;
    let (left, right) = (emulator.namespace(Side::Left).clone(), emulator.namespace(Side::Right).clone());
    let factory = FlowFactory {
        scenario,
        registry: options.run.registry,
        seed,
        congestion: options.congestion,
        left: &left,
        right: &right,
    };
    let hosts = hosts(&scenario.flows);
    let flows = scenario.flows.iter().enumerate().map(|(i, f)| factory.make(i, f, &hosts));
    let mut flows = flows.collect::<Result<Vec<LiveFlow>, LiveError>>()?;

    let samples: Vec<SharedSamples> = flows.iter().map(|_| SharedSamples::default()).collect();
    let start = Start::new(1 + flows.iter().map(LiveFlow::threads).sum::<usize>());
    let ended = AtomicBool::new(false);
    let (carried, captured) = thread::scope(|scope| {
        let (start, ended, samples) = (&start, &ended, &samples);
        let mut writers = Vec::new();
        for (file, packets) in options.captures.iter().zip(captured) {
            writers.push(scope.spawn(move || {
                let written = capture::write(file.path, scenario, &packets, &start.clock);
                written.map_err(|source| LiveError::Capture { file: file.path.display().to_string(), source })
            }));
        }
        let mut threads = Vec::new();
        for (i, (flow, samples)) in flows.iter_mut().zip(samples).enumerate() {
            let internals_every = options.run.series.then_some(scenario.sample_interval);
            threads.extend(flow.spawn(scope, FlowRun { scenario, index: i, samples, start, ended, internals_every }));
        }
        let emulating = scope.spawn(move || carry(scenario, (emulator, stations), samples, start, ended));
        let clock = start.begin();
        let total = scenario.duration.as_secs_f64().max(1e-9);
        while !emulating.is_finished() {
            thread::sleep(TICK);
            (options.run.progress)((clock.now().as_secs_f64() / total).min(1.0));
            if options.run.stop.load(Ordering::Relaxed) {
                ended.store(true, Ordering::Relaxed);
            }
        }
        ended.store(true, Ordering::Relaxed);
        let at = clock.now();
        // Dropping the emulator closes its end of the captures, so that the writers finish.
        let carried = join(emulating);
        let failed = threads.into_iter().filter_map(|t| join(t).err()).collect::<Vec<_>>();
        let captured = writers.into_iter().map(join).collect::<Result<Vec<u64>, _>>()?;
        if options.run.stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped { at }.into());
        }
        match failed.into_iter().next() {
            Some(e) => Err(e),
            None => Ok((carried.map_err(LiveError::Device)?, captured)),
        }
    })?;
    let Carried { accuracy, mut recorder, mut paths, mut samplers } = carried;
    let end = Timestamp::ZERO + scenario.duration;
    for (i, (flow, sampler)) in flows.iter().zip(&mut samplers).enumerate() {
        if let Some(refused) = flow.refused(end) {
            sampler.on_transport(&mut recorder, end, TransportSample { refused, rtt: None });
        }
        let transfers = flow.transfers(&scenario.flows[i]);
        let (quality, picture_quantiles) = flow.quality().unzip();
        let mut flow_end = FlowEnd { transfers, quality, picture_quantiles, ..sampler.finish(flow.endpoints()) };
        if let Some(meter) = paths.get_mut(i).and_then(Option::as_deref_mut) {
            let about = &scenario.flows[i];
            let stop = end.min(Timestamp::ZERO + about.stop);
            flow_end.recovered += meter.recovered();
            flow_end.multipath = Some(Box::new(meter.finish(Timestamp::ZERO + about.start, stop)));
        }
        recorder.flow_end(i, flow_end);
    }
    let mut result = recorder.finish(end);
    let remarks = scenario.flows.iter().filter_map(|f| remark(f, options.congestion));
    result.live = Some(live(&accuracy, scenario.bottleneck, remarks.collect()));
    Ok(LiveRun { result, accuracy, captured })
}

/// Result of the emulator's thread.
struct Carried {
    accuracy: Accuracy,
    recorder: Recorder,
    /// Of flows over several paths.
    paths: Vec<Option<Box<PathMeter>>>,
    samplers: Vec<FlowSampler>,
}

/// The emulator's thread: forwards packets, and records samples of the queues and of the flows' ends.
fn carry(
    scenario: &Scenario,
    (mut emulator, mut stations): (Emulator<LiveObserver>, Vec<LiveStation>),
    samples: &[SharedSamples],
    start: &Start,
    ended: &AtomicBool,
) -> io::Result<Carried> {
    emulator.hurry();
    let clock = start.wait();
    let mut samplers = FlowSampler::all(scenario);
    let record = |now: Timestamp, network: &mut Network<LiveObserver>| {
        for i in 0..scenario.links.len() {
            let link = network.link(i);
            let (size, delay) = (link.queue_size(now), link.queue_delay(now));
            network.observer_mut().recorder.link(i, now, size, delay);
        }
        stations.iter_mut().for_each(|s| s.step(now, network));
        let observer = network.observer_mut();
        let recorder = &mut observer.recorder;
        let row = recorder.wants_series() && now >= recorder.next_row();
        for (index, (samples, sampler)) in samples.iter().zip(&mut samplers).enumerate() {
            let mut to = FlowRecording { index, flow: &scenario.flows[index], sampler, row };
            samples.record(recorder, &mut to, now);
            if let Some(meter) = observer.paths.get_mut(index).and_then(Option::as_deref_mut) {
                samples.record_paths(recorder, meter, &mut to, (now, scenario.sample_interval));
            }
        }
        ControlFlow::Continue(())
    };
    let every = SAMPLING_INTERVAL.min(scenario.sample_interval);
    let accuracy = emulator.run(&clock, Some(Timestamp::ZERO + scenario.duration), ended, every, record)?;
    let LiveObserver { recorder, paths, .. } = emulator.into_observer();
    Ok(Carried { accuracy, recorder, paths, samplers })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn live(a: &Accuracy, bottleneck: usize, remarks: Vec<String>) -> Live {
    let link = a.links.get(bottleneck);
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let error = a.delay_error;
    Live {
        delay_error_mean_ms: error.map_or(0.0, |e| e.mean_ms),
        delay_error_p99_ms: error.map_or(0.0, |e| e.p99_ms),
        delay_error_max_ms: error.map_or(0.0, |e| e.max_ms),
        late_packets: error.map_or(0, |e| e.late),
        overruns: a.left.overruns + a.right.overruns,
        rate_ratio: link.and_then(|l| Some(l.saturated_bps? / l.capacity_bps?)),
        emulator_cpu: a.cpu_share,
        load: load.and_then(|l| l.split_whitespace().next()?.parse().ok()),
        realtime: a.realtime,
        remarks,
    }
}
