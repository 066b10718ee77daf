//! A simulated call whose media rate is set from outside, step by step.

use super::network::{self, Network};
use super::sampling::{self, PauseChange};
use super::{Discards, RunError};
use crate::scenario::{Flow, InputError, Scenario, ScenarioFile};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_cc::cue::{PacketResult, QueueState, SentPacket, TransportFeedback};
use weir_cc::intervals::{Decide, Interval, IntervalController, Meter, spec};
use weir_cc::{Controller, Coupled, Cue, Limits, Pair, ProbeCluster, Registry, Sender, Spec, Target, TimeoutReason};
use weir_sim::Outcome;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Name of the controller that is set from outside.
pub const OUTSIDE: &str = "outside";

/// Makes calls in which one flow's controller is set from outside, or only observed. It is shared between threads.
pub struct Stepping {
    registry: Registry,
    /// The controller of the flow that is stepped: [`OUTSIDE`], or the observed one.
    controller: String,
    step: TimeDelta,
    /// State that the controllers of the call under construction share with it.
    made: Arc<Mutex<Vec<Shared>>>,
    is_observed: bool,
    /// Held while a call is made, so that it gets its own.
    making: Mutex<()>,
}

/// State that a controller shares with its caller.
#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

struct State {
    meter: Meter,
    packets: Vec<PacketResult>,
    /// Set from outside, or that of the observed controller.
    target: DataRate,
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        held(&self.0)
    }
    fn on_sent(&self, packet: &SentPacket) {
        self.state().meter.on_sent(packet);
    }
    fn on_feedback(&self, feedback: &TransportFeedback<'_>) {
        let mut state = self.state();
        state.meter.on_feedback(feedback);
        state.packets.extend_from_slice(feedback.packets);
    }
}

impl Decide for Shared {
    fn on_sent(&mut self, packet: &SentPacket) {
        Self::on_sent(self, packet);
    }
    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        Self::on_feedback(self, feedback);
    }
    fn decide(&mut self, _: bool, _: Timestamp) -> DataRate {
        self.state().target
    }
}

/// A controller that runs as it is, and whose feedback is metered.
struct Observed {
    inner: Sender,
    shared: Shared,
}

impl Observed {
    fn note(&self) {
        self.shared.state().target = self.inner.target().media_rate;
    }
}

impl Controller for Observed {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.inner.on_packet_sent(packet);
        self.shared.on_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.inner.on_cue(cue);
        if let Cue::TransportFeedback(feedback) = cue {
            self.shared.on_feedback(feedback);
        }
        self.note();
    }
    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        let has_news = self.inner.on_rtcp(datagram, now);
        self.note();
        has_news
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.inner.on_limits(limits, now);
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        self.inner.coupled_rate()
    }
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        self.inner.on_coupled(coupled, now);
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.inner.on_queue(queue)
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.inner.on_timeout(now);
        self.note();
    }
    fn target(&self) -> Target {
        self.inner.target()
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.inner.poll_timeout()
    }
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        self.inner.poll_probe(now)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.inner.metrics(out);
    }
}

impl Stepping {
    /// Calls in steps of this length, at least 1 ms, whose meters keep so many intervals. With `observed`, that controller of
    /// the registry sets the rate itself. Errors: there is none of that name.
    pub fn new(
        registry: &Registry,
        step: TimeDelta,
        kept: usize,
        observed: Option<&str>,
    ) -> Result<Self, weir_cc::tunable::SetupError> {
        let step = step.max(TimeDelta::from_millis(1));
        let made = Arc::new(Mutex::new(Vec::new()));
        let share = {
            let made: Arc<Mutex<Vec<Shared>>> = Arc::clone(&made);
            move |setup: &weir_cc::Setup| {
                let state = State { meter: Meter::new(setup.now, kept), packets: Vec::new(), target: setup.start_rate };
                let shared = Shared(Arc::new(Mutex::new(state)));
                held(&made).push(shared.clone());
                shared
            }
        };
        let (mut own, inner) = (registry.clone(), registry.clone());
        let entry: Spec = match observed {
            None => spec(OUTSIDE, "a rate set from outside", "the caller's", step),
            Some(name) => own.find(name)?.clone(),
        };
        let (controller, is_observed) = (entry.name.clone(), observed.is_some());
        own.register(entry, move |name, setup| {
            let shared = share(setup);
            if !is_observed {
                let outside = IntervalController::new(shared, &setup.start(), step);
                return Ok(Pair::alone(Sender::Custom(Box::new(outside))));
            }
            let pair = inner.make(name, setup)?;
            Ok(Pair {
                sender: Sender::Custom(Box::new(Observed { inner: pair.sender, shared })),
                receiver: pair.receiver,
            })
        });
        Ok(Self { registry: own, controller, step, made, is_observed, making: Mutex::new(()) })
    }

    /// The length of a step.
    pub const fn step(&self) -> TimeDelta {
        self.step
    }

