//! Samples the ends of live calls, on their threads.

use super::flow_run::FlowRun;
use super::samples::{Internals, SharedSamples};
use weir_lab::run::parts::{
    Discards, EndClock, ForecastFeeds, PauseChange, SAMPLING_INTERVAL, SenderSample, Viewer, frame_record, pauses,
};
use weir_lab::scenario::Flow;
use weir_live::call::CallObserver;
use weir_session::Endpoint;
use weir_units::{PathId, TimeDelta, Timestamp};

/// An end of a call.
pub(super) enum CallSide<'a> {
    Sender,
    /// With the viewer of its pictures, if they have content.
    Receiver(Option<&'a mut Viewer>),
}

/// Samples one end of a call, and pauses its source as in the scenario.
pub(super) struct EndSampler<'a> {
    samples: &'a SharedSamples,
    flow: &'a Flow,
    side: CallSide<'a>,
    /// The forecasts that it gets.
    forecast: Option<ForecastFeeds>,
    /// Its clock, if that is not the run's: all times that it gets are of it.
    clock: Option<EndClock>,
    /// In reverse order, the next one last.
    pauses: Vec<PauseChange>,
    /// Interval between samples of the controller's internals; `None` if they are not recorded.
    internals_every: Option<TimeDelta>,
    next_internals: Timestamp,
    interval: TimeDelta,
    /// Number of the call's paths.
    paths: u8,
}

impl<'a> EndSampler<'a> {
    pub(super) fn new(
        run: &FlowRun<'a>,
        side: CallSide<'a>,
        forecast: Option<ForecastFeeds>,
        clock: Option<EndClock>,
    ) -> Self {
        let flow = run.flow();
        let mut pauses: Vec<_> = match side {
            CallSide::Sender => pauses(run.index, flow).collect(),
            CallSide::Receiver(_) => Vec::new(),
        };
        pauses.reverse();
        Self {
            samples: run.samples,
            flow,
            side,
            forecast,
            clock,
            pauses,
            internals_every: run.internals_every,
            next_internals: Timestamp::ZERO,
            interval: SAMPLING_INTERVAL.min(run.scenario.sample_interval),
            paths: flow.rtp().and_then(|r| r.multipath.as_ref()).map_or(1, |m| m.paths.len() as u8),
        }
    }

    /// The run's time at this one of the end's own.
    fn when(&self, own: Timestamp) -> Timestamp {
        self.clock.as_ref().map_or(own, |clock| clock.when(own))
    }

    /// The controller's internals, if they are due.
    fn internals(&mut self, now: Timestamp, endpoint: &Endpoint) -> Option<Internals> {
        let every = self.internals_every.filter(|_| now >= self.next_internals)?;
        self.next_internals = now + every;
        let mut all = Internals::new();
        if let CallSide::Receiver(Some(viewer)) = &self.side {
            all.extend(viewer.last_psnr().map(|db| ("psnr_db", db)));
        }
        endpoint.stats().metrics(&mut |name, value| all.push((name, value)));
        Some(all)
    }
}

impl CallObserver for EndSampler<'_> {
    fn look_interval(&self) -> TimeDelta {
        self.interval
    }

    fn on_turn(&mut self, own: Timestamp, endpoint: &mut Endpoint) {
        let now = self.when(own);
        if let Some(offset) = self.clock.as_mut().and_then(|clock| clock.set_until(now)) {
            endpoint.rtcp().set_clock_offset(offset);
        }
    }

    fn on_look(&mut self, own: Timestamp, endpoint: &mut Endpoint) {
        let now = self.when(own);
        if let Some(forecast) = &mut self.forecast {
            forecast.give(endpoint, now, own);
        }
        while let Some(change) = self.pauses.pop_if(|p| p.at <= now) {
            change.apply(endpoint);
        }
        let mut frames = Vec::new();
        if let CallSide::Receiver(viewer) = &mut self.side {
            while let Some(mut e) = endpoint.poll_playout(own) {
                if let Some(viewer) = viewer {
                    viewer.on_playout(endpoint, &e, own);
                }
                if let Some(clock) = &self.clock {
                    e.at = clock.when(e.at).min(now);
                }
                frames.push(frame_record(&e, self.flow));
            }
        }
        let internals = self.internals(now, endpoint);
        match self.side {
            CallSide::Sender => {
                self.samples.set_sender(SenderSample::of(endpoint), internals);
                if self.paths > 1 {
                    let stats = (0..self.paths).filter_map(|n| endpoint.path(PathId::new(n)).and_then(|p| p.stats()));
                    self.samples.set_paths(stats);
                }
            }
            CallSide::Receiver(_) => self.samples.set_receiver(frames, Discards::of(endpoint), internals),
        }
    }
}
