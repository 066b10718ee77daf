//! A controller of Weir as an estimator for others.

mod receiver;

use crate::binary::{self, HEAD, Head};
use crate::protocol::{
    About, Answer, Carries, Event, Feedback, Form, Format, Message, PacketFate, Probe, Repair, Side, Turn, VERSION, all,
};
use receiver::Receiving;
use std::io::{BufRead, Read as _, Write};
use weir_cc::cue::{
    EstimateKind, PacketResult, QueueState, ReceiverEstimate, ReportBlock, SentPacket, TransportFeedback,
};
use weir_cc::{Controller as _, Cue, FeedbackFormat, Limits, Registry, RepairPlan, Sender, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Longest turn in bytes.
const MAX_TURN: u64 = 64 << 20;

/// Why serving has ended before the end of the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Input or output has failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A turn cannot be read.
    #[error("a turn cannot be read: {0}")]
    Unreadable(String),
    /// The controller cannot be made.
    #[error(transparent)]
    Setup(#[from] weir_cc::tunable::SetupError),
    /// The controller's receiver half sends what the protocol does not have.
    #[error("the receiver of `{0}` reports by a message of its own; the protocol has REMB and TMMBR")]
    Report(String),
}

/// The half of a controller that is served.
enum Half {
    Sender(Sender),
    Receiver(Receiving),
}

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Answers turns with a controller of a registry until the input ends, after the first in this form. It is asked after each event, so
/// that its results are those of the controller itself.
///
/// # Errors
/// Input or output fails, a turn cannot be read, or there is no such controller.
pub fn serve(
    name: &str,
    form: Form,
    registry: &Registry,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), ServeError> {
    let (mut bytes, mut half) = (Vec::new(), None);
    // The first turn and its answer are JSON.
    let mut spoken = Form::Json;
    while let Some(turn) = read(spoken, &mut input, &mut bytes)? {
        let mut answer = Answer { turn: turn.turn, ..Answer::default() };
        for event in &turn.events {
            let Event::Configure { now_ns, floor_bps, ceiling_bps, start_bps, seed, side, .. } = event else {
                match half.as_mut().ok_or_else(|| ServeError::Unreadable("no `configure` before it".into()))? {
                    Half::Sender(sender) => pass(sender, event, &mut answer.probes),
                    Half::Receiver(receiver) => receiver.pass(event),
                }
                continue;
            };
            let limits = Limits { floor: DataRate::from_bps(*floor_bps), ceiling: DataRate::from_bps(*ceiling_bps) };
            let start_rate = DataRate::from_bps(*start_bps);
            let setup = Setup { limits, start_rate, now: at(*now_ns), seed: *seed, params: Vec::new() };
            let pair = registry.make(name, &setup)?;
            answer.about = Some(about(name, form, pair.receiver.is_some(), registry)?);
            half = Some(match (side, pair.receiver) {
                (Side::Receiver, Some(half)) => Half::Receiver(Receiving::new(half, &setup)),
                (Side::Receiver, None) => return Err(ServeError::Unreadable(format!("`{name}` has no receiver half"))),
                (Side::Sender, _) => Half::Sender(pair.sender),
            });
        }
        match &mut half {
            Some(Half::Sender(sender)) => complete(&mut answer, sender),
            Some(Half::Receiver(half)) => half.complete(&mut answer).ok_or_else(|| ServeError::Report(name.into()))?,
            None => {}
        }
        bytes.clear();
        match spoken {
            Form::Binary => binary::write_answer(&answer, &mut bytes),
            Form::Json => {
                let _ = serde_json::to_writer(&mut bytes, &answer);
                bytes.push(b'\n');
            }
        }
        output.write_all(&bytes)?;
        output.flush()?;
        if half.is_some() {
            spoken = form;
        }
    }
    Ok(())
}

/// The next turn; `None` at the end of the input.
fn read(form: Form, input: &mut impl BufRead, bytes: &mut Vec<u8>) -> Result<Option<Turn>, ServeError> {
    bytes.clear();
    if form == Form::Json {
        let count = input.take(MAX_TURN).read_until(b'\n', bytes)?;
        let read = || serde_json::from_slice(bytes).map_err(|e| ServeError::Unreadable(e.to_string()));
        return if count == 0 { Ok(None) } else { read().map(Some) };
    }
    if input.by_ref().take(HEAD as u64).read_to_end(bytes)? == 0 {
        return Ok(None);
    }
    let length = u64::from(Head::read(bytes).map_err(ServeError::Unreadable)?.length);
    if length > MAX_TURN {
        return Err(ServeError::Unreadable(format!("its head has a length of {length}; expected at most {MAX_TURN}")));
    }
    // Memory grows with what comes, not with what the head promises.
    input.take(length).read_to_end(bytes)?;
    binary::read_turn(bytes).map(Some).map_err(ServeError::Unreadable)
}

fn about(name: &str, form: Form, has_receiver: bool, registry: &Registry) -> Result<About, ServeError> {
    let plan = registry.find(name)?.feedback;
    let format = match plan.map(|f| f.format) {
        Some(FeedbackFormat::CongestionControl) => Format::Ccfb,
        Some(FeedbackFormat::TransportWide) => Format::TransportWide,
        None => Format::None,
    };
    let interval_ms = plan.map(|f| f.min_interval.as_millis_f64());
    let max_interval_ms = plan.map(|f| f.max_interval.as_millis_f64());
    let bandwidth_share = plan.map(|f| f.bandwidth_share);
    let feedback = Feedback { format, interval_ms, max_interval_ms, bandwidth_share };
    let sides = [Some(Side::Sender), has_receiver.then_some(Side::Receiver)].into_iter().flatten().collect();
    let (version, name) = (VERSION, format!("Weir's {name}"));
    Ok(About { version, name, form, sides, over: None, events: all(), answers: all(), feedback })
}

fn complete(answer: &mut Answer, sender: &Sender) {
    let t = sender.target();
    answer.media_bps = t.media_rate.as_bps_f64();
    answer.pacing_bps = Some(t.pacing_rate.as_bps_f64().min(1e12));
    answer.paces_payload = t.paces_payload;
    answer.padding_bps = (t.padding_rate > DataRate::ZERO).then(|| t.padding_rate.as_bps_f64());
    answer.window_bytes = t.window.map(DataSize::as_bytes);
    answer.max_queue_age_ns = t.max_queue_age.map(TimeDelta::as_nanos);
    answer.overhead_bytes = (t.overhead > DataSize::ZERO).then(|| t.overhead.as_bytes());
    answer.repair = match t.repair {
        RepairPlan::Parity { interval } => Some(Repair::Parity { interval }),
        RepairPlan::Standby { interval } => Some(Repair::Standby { interval }),
        RepairPlan::ReedSolomon { block, repair } => Some(Repair::ReedSolomon { block, repair }),
        _ => None,
    };
    answer.timer_ns = sender.poll_timeout().map(|(at, _)| at.as_nanos());
}

fn result(p: &PacketFate) -> PacketResult {
    PacketResult {
        sequence: p.sequence,
        departure: at(p.sent_ns),
        arrival: p.arrived_ns.map(RemoteTimestamp::from_nanos),
        size: DataSize::from_bytes(p.size_bytes),
        ecn: if p.ce { Ecn::Ce } else { Ecn::NotEct },
        probe: p.probe,
        was_lost: p.was_lost,
    }
}

/// Passes an event to a controller, and takes the probes that it wants then.
fn pass(sender: &mut Sender, event: &Event, probes: &mut Vec<Probe>) {
    let now = at(event.now_ns());
    match event {
        Event::Configure { .. } => {}
        Event::Sent { sequence, size_bytes, carries, probe, queued_bytes, in_flight_bytes, .. } => {
            sender.on_packet_sent(&SentPacket {
                is_padding: *carries == Carries::Padding,
                is_repair: *carries == Carries::Repair,
                is_retransmission: *carries == Carries::Retransmission,
                probe: *probe,
                queued: DataSize::from_bytes(*queued_bytes),
                bytes_in_flight: DataSize::from_bytes(*in_flight_bytes),
                ..SentPacket::media(now, *sequence, DataSize::from_bytes(*size_bytes))
            });
            return;
        }
        Event::Feedback { packets, in_flight_bytes, rtt_ns, .. } => {
            let packets: Vec<PacketResult> = packets.iter().map(result).collect();
            let bytes_in_flight = DataSize::from_bytes(*in_flight_bytes);
            let rtt = rtt_ns.map(TimeDelta::from_nanos);
            sender.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
        }
        Event::Report { fraction_lost, cumulative_lost, highest_sequence, expected, jitter_ns, rtt_ns, .. } => {
            sender.on_cue(&Cue::ReportBlock(ReportBlock {
                now,
                fraction_lost: *fraction_lost,
                cumulative_lost: *cumulative_lost,
                highest_sequence: *highest_sequence,
                expected: *expected,
                jitter: TimeDelta::from_nanos(*jitter_ns),
                rtt: rtt_ns.map(TimeDelta::from_nanos),
            }));
        }
        Event::Estimate { rate_bps, message, .. } => {
            let kind = match message {
                Message::Remb => EstimateKind::Remb,
                Message::Tmmbr => EstimateKind::Tmmbr,
            };
            let withdrawn = ReceiverEstimate::withdrawn(now, kind);
            let rate = rate_bps.map_or(withdrawn.rate, DataRate::from_bps);
            sender.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
        }
        Event::Queue { added_bytes, queued_bytes, oldest_age_ns, .. } => {
            sender.on_queue(&QueueState {
                now,
                added: DataSize::from_bytes(*added_bytes),
                queued: DataSize::from_bytes(*queued_bytes),
                oldest_age: TimeDelta::from_nanos(*oldest_age_ns),
            });
        }
        Event::Limits { floor_bps, ceiling_bps, .. } => {
            let limits = Limits { floor: DataRate::from_bps(*floor_bps), ceiling: DataRate::from_bps(*ceiling_bps) };
            sender.on_limits(limits, now);
        }
        Event::Timer { .. } => sender.on_timeout(now),
        Event::Rtcp { bytes, .. } => {
            sender.on_rtcp(bytes, now);
        }
        // At the receiver alone, or over a controller.
        Event::Received { .. } | Event::Rtt { .. } | Event::Target { .. } => {}
    }
    while let Some(p) = sender.poll_probe(now) {
        let (min_packets, min_bytes) = (p.min_packets, p.min_size.as_bytes());
        probes.push(Probe { id: p.id, rate_bps: p.rate.as_bps_f64(), min_packets, min_bytes });
    }
}
