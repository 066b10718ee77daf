//! What looks at a call's ends tell the recorder, of simulated and of live runs alike.

use crate::measure::metrics::{DropCause, FlowEnd, FrameRecord, Recorder};
use crate::measure::scenario::{Flow, Scenario};
use weir_media::PlayoutEvent;
use weir_session::Endpoint;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// What is seen of the sending end of a call at an instant.
#[derive(Clone, Copy, Default, Debug)]
pub struct SenderLook {
    rtt: Option<TimeDelta>,
    frames: u64,
    generated: DataSize,
    target: DataRate,
}

impl SenderLook {
    /// What is seen of an end now.
    pub fn of(call: &Endpoint) -> Self {
        let sent = call.send_counters();
        Self {
            rtt: call.rtt(),
            frames: sent.frames,
            generated: DataSize::from_bytes(sent.generated),
            target: call.target().map_or(DataRate::ZERO, |t| t.media_rate),
        }
    }
}

impl SenderLook {
    /// Where the transport measures the round-trip time, the session's, which comes from RTCP, does not count.
    pub fn with_transport(self, measures: bool) -> Self {
        Self { rtt: self.rtt.filter(|_| !measures), ..self }
    }
}

/// What the recorder has been told of a flow so far.
#[derive(Clone, Default, Debug)]
pub struct Told {
    generated: DataSize,
    target: DataRate,
    /// Packets and bytes discarded by its playout.
    discards: (u64, DataSize),
    /// Frames that its source had made when the last playout time before the end came.
    frames_due: u64,
    /// Sum in ms and number of the looks at its last round-trip time.
    round_trips: (f64, u64),
    /// Packets that its transport has refused or dropped.
    refused: u64,
}

impl Told {
    /// Tells what a look at the sending end of flow `index` has shown.
    pub fn sender(&mut self, r: &mut Recorder, s: &Scenario, index: usize, now: Timestamp, look: &SenderLook) {
        let flow = &s.flows[index];
        if let Some(rtt) = look.rtt {
            self.round_trips = (self.round_trips.0 + rtt.as_millis_f64(), self.round_trips.1 + 1);
        }
        if now + deadline(flow) <= Timestamp::ZERO + flow.stop.min(s.duration) {
            self.frames_due = look.frames;
        }
        if look.target != self.target {
            r.target(index, now, look.target);
        }
        r.generated(index, now - TimeDelta::from_nanos(1), look.generated.saturating_sub(self.generated));
        (self.generated, self.target) = (look.generated, look.target);
    }

    /// Tells how many packets the transport of flow `index` has refused or dropped by now, and its round-trip time.
    pub fn refused(&mut self, r: &mut Recorder, index: usize, now: Timestamp, refused: u64, rtt: Option<TimeDelta>) {
        for _ in self.refused..refused {
            r.dropped(index, now - TimeDelta::from_nanos(1), DropCause::Sender);
        }
        self.refused = refused;
        if let Some(rtt) = rtt {
            self.round_trips = (self.round_trips.0 + rtt.as_millis_f64(), self.round_trips.1 + 1);
        }
    }

    /// Tells how many packets and bytes the playout of flow `index` has discarded by now.
    pub fn discards(&mut self, r: &mut Recorder, index: usize, now: Timestamp, (count, size): (u64, DataSize)) {
        let mut left = size.saturating_sub(self.discards.1);
        for _ in self.discards.0..count {
            // Sizes of single packets are not kept: the first takes all, which leaves both sums right.
            r.discarded(index, now - TimeDelta::from_nanos(1), left);
            left = DataSize::ZERO;
        }
        self.discards = (count, size);
    }

    /// What is only known of a flow at the end, from its ends where it is a call.
    pub fn end(&self, ends: Option<(&Endpoint, &Endpoint)>) -> FlowEnd {
        let (sum, looks) = self.round_trips;
        let mut end = FlowEnd {
            frames: Some(self.frames_due).filter(|f| *f > 0),
            rtt_ms: (looks > 0).then(|| sum / looks as f64),
            ..FlowEnd::default()
        };
        let Some((sender, receiver)) = ends else { return end };
        end.tripped = sender.tripped().map(|t| {
            let rates = t.sending_rate.zip(t.tcp_rate);
            let rates = rates.map_or(String::new(), |(own, tcp)| format!(": {own} against TCP's {tcp}"));
            (t.at, format!("{:?}{rates}", t.reason))
        });
        let stats = receiver.recovery_stats();
        if stats.packets > 0 {
            end.recovered = stats.recovered;
            end.frames_recovered = stats.frames_recovered;
            end.frames_unrecovered = stats.frames_protected_lost;
        }
        for call in [sender, receiver] {
            call.metrics(&mut |name, value| end.internals.push((name, value)));
        }
        end
    }
}

/// A frame whose playout time has come, as the recorder is told it.
pub fn frame_record(event: &PlayoutEvent, flow: &Flow) -> FrameRecord {
    let captured = event.at - deadline(flow);
    FrameRecord { captured, completed: event.delay.map(|d| captured + d), played: event.delay.map(|_| event.at) }
}

/// What a call's playout has discarded: packets and bytes.
pub fn discarded(call: &Endpoint) -> Option<(u64, DataSize)> {
    call.playout_stats().map(|s| (s.discarded, s.discarded_size))
}

fn deadline(flow: &Flow) -> TimeDelta {
    flow.rtp().and_then(|r| r.playout_deadline).unwrap_or_default()
}

/// Instants at which sources pause and resume, in order.
pub fn pauses(flow: &Flow) -> impl Iterator<Item = (Timestamp, bool)> {
    let pauses = flow.rtp().map_or(&[][..], |r| &r.pauses);
    pauses.iter().flat_map(|&(from, to)| [(Timestamp::ZERO + from, true), (Timestamp::ZERO + to, false)])
}
