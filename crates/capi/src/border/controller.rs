//! Controllers.

use super::{Out, check_element, guarded, read, sized_out, slice, text};
use crate::controller::{Flow, span};
use crate::failure::{Failure, Status};
use crate::table::{self, Handle, Object};
use crate::types::{
    Cue, Metric, PacketReport, Probe, ReportBlock, SentPacket, Setup, Statistics, Target, WEIR_CUE_CAPACITY,
    WEIR_CUE_NADA, WEIR_CUE_NEXT_DATA_UNIT, WEIR_CUE_REMB, WEIR_CUE_SEND_REJECTED, WEIR_CUE_TMMBR,
    WEIR_CUE_TRANSPORT_RATE, WEIR_METRIC_NAME, WEIR_NO_LIMIT, WEIR_NO_WINDOW, WEIR_REPAIR_OFF, WEIR_REPAIR_PARITY,
    WEIR_REPAIR_REED_SOLOMON, WEIR_REPAIR_STANDBY, WEIR_TIMEOUT_FEEDBACK_MISSING, WEIR_TIMEOUT_PROBE,
    WEIR_TIMEOUT_RATE_UPDATE,
};
use std::ffi::c_char;
use weir_cc::cue::{self, EstimateKind, NadaMode};
use weir_cc::{RepairPlan, TimeoutReason};
use weir_units::{DataRate, DataSize, TimeDelta};

fn on(handle: Handle, f: impl FnOnce(&mut Flow) -> Result<Status, Failure>) -> Status {
    guarded(|| table::with(handle, f))
}

/// Makes a controller by name ("gcc", "nada", "scream2"; weir_controller_name has them all). `parameters` are name=value
/// pairs separated by commas or lines, as "beta=0.8, probing=false", or a flat TOML table; null for none.
///
/// "onnx:FILE" is a learned policy in a file, which is read here, in libraries with the feature `onnx`: weir_has_onnx says so,
/// others return WEIR_STATUS_UNSUPPORTED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_new(
    name: *const c_char,
    parameters: *const c_char,
    setup: *const Setup,
    controller: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let out = unsafe { Out::new(controller, "controller") }?;
        out.set(0);
        // SAFETY: as the caller grants.
        let (name, setup) = unsafe { (text(name, "name")?, read(setup, "setup")?) };
        // SAFETY: as the caller grants.
        let params = if parameters.is_null() { "" } else { unsafe { text(parameters, "parameters") }? };
        out.set(table::keep(Object::Controller(Box::new(Flow::new(name, params, &setup)?)))?);
        Ok(Status::Ok)
    })
}

/// A packet has been sent. `number`, which may be null, is set to its number: 0 for the first packet, one more for each.
/// The library remembers what is needed for feedback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_sent(
    controller: Handle,
    packet: *const SentPacket,
    number: *mut u64,
) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (packet, out) = unsafe { (read(packet, "packet")?, Out::optional(number, "number")?) };
        let number = flow.sent(&packet)?;
        if let Some(out) = out {
            out.set(number);
        }
        Ok(Status::Ok)
    })
}

/// Feedback in structs, `element_size` = sizeof(weir_packet_report) bytes each, was received. `held_ns` is the time from
/// the arrival of the newest packet to the report, which the round-trip time excludes; negative if unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_feedback(
    controller: Handle,
    now_ns: i64,
    packets: *const PacketReport,
    count: usize,
    element_size: usize,
    held_ns: i64,
) -> Status {
    on(controller, |flow| {
        check_element::<PacketReport>(element_size, "weir_packet_report")?;
        // SAFETY: as the caller grants.
        let packets = unsafe { slice(packets, count, "packets") }?;
        flow.feedback(now_ns, packets.iter().copied(), span("held_ns", held_ns)?)?;
        Ok(Status::Ok)
    })
}

/// A datagram of RTCP was received, compound or of reduced size. Used are transport-wide feedback, RFC 8888 feedback,
/// receiver report blocks, run lengths of losses, discards and losses after repair (RTCP XR) with Weir's one-way delays, REMB,
/// TMMBR, NADU and NADA's reports; others are passed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_rtcp(
    controller: Handle,
    now_ns: i64,
    bytes: *const u8,
    length: usize,
) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let bytes = unsafe { slice(bytes, length, "bytes") }?;
        flow.rtcp(now_ns, bytes).map(|()| Status::Ok)
    })
}

