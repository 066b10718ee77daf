//! A vector's events against the controller.

use super::file::{Input, Packet, Vector};
use std::collections::BTreeMap;
use weir_cc::cue::{
    CapacityNotice, EstimateKind, PacketResult, QueueState, ReceiverEstimate, SentPacket, TransportFeedback,
};
use weir_cc::{Controller, Coupled, Cue, Registry, Sender, Setup};
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// A sluice of the registry.
pub(super) fn controller(setup: &Setup) -> Result<Sender, String> {
    Ok(Registry::builtin().make("sluice", setup).map_err(|e| e.to_string())?.sender)
}

/// The outputs of these names: integers in bit/s and ns, and internals.
pub(super) fn outputs(controller: &Sender, names: &[String]) -> Vec<Option<f64>> {
    let target = controller.target();
    let timeout = controller.poll_timeout().map(|(at, _)| at.as_nanos() as f64);
    let mut internals = BTreeMap::new();
    controller.metrics(&mut |name, value| {
        internals.insert(name, value);
    });
    let value = |name: &String| match name.as_str() {
        "media_bps" => Some(target.media_rate.as_bps_f64()),
        "pacing_bps" => Some(target.pacing_rate.as_bps_f64()),
        "timeout_ns" => timeout,
        other => internals.get(other).copied().filter(|v| !v.is_nan()),
    };
    names.iter().map(value).collect()
}

/// Compares outputs: exactly where they leave the controller, else as near as `near`.
fn compare(names: &[String], found: &[Option<f64>], expected: &[Option<f64>], near: f64) -> Result<(), String> {
    if names.len() != expected.len() {
        return Err(format!("{} outputs for {} names", expected.len(), names.len()));
    }
    for ((name, found), expected) in names.iter().zip(found).zip(expected) {
        let is_exact = ["media_bps", "pacing_bps", "timeout_ns"].contains(&name.as_str());
        let is_same = match (found, expected) {
            (Some(f), Some(e)) if is_exact => f == e,
            (Some(f), Some(e)) => (f - e).abs() <= near * e.abs(),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            return Err(format!("{name} is {found:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

/// Drives a controller through the events. The number of those with outputs, or the first difference.
pub(super) fn replay(vector: &Vector, near: f64) -> Result<usize, String> {
    let mut controller = controller(&vector.setup)?;
    let mut sent = BTreeMap::new();
    let mut decided = 0;
    let names = &vector.outputs;
    compare(names, &outputs(&controller, names), &vector.begin, near).map_err(|e| format!("at the start: {e}"))?;
    for (i, event) in vector.events.iter().enumerate() {
        let now = event.now;
        match &event.input {
            Input::Sent(packets) => {
                for &(at, sequence, size) in packets {
                    sent.insert(sequence, (at, size));
                    controller.on_packet_sent(&SentPacket::media(at, sequence, size));
                }
                continue;
            }
            Input::Feedback(rtt, in_flight, packets) => {
                feedback(&mut controller, &sent, now, (*rtt, *in_flight), packets)?
            }
            Input::Timeout => controller.on_timeout(now),
            Input::Limits(limits) => controller.on_limits(*limits, now),
            Input::Request(rate) => {
                let kind = EstimateKind::Remb;
                let withdrawn = ReceiverEstimate::withdrawn(now, kind);
                controller.on_cue(&Cue::ReceiverEstimate(rate.map_or(withdrawn, |rate| ReceiverEstimate {
                    now,
                    rate,
                    kind,
                })));
            }
            Input::Notice(rate) => controller.on_cue(&Cue::CapacityNotice(CapacityNotice { now, rate: *rate })),
            &Input::Waiting(queued) => {
                controller.on_queue(&waiting(now, queued));
            }
            Input::Coupled(increase) => controller.on_coupled(&Coupled { rate: None, increase: *increase }, now),
        }
        decided += 1;
        compare(names, &outputs(&controller, names), &event.outputs, near)
            .map_err(|e| format!("event {i} at {} s: {e}", now.as_secs_f64()))?;
    }
    Ok(decided)
}

/// So much data waits beside a frame that adds none.
pub(super) fn waiting(now: Timestamp, queued: DataSize) -> QueueState {
    QueueState { now, added: DataSize::ZERO, queued, oldest_age: TimeDelta::ZERO }
}

fn feedback(
    controller: &mut Sender,
    sent: &BTreeMap<u64, (Timestamp, DataSize)>,
    now: Timestamp,
    (rtt, in_flight): (Option<i64>, u64),
    packets: &[Packet],
) -> Result<(), String> {
    let result = |p: &Packet| {
        let &(departure, size) = sent.get(&p.sequence).ok_or_else(|| format!("{} was not sent", p.sequence))?;
        let arrival = p.delay.map(|delay| RemoteTimestamp::from_nanos(departure.as_nanos() + delay));
        let ecn = if p.is_ce { Ecn::Ce } else { Ecn::Ect1 };
        let Packet { sequence, was_lost, .. } = *p;
        Ok(PacketResult { sequence, departure, arrival, size, ecn, probe: 0, was_lost })
    };
    let packets: Vec<_> = packets.iter().map(result).collect::<Result<_, String>>()?;
    let (rtt, bytes_in_flight) = (rtt.map(TimeDelta::from_nanos), DataSize::from_bytes(in_flight));
    controller.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
    Ok(())
}
