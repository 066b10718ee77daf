//! A controller of Weir as an estimator for others.

use crate::protocol::{
    About, Answer, Carries, Event, Feedback, Format, Kind, Message, PacketFate, Probe, Turn, VERSION,
};
use std::io::{BufRead, Write};
use weir_cc::cue::{
    EstimateKind, PacketResult, QueueState, ReceiverEstimate, ReportBlock, SentPacket, TransportFeedback,
};
use weir_cc::{Controller as _, Cue, FeedbackFormat, Limits, Registry, Sender, Setup};
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
}

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Answers turns with a controller of a registry until the input ends. It is asked after each event, so that its results are
/// those of the controller itself.
///
/// # Errors
/// Input or output fails, a turn cannot be read, or there is no such controller.
pub fn serve(name: &str, registry: &Registry, input: impl BufRead, mut output: impl Write) -> Result<(), ServeError> {
    let mut input = input;
    let (mut line, mut text) = (Vec::new(), Vec::new());
    let mut sender: Option<Sender> = None;
    loop {
        line.clear();
        let count = std::io::Read::take(&mut input, MAX_TURN).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(());
        }
        let turn: Turn = serde_json::from_slice(&line).map_err(|e| ServeError::Unreadable(e.to_string()))?;
        let mut answer = Answer { turn: turn.turn, ..Answer::default() };
        for event in &turn.events {
            let Event::Configure { now_ns, floor_bps, ceiling_bps, start_bps, seed, .. } = event else {
                let sender =
                    sender.as_mut().ok_or_else(|| ServeError::Unreadable("no `configure` before it".into()))?;
                pass(sender, event, &mut answer.probes);
                continue;
            };
            let limits = Limits { floor: DataRate::from_bps(*floor_bps), ceiling: DataRate::from_bps(*ceiling_bps) };
            let start_rate = DataRate::from_bps(*start_bps);
            let setup = Setup { limits, start_rate, now: at(*now_ns), seed: *seed, params: Vec::new() };
            answer.about = Some(about(name, registry)?);
            sender = Some(registry.make(name, &setup)?.sender);
        }
        if let Some(sender) = &sender {
            complete(&mut answer, sender);
        }
        text.clear();
        let _ = serde_json::to_writer(&mut text, &answer);
        text.push(b'\n');
        output.write_all(&text)?;
        output.flush()?;
    }
}

fn about(name: &str, registry: &Registry) -> Result<About, ServeError> {
    let spec = registry.find(name)?;
    let format = match spec.feedback.map(|f| f.format) {
        Some(FeedbackFormat::CongestionControl) => Format::Ccfb,
        _ => Format::TransportWide,
    };
    let plan = spec.feedback;
    let interval_ms = plan.map(|f| f.min_interval.as_millis_f64());
    let max_interval_ms = plan.map(|f| f.max_interval.as_millis_f64());
    let bandwidth_share = plan.map(|f| f.bandwidth_share);
    let (events, answers) = (Kind::ALL.into(), Kind::ALL.into());
    let feedback = Feedback { format, interval_ms, max_interval_ms, bandwidth_share };
    Ok(About { version: VERSION, name: format!("Weir's {name}"), events, answers, feedback })
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
        Event::Queue { added_bytes, queued_bytes, oldest_age_ns, .. } => sender.on_queue(&QueueState {
            now,
            added: DataSize::from_bytes(*added_bytes),
            queued: DataSize::from_bytes(*queued_bytes),
            oldest_age: TimeDelta::from_nanos(*oldest_age_ns),
        }),
        Event::Limits { floor_bps, ceiling_bps, .. } => {
            let limits = Limits { floor: DataRate::from_bps(*floor_bps), ceiling: DataRate::from_bps(*ceiling_bps) };
            sender.on_limits(limits, now);
        }
        Event::Timer { .. } => sender.on_timeout(now),
    }
    while let Some(p) = sender.poll_probe(now) {
        let (min_packets, min_bytes) = (p.min_packets, p.min_size.as_bytes());
        probes.push(Probe { id: p.id, rate_bps: p.rate.as_bps_f64(), min_packets, min_bytes });
    }
}