/// A receiver report block was received, for stacks that parse RTCP themselves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_report_block(controller: Handle, block: *const ReportBlock) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let b = unsafe { read(block, "block") }?;
        if !(0.0..=1.0).contains(&b.fraction_lost) {
            return Err(Failure::value("fraction_lost", b.fraction_lost, "0 to 1"));
        }
        let (jitter, rtt) = (span("jitter_ns", b.jitter_ns)?, span("rtt_ns", b.rtt_ns)?);
        let now = flow.advance(b.now_ns)?;
        flow.on_block(cue::ReportBlock {
            now,
            fraction_lost: b.fraction_lost,
            cumulative_lost: b.cumulative_lost,
            highest_sequence: b.highest_sequence,
            expected: b.expected.into(),
            jitter: jitter.unwrap_or(TimeDelta::ZERO),
            rtt,
        });
        Ok(Status::Ok)
    })
}

/// Another cue was received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_cue(controller: Handle, cue: *const Cue) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let c = unsafe { read(cue, "cue") }?;
        let (rate, rtt) = (DataRate::from_bps(c.rate_bps), span("rtt_ns", c.rtt_ns)?);
        let delay = span("delay_ns", c.delay_ns)?;
        let now = flow.advance(c.now_ns)?;
        let estimate = |kind| cue::Cue::ReceiverEstimate(cue::ReceiverEstimate { now, rate, kind });
        let heard = match c.kind {
            WEIR_CUE_REMB => estimate(EstimateKind::Remb),
            WEIR_CUE_TMMBR => estimate(EstimateKind::Tmmbr),
            WEIR_CUE_NADA => cue::Cue::NadaReport(cue::NadaReport {
                now,
                mode: if c.count == 0 { NadaMode::AcceleratedRampUp } else { NadaMode::GradualUpdate },
                aggregate_delay: delay.unwrap_or(TimeDelta::ZERO),
                receive_rate: rate,
                rtt: flow.inner.rtt(),
            }),
            WEIR_CUE_NEXT_DATA_UNIT => {
                cue::Cue::NextDataUnit(cue::NextDataUnit { now, next_sequence: c.number, playout_delay: delay })
            }
            WEIR_CUE_CAPACITY => cue::Cue::CapacityNotice(cue::CapacityNotice { now, rate }),
            WEIR_CUE_TRANSPORT_RATE => {
                let smoothed = DataRate::from_bps(c.smoothed_bps);
                cue::Cue::TransportRate(cue::TransportRate { now, rate, smoothed, rtt })
            }
            WEIR_CUE_SEND_REJECTED if c.count > 0 => {
                cue::Cue::SendRejected(cue::SendRejected { now, packets: c.count })
            }
            WEIR_CUE_SEND_REJECTED => return Err(Failure::value("count", 0, "at least 1")),
            kind => return Err(Failure::value("kind", kind, "a WEIR_CUE_ number, 1 to 7")),
        };
        flow.inner.on_cue(&heard);
        Ok(Status::Ok)
    })
}

/// Gets the controller's present wishes. Set target->size before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_target(controller: Handle, target: *mut Target) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (out, size) = unsafe { sized_out(target, "target") }?;
        let t = flow.inner.target();
        let (repair, repair_block, repair_packets) = match t.repair {
            RepairPlan::Parity { interval } => (WEIR_REPAIR_PARITY, interval, 0),
            RepairPlan::Standby { interval } => (WEIR_REPAIR_STANDBY, interval, 0),
            RepairPlan::ReedSolomon { block, repair } => (WEIR_REPAIR_REED_SOLOMON, block, repair),
            _ => (WEIR_REPAIR_OFF, 0, 0),
        };
        out.set(Target {
            size,
            overhead_bytes: u32::try_from(t.overhead.as_bytes()).unwrap_or(u32::MAX),
            media_bps: t.media_rate.as_bps(),
            pacing_bps: t.pacing_rate.as_bps(),
            padding_bps: t.padding_rate.as_bps(),
            window_bytes: t.window.map_or(WEIR_NO_WINDOW, DataSize::as_bytes),
            max_queue_age_ns: t.max_queue_age.map_or(WEIR_NO_LIMIT, TimeDelta::as_nanos),
            repair,
            repair_block: repair_block.into(),
            repair_packets: repair_packets.into(),
        });
        Ok(Status::Ok)
    })
}

