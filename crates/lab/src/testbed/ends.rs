//! What is seen of a live call's ends, handed from their threads to the recorder's.

use crate::metrics::{FrameRecord, Recorder};
use crate::run::look::{SenderLook, Told, discarded, frame_record, pauses};
use crate::run::video::Viewer;
use crate::scenario::{Flow, Scenario};
use std::sync::{Mutex, PoisonError};
use weir_dccp::queue::QueueCounters;
use weir_live::call::CallObserver;
use weir_session::Endpoint;
use weir_units::{DataSize, TimeDelta, Timestamp};

type Internals = Vec<(&'static str, f64)>;

/// The last look at both ends of a call.
#[derive(Default, Debug)]
pub(super) struct Looks {
    sender: Option<SenderLook>,
    internals: [Internals; 2],
    discards: Option<(u64, DataSize)>,
    /// Of a DCCP connection: packets that its queue has refused or dropped, and its round-trip time.
    connection: Option<(u64, Option<TimeDelta>)>,
    /// Frames whose playout time has come since they were last taken.
    frames: Vec<FrameRecord>,
}

pub(super) type Shared = Mutex<Looks>;

fn with<T>(looks: &Shared, change: impl FnOnce(&mut Looks) -> T) -> T {
    change(&mut looks.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What the thread of a DCCP flow has seen of its connection.
pub(super) fn see_connection(looks: &Shared, queue: QueueCounters, rtt: Option<TimeDelta>) {
    let refused = queue.refused + queue.displaced + queue.expired;
    with(looks, |l| l.connection = Some((refused, rtt)));
}

/// Tells the recorder what has been seen of flow `index`. Where the end's thread is at it, it is told the next time: the
/// emulator does not wait.
pub(super) fn tell(
    looks: &Shared,
    told: &mut Told,
    r: &mut Recorder,
    (scenario, index): (&Scenario, usize),
    now: Timestamp,
    row: bool,
) {
    let Ok(mut looks) = looks.try_lock() else { return };
    let flow = &scenario.flows[index];
    if now >= Timestamp::ZERO + flow.start
        && now <= Timestamp::ZERO + flow.stop
        && let Some(look) = &looks.sender
    {
        told.sender(r, scenario, index, now, look);
        if row {
            looks.internals.iter().flatten().for_each(|&(name, value)| r.metric(index, now, name, value));
        }
    }
    if let Some((refused, rtt)) = looks.connection.take() {
        told.refused(r, index, now, refused, rtt);
    }
    looks.frames.drain(..).for_each(|f| r.frame(index, f));
    if let Some(discards) = looks.discards {
        told.discards(r, index, now, discards);
    }
}

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
    pub(super) fn new(
        looks: &'a Shared,
        scenario: &'a Scenario,
        index: usize,
        side: EndOf<'a>,
        internals_every: Option<TimeDelta>,
    ) -> Self {
        let flow = &scenario.flows[index];
        let mut pauses: Vec<_> = match side {
            EndOf::Sender => pauses(flow).collect(),
            EndOf::Receiver(_) => Vec::new(),
        };
        pauses.reverse();
        Self {
            looks,
            flow,
            side,
            pauses,
            internals_every,
            next_internals: Timestamp::ZERO,
            interval: crate::run::LOOK.min(scenario.sample_interval),
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
