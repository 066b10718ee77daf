//! A controller written in Python: one call a report, with arrays of packets.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weir_cc::cue::{SentPacket, TransportFeedback};
use weir_cc::{Controller, Cue, FeedbackFormat, FeedbackPlan, Limits, Setup, Spec, Target, TimeoutReason};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Feedback of controllers in Python: every 50 ms, so that a call of Python is made 20 times in a simulated second.
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Least and greatest `interval_s`.
const INTERVALS_S: (f64, f64) = (0.001, 1e6);
/// Pacing over media rate where the controller sets none: a frame has left before the next.
const PACING: f64 = 2.5;
/// Bytes of a packet's record; `python/weir/_controllers.py` has its fields.
const RECORD: usize = 32;

/// The first exception of a run's controllers, which ends it.
#[derive(Clone, Default)]
pub(crate) struct Failed(Arc<(AtomicBool, Mutex<Option<PyErr>>)>);

impl Failed {
    pub(crate) fn set(&self, e: PyErr) {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        self.0.0.store(true, Ordering::Relaxed);
    }
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.0.0
    }
}

/// An object with `on_feedback(feedback) -> target`, `on_timeout(now_s) -> target` if it has `interval_s`, and
/// `on_limits(floor_bps, ceiling_bps)` if it likes.
pub(crate) struct PythonController {
    object: Option<Py<PyAny>>,
    limits: Limits,
    media: DataRate,
    pacing: Option<DataRate>,
    /// Interval of calls without feedback, and the next one.
    interval: Option<TimeDelta>,
    due: Timestamp,
    sent: DataSize,
    failed: Failed,
    records: Vec<u8>,
}

/// The error for an answer of a wrong type; one that its own conversion raised stays as it is.
fn no_rate(answer: &Bound<'_, PyAny>, method: &str, e: PyErr) -> PyErr {
    if !e.is_instance_of::<PyTypeError>(answer.py()) {
        return e;
    }
    let kind = answer.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "{method} answered a value of type {kind}: expected a media rate in bit/s, a pair of media and pacing rates, or None to \
         keep the rates"
    ))
}

impl PythonController {
    pub(crate) fn spec(name: &str) -> Spec {
        let feedback = FeedbackPlan {
            format: FeedbackFormat::CongestionControl,
            min_interval: INTERVAL,
            max_interval: INTERVAL,
            bandwidth_share: 1.0,
        };
        Spec { feedback: Some(feedback), ..Spec::new(name, "a controller in Python", "the caller's") }
    }

    /// Calls the class with start rate and bounds in bit/s, and the seed.
    pub(crate) fn new(class: Py<PyAny>, setup: &Setup, failed: Failed) -> Self {
        let bps = |r: DataRate| r.as_bps_f64();
        let (floor, ceiling) = (bps(setup.limits.floor), bps(setup.limits.ceiling));
        let made = Python::attach(|py| {
            let object = class.call1(py, (bps(setup.start_rate), floor, ceiling, setup.seed))?;
            let interval: Option<f64> = match object.bind(py).getattr_opt("interval_s")? {
                Some(value) => value.extract()?,
                None => None,
            };
            let (least, most) = INTERVALS_S;
            if let Some(seconds) = interval.filter(|s| !(least..=most).contains(s)) {
                let what = format!("interval_s is {seconds}: expected {least} to {most} seconds, or None");
                return Err(PyValueError::new_err(what));
            }
            Ok((object, interval))
        });
        let (object, interval) = match made {
            Ok((object, interval)) => (Some(object), interval),
            Err(e) => {
                failed.set(e);
                (None, None)
            }
        };
        let interval = interval.map(TimeDelta::from_secs_f64);
        Self {
            object,
            limits: setup.limits,
            media: setup.start_rate,
            pacing: None,
            interval,
            due: setup.now + interval.unwrap_or(TimeDelta::ZERO),
            sent: DataSize::ZERO,
            failed,
            records: Vec::new(),
        }
    }

