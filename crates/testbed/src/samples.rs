//! Samples of a live flow's ends, passed from their threads to the recorder's.

use std::sync::{Mutex, PoisonError};
use weir_dccp::queue::QueueCounters;
use weir_lab::metrics::{FrameRecord, Recorder};
use weir_lab::run::parts::{Discards, FlowSampler, PathMeter, SenderSample, TransportSample};
use weir_lab::scenario::Flow;
use weir_session::PathStats;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Names and values of a controller's internals.
pub(super) type Internals = Vec<(&'static str, f64)>;

/// The newest samples of both ends of a flow.
#[derive(Default, Debug)]
pub(super) struct Samples {
    sender: Option<SenderSample>,
    sender_internals: Internals,
    receiver_internals: Internals,
    discards: Option<Discards>,
    /// The paths of a call that has several, at its sending end.
    paths: Vec<PathStats>,
    /// Samples of a DCCP connection since they were last taken.
    transport: Option<TransportSample>,
    /// Frames whose playout time has passed since they were last taken.
    frames: Vec<FrameRecord>,
}

/// The samples of a flow, shared between the threads of its ends and the recorder's.
#[derive(Default, Debug)]
pub(super) struct SharedSamples(Mutex<Samples>);

impl SharedSamples {
    fn with<T>(&self, change: impl FnOnce(&mut Samples) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets a sample of a call's sending end, and its internals if they were read.
    pub(super) fn set_sender(&self, sample: SenderSample, internals: Option<Internals>) {
        self.with(|s| {
            s.sender = Some(sample);
            if let Some(all) = internals {
                s.sender_internals = all;
            }
        });
    }

    /// Sets the state of a call's paths at its sending end.
    pub(super) fn set_paths(&self, paths: impl Iterator<Item = PathStats>) {
        self.with(|s| {
            s.paths.clear();
            s.paths.extend(paths);
        });
    }

    /// Sets what a call's receiving end has played and discarded, and its internals if they were read.
    pub(super) fn set_receiver(
        &self,
        mut frames: Vec<FrameRecord>,
        discards: Option<Discards>,
        internals: Option<Internals>,
    ) {
        self.with(|s| {
            s.frames.append(&mut frames);
            s.discards = discards;
            if let Some(all) = internals {
                s.receiver_internals = all;
            }
        });
    }

    /// Sets the state of a DCCP flow's connection.
    pub(super) fn set_connection(&self, queue: QueueCounters, rtt: Option<TimeDelta>) {
        let refused = queue.refused + queue.displaced + queue.expired;
        self.with(|s| s.transport = Some(TransportSample { refused, rtt }));
    }

    /// Passes the samples to the recorder. If a thread of the flow holds the lock, they are taken the next time: the
    /// emulator does not wait.
    pub(super) fn record(&self, r: &mut Recorder, to: &mut FlowRecording<'_>, now: Timestamp) {
        let Ok(mut samples) = self.0.try_lock() else { return };
        let FlowRecording { index, flow, sampler, row } = to;
        if now >= Timestamp::ZERO + flow.start
            && now <= Timestamp::ZERO + flow.stop
            && let Some(sample) = &samples.sender
        {
            sampler.on_sender(r, now, sample);
            if *row {
                let internals = samples.sender_internals.iter().chain(&samples.receiver_internals);
                internals.for_each(|&(name, value)| r.metric(*index, now, name, value));
            }
        }
        if let Some(sample) = samples.transport.take() {
            sampler.on_transport(r, now, sample);
        }
        samples.frames.drain(..).for_each(|f| r.frame(*index, 0, f));
        if let Some(discards) = samples.discards {
            sampler.on_discards(r, now, discards);
        }
    }

    /// Passes the paths of a call that has several to its meter and, at the end of a row of this length, what was sent on
    /// each to the recorder.
    pub(super) fn record_paths(
        &self,
        r: &mut Recorder,
        meter: &mut PathMeter,
        to: &mut FlowRecording<'_>,
        (now, interval): (Timestamp, TimeDelta),
    ) {
        if now < Timestamp::ZERO + to.flow.start || now > Timestamp::ZERO + to.flow.stop {
            return;
        }
        if let Ok(samples) = self.0.try_lock() {
            samples.paths.iter().enumerate().for_each(|(path, stats)| meter.on_stats(path, stats));
        }
        if !to.row {
            return;
        }
        for (path, (name, bytes)) in meter.take_row().enumerate() {
            let rate = DataRate::from_size_over(DataSize::from_bytes(bytes), interval).unwrap_or(DataRate::ZERO);
            r.path(to.index, now, path, name, rate);
        }
    }
}

/// The flow whose samples are recorded.
pub(super) struct FlowRecording<'a> {
    /// Its index in the scenario.
    pub(super) index: usize,
    pub(super) flow: &'a Flow,
    pub(super) sampler: &'a mut FlowSampler,
    /// Whether a row of the time series ends now.
    pub(super) row: bool,
}