/// When to call weir_controller_on_timeout next; WEIR_STATUS_NONE if never. `reason`, which may be null, is set to a
/// WEIR_TIMEOUT_ number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_next_timeout(controller: Handle, at_ns: *mut i64, reason: *mut u32) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (out, why) = unsafe { (Out::new(at_ns, "at_ns")?, Out::optional(reason, "reason")?) };
        let Some((at, reason)) = flow.inner.poll_timeout() else { return Ok(Status::None) };
        out.set(at.as_nanos());
        if let Some(why) = why {
            why.set(match reason {
                TimeoutReason::FeedbackMissing => WEIR_TIMEOUT_FEEDBACK_MISSING,
                TimeoutReason::Probe => WEIR_TIMEOUT_PROBE,
                _ => WEIR_TIMEOUT_RATE_UPDATE,
            });
        }
        Ok(Status::Ok)
    })
}

/// The time of weir_controller_next_timeout may have come. Earlier calls do no harm.
#[unsafe(no_mangle)]
pub extern "C" fn weir_controller_on_timeout(controller: Handle, now_ns: i64) -> Status {
    on(controller, |flow| flow.on_timeout(now_ns).map(|()| Status::Ok))
}

/// Takes the next probe cluster to be sent at `now_ns`; WEIR_STATUS_NONE if there is none. Set probe->size before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_poll_probe(controller: Handle, now_ns: i64, probe: *mut Probe) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (out, size) = unsafe { sized_out(probe, "probe") }?;
        let now = flow.advance(now_ns)?;
        let Some(p) = flow.inner.poll_probe(now) else { return Ok(Status::None) };
        let (rate_bps, min_bytes) = (p.rate.as_bps(), p.min_size.as_bytes());
        out.set(Probe { size, id: p.id, rate_bps, min_packets: p.min_packets, reserved: 0, min_bytes });
        Ok(Status::Ok)
    })
}

/// Changes the bounds on the media rate; the target obeys them at once.
#[unsafe(no_mangle)]
pub extern "C" fn weir_controller_set_limits(
    controller: Handle,
    floor_bps: u64,
    ceiling_bps: u64,
    now_ns: i64,
) -> Status {
    on(controller, |flow| flow.set_limits(floor_bps, ceiling_bps, now_ns).map(|()| Status::Ok))
}

/// A frame of `added_bytes` has entered the RTP queue, which holds `queued_bytes` with it; the oldest packet has waited
/// for `oldest_age_ns`. For controllers that look at this queue (SCReAM).
#[unsafe(no_mangle)]
pub extern "C" fn weir_controller_queue(
    controller: Handle,
    now_ns: i64,
    added_bytes: u64,
    queued_bytes: u64,
    oldest_age_ns: i64,
) -> Status {
    on(controller, |flow| flow.on_queue(now_ns, added_bytes, queued_bytes, oldest_age_ns).map(|()| Status::Ok))
}

/// Round-trip time, bytes in flight, and counters of feedback. Set statistics->size before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_statistics(controller: Handle, statistics: *mut Statistics) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (out, size) = unsafe { sized_out(statistics, "statistics") }?;
        out.set(flow.statistics(size));
        Ok(Status::Ok)
    })
}

/// An internal value of the controller by name; NaN while there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_metric(controller: Handle, name: *const c_char, value: *mut f64) -> Status {
    on(controller, |flow| {
        // SAFETY: as the caller grants.
        let (name, out) = unsafe { (text(name, "name")?, Out::new(value, "value")?) };
        out.set(flow.metric(name)?);
        Ok(Status::Ok)
    })
}

/// All internal values, always in the same order, to an array of `capacity` structs of `element_size` =
/// sizeof(weir_metric) bytes; `count` is set to the number of values that there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_controller_metrics(
    controller: Handle,
    metrics: *mut Metric,
    capacity: usize,
    element_size: usize,
    count: *mut usize,
) -> Status {
    on(controller, |flow| {
        check_element::<Metric>(element_size, "weir_metric")?;
        // SAFETY: as the caller grants.
        let out = unsafe { Out::new(count, "count") }?;
        let mut all = Vec::new();
        flow.inner.metrics(&mut |name, value| {
            let mut bytes = [0; WEIR_METRIC_NAME];
            for (to, from) in bytes.iter_mut().zip(name.bytes().take(WEIR_METRIC_NAME - 1)) {
                *to = from as c_char;
            }
            all.push(Metric { name: bytes, value });
        });
        out.set(all.len());
        if all.len() > capacity {
            let text = format!("capacity is {capacity}: expected at least {}", all.len());
            return Err(Failure::new(Status::BufferTooSmall, text));
        }
        if !all.is_empty() {
            super::check(metrics, "metrics")?;
            // SAFETY: not null, aligned, room for as many; the caller grants the rest.
            unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), metrics, all.len()) }
        }
        Ok(Status::Ok)
    })
}
