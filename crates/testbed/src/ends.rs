//! The observer of a live call's end.

use super::flow_run::FlowRun;
use super::looks::{Shared, with};
use weir_lab::measure::run::parts::{LOOK_INTERVAL, SenderLook, Viewer, discarded, frame_record, pauses};
use weir_lab::measure::scenario::Flow;
use weir_live::call::CallObserver;
use weir_session::Endpoint;
use weir_units::{TimeDelta, Timestamp};

/// Which end of a call.
pub(super) enum EndOf<'a> {
    Sender,
    /// With who sees what arrives, where it has content.
    Receiver(Option<&'a mut Viewer>),
}

/// The observer of one end.
pub(super) struct End<'a> {
    looks: &'a Shared,
    flow: &'a Flow,
    side: EndOf<'a>,
    pauses: Vec<(Timestamp, bool)>,
    /// Distance of looks at the controller's internals; `None` where nobody wants them.
    internals_every: Option<TimeDelta>,
    next_internals: Timestamp,
    interval: TimeDelta,
}

impl<'a> End<'a> {
    pub(super) fn new(run: &FlowRun<'a>, side: EndOf<'a>) -> Self {
        let flow = run.flow();
        let mut pauses: Vec<_> = match side {
            EndOf::Sender => pauses(flow).collect(),
            EndOf::Receiver(_) => Vec::new(),
        };
        pauses.reverse();
        Self {
            looks: run.looks,
            flow,
            side,
            pauses,
            internals_every: run.internals_every,
            next_internals: Timestamp::ZERO,
            interval: LOOK_INTERVAL.min(run.scenario.sample_interval),
        }
    }
}

impl CallObserver for End<'_> {
    fn look_interval(&self) -> TimeDelta {
        self.interval
    }

    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        while let Some((_, paused)) = self.pauses.pop_if(|p| p.0 <= now) {
            endpoint.set_paused(paused);
        }
        let (mut sender, mut frames) = (None, Vec::new());
        match &mut self.side {
            EndOf::Sender => sender = Some(SenderLook::of(endpoint)),
            EndOf::Receiver(viewer) => {
                while let Some(e) = endpoint.poll_playout(now) {
                    if let Some(viewer) = viewer {
                        viewer.on_playout(endpoint, &e, now);
                    }
                    frames.push(frame_record(&e, self.flow));
                }
            }
        }
        let mut internals = None;
        if let Some(every) = self.internals_every.filter(|_| now >= self.next_internals) {
            self.next_internals = now + every;
            let mut all = Vec::new();
            if let EndOf::Receiver(Some(viewer)) = &self.side {
                all.extend(viewer.last_psnr().map(|db| ("psnr_db", db)));
            }
            endpoint.metrics(&mut |name, value| all.push((name, value)));
            internals = Some(all);
        }
        let discards = discarded(endpoint);
        with(self.looks, |l| {
            let sends = sender.is_some();
            if let Some(all) = internals {
                l.internals[usize::from(!sends)] = all;
            }
            if sends {
                l.sender = sender;
            } else {
                l.discards = discards;
                l.frames.append(&mut frames);
            }
        });
    }
}