    /// Calls a method; its answer is None, a rate, or a media and a pacing rate, in bit/s.
    fn call(&mut self, method: &str, arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        let Some(object) = &self.object else { return };
        let answer = Python::attach(|py| {
            let answer = object.call_method1(py, method, (arguments(py)?,))?;
            let method = method.trim_start_matches('_');
            let answer = answer.bind(py);
            if answer.is_none() {
                return Ok(None);
            }
            let (media, pacing) = match answer.extract::<(f64, f64)>() {
                Ok((media, pacing)) => (media, Some(pacing)),
                Err(_) => (answer.extract::<f64>().map_err(|e| no_rate(answer, method, e))?, None),
            };
            for (rate, name) in [(Some(media), "media"), (pacing, "pacing")] {
                if rate.is_some_and(f64::is_nan) {
                    let what =
                        format!("{method} answered NaN as {name} rate: expected bit/s, or None to keep the rates");
                    return Err(PyValueError::new_err(what));
                }
            }
            Ok(Some((media, pacing)))
        });
        match answer {
            Ok(None) => {}
            Ok(Some((media, pacing))) => {
                self.media = self.limits.clamp(DataRate::from_bps_f64(media));
                self.pacing = pacing.map(DataRate::from_bps_f64);
            }
            Err(e) => {
                // It is not called again: the run ends with its first exception.
                self.object = None;
                self.failed.set(e);
            }
        }
    }

    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        self.records.clear();
        for p in feedback.packets {
            self.records.extend(p.sequence.to_ne_bytes());
            self.records.extend(p.departure.as_nanos().to_ne_bytes());
            self.records.extend(p.arrival.map_or(i64::MIN, |a| a.as_nanos()).to_ne_bytes());
            self.records.extend(u32::try_from(p.size.as_bytes()).unwrap_or(u32::MAX).to_ne_bytes());
            self.records.extend([p.ecn as u8, u8::from(p.arrival.is_some()), u8::from(p.was_lost), 0]);
        }
        debug_assert_eq!(self.records.len(), RECORD * feedback.packets.len());
        let (records, sent) = (std::mem::take(&mut self.records), std::mem::take(&mut self.sent));
        let (now, in_flight) = (feedback.now.as_secs_f64(), feedback.bytes_in_flight.as_bytes());
        let rtt = feedback.rtt.map(TimeDelta::as_secs_f64);
        self.call("_on_feedback", |py| {
            let given = PyDict::new(py);
            given.set_item("now_s", now)?;
            given.set_item("records", PyBytes::new(py, &records))?;
            given.set_item("bytes_in_flight", in_flight)?;
            given.set_item("bytes_sent", sent.as_bytes())?;
            given.set_item("rtt_s", rtt)?;
            Ok(given.into_any().unbind())
        });
        self.records = records;
    }
}

impl Controller for PythonController {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.sent += packet.size;
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(feedback) = cue {
            self.on_feedback(feedback);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.media = limits.clamp(self.media);
        let bounds = (limits.floor.as_bps_f64(), limits.ceiling.as_bps_f64());
        self.call("_on_limits", |py| Ok(bounds.into_pyobject(py)?.into_any().unbind()));
    }
    fn on_timeout(&mut self, now: Timestamp) {
        let Some(interval) = self.interval.filter(|_| self.due <= now) else { return };
        self.due = now + interval;
        self.call("on_timeout", |py| Ok(now.as_secs_f64().into_pyobject(py)?.into_any().unbind()));
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.interval.map(|_| (self.due, TimeoutReason::RateUpdate))
    }
    fn target(&self) -> Target {
        let media = self.limits.clamp(self.media);
        let pacing = self.pacing.unwrap_or_else(|| DataRate::from_bps_f64(media.as_bps_f64() * PACING));
        Target::paced(media, pacing.max(media))
    }
}