    /// The registry, which has the controller that is stepped.
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A scenario of a file with the stepped controller in place of `$controller`, or of the only RTP flow's controller.
    /// Errors: as of [`ScenarioFile::scenario`]; not exactly one flow would be stepped.
    pub fn scenario(&self, file: &ScenarioFile, variant: Option<&str>) -> Result<Scenario, InputError> {
        let scenario = file.scenario(variant, Some(&self.controller), &self.registry)?;
        let stepped = scenario.flows.iter().filter(|f| self.is_stepped(f)).count();
        let paths = scenario.flows.iter().any(|f| f.rtp().is_some_and(|r| r.multipath.is_some()));
        match stepped {
            1 if !paths => Ok(scenario),
            1 => Err(InputError::whole(file.name(), "a call over several paths has no single rate to set")),
            n => Err(InputError::whole(
                file.name(),
                format!("{n} flows have the controller \"$controller\": expected one, whose rate is then set"),
            )),
        }
    }

    fn is_stepped(&self, flow: &Flow) -> bool {
        flow.rtp().is_some_and(|r| r.controller == self.controller)
    }

    /// A call at time zero. Errors: something that the scenario refers to cannot be constructed, or no flow is stepped.
    pub fn call(&self, scenario: &Scenario, seed: u64) -> Result<SteppedCall, RunError> {
        let flow = scenario.flows.iter().position(|f| self.is_stepped(f));
        let _making = held(&self.making);
        held(&self.made).clear();
        let network = network::network(scenario, seed, &self.registry, ())?;
        let shared = held(&self.made).pop();
        let Some((flow, shared)) = flow.zip(shared) else {
            let message = format!("no flow has the controller `{}`", self.controller);
            return Err(RunError::Traffic { flow: scenario.name.clone(), message });
        };
        let mut pauses: Vec<_> = scenario.flows.iter().enumerate().flat_map(|(i, f)| sampling::pauses(i, f)).collect();
        pauses.sort_unstable_by(|a, b| b.cmp(a));
        Ok(SteppedCall {
            network,
            shared,
            now: Timestamp::ZERO,
            step: self.step,
            is_observed: self.is_observed,
            start: Timestamp::ZERO + scenario.flows[flow].start,
            end: Timestamp::ZERO + scenario.duration.min(scenario.flows[flow].stop),
            pauses,
            ended: Interval::default(),
            packets: Vec::new(),
        })
    }
}

/// A call in which one flow's rate is set from outside. It gives the events of the same run without steps.
pub struct SteppedCall {
    network: Network<()>,
    shared: Shared,
    now: Timestamp,
    step: TimeDelta,
    is_observed: bool,
    start: Timestamp,
    end: Timestamp,
    /// Pauses of sources, the first at the end.
    pauses: Vec<PauseChange>,
    ended: Interval,
    packets: Vec<PacketResult>,
}

impl SteppedCall {
    /// Sets the media rate and runs for one step, up to just before its end, or to the end of the call. The first step also
    /// runs what precedes the flow. An observed controller keeps its own rate. Errors: time stands still.
    pub fn step(&mut self, rate: DataRate) -> Result<&Interval, RunError> {
        {
            let mut state = self.shared.state();
            if !self.is_observed {
                state.target = rate;
            }
            state.packets.clear();
        }
        let until = (self.now.max(self.start) + self.step).min(self.end);
        while let Some(p) = self.pauses.pop_if(|p| p.at < until) {
            self.advance(p.at)?;
            let agent = self.network.flows[p.flow].sender;
            self.network.sim.with_agent(agent, |a, _| a.pause(&p));
        }
        self.advance(until)?;
        self.drain();
        let mut state = self.shared.state();
        let target = state.target.as_bps_f64();
        self.ended = state.meter.end(until, target);
        std::mem::swap(&mut self.packets, &mut state.packets);
        Ok(&self.ended)
    }

    /// Runs up to just before `until`: what happens then belongs to the next step.
    fn advance(&mut self, until: Timestamp) -> Result<(), RunError> {
        let before = until - TimeDelta::from_nanos(1);
        match self.network.sim.run_until(before) {
            Outcome::Reached => {}
            _ => return Err(RunError::Stuck { at: self.network.sim.now() }),
        }
        self.now = until;
        Ok(())
    }

    /// Takes what base stations and playout have for their caller.
    fn drain(&mut self) {
        let (sim, now) = (&mut self.network.sim, self.now);
        for station in &self.network.stations {
            let queue = sim.link(self.network.links[station.link]).queue_size(now);
            sim.with_agent(station.agent, |a, _| a.set_queue(queue));
        }
        for ends in &self.network.flows {
            let receiver = sim.agent(ends.receiver).call().filter(|c| Discards::of(c).is_some());
            for stream in 0..receiver.map_or(0, |c| c.stats().incoming_ids().count()) {
                while sim.with_agent(ends.receiver, |a, _| a.poll_playout(now, stream)).is_some() {}
            }
        }
    }

    /// The packets that reports resolved during the step, in the order of reports.
    pub fn packets(&self) -> &[PacketResult] {
        &self.packets
    }
    /// The meter of the flow.
    pub fn with_meter<T>(&self, read: impl FnOnce(&Meter) -> T) -> T {
        read(&self.shared.state().meter)
    }
    /// The end of the last step.
    pub const fn now(&self) -> Timestamp {
        self.now
    }
    /// Whether the flow or the scenario has ended.
    pub fn is_over(&self) -> bool {
        self.now >= self.end
    }
    /// Events that the simulator has handled.
    pub fn events(&self) -> u64 {
        self.network.sim.totals().events
    }
}
