//! What is seen of a live flow's ends, handed from their threads to the recorder's.

use std::sync::{Mutex, PoisonError};
use weir_dccp::queue::QueueCounters;
use weir_lab::measure::metrics::{FrameRecord, Recorder};
use weir_lab::measure::run::parts::{SenderLook, Told};
use weir_lab::measure::scenario::Scenario;
use weir_units::{DataSize, TimeDelta, Timestamp};

type Internals = Vec<(&'static str, f64)>;

/// The last look at both ends of a call.
#[derive(Default, Debug)]
pub(super) struct Looks {
    pub(super) sender: Option<SenderLook>,
    pub(super) internals: [Internals; 2],
    pub(super) discards: Option<(u64, DataSize)>,
    /// Of a DCCP connection: packets that its queue has refused or dropped, and its round-trip time.
    connection: Option<(u64, Option<TimeDelta>)>,
    /// Frames whose playout time has come since they were last taken.
    pub(super) frames: Vec<FrameRecord>,
}

pub(super) type Shared = Mutex<Looks>;

pub(super) fn with<T>(looks: &Shared, change: impl FnOnce(&mut Looks) -> T) -> T {
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
    scenario: &Scenario,
    index: usize,
    now: Timestamp,
    row: bool,
) {
    let Ok(mut looks) = looks.try_lock() else { return };
    let flow = &scenario.flows[index];
    if now >= Timestamp::ZERO + flow.start
        && now <= Timestamp::ZERO + flow.stop
        && let Some(look) = &looks.sender
    {
        told.sender(r, index, now, look);
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
