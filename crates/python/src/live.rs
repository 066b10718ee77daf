//! A live call between two sockets of this machine.

use pyo3::prelude::*;

/// Configuration of a call, beside its controller. Rates in bit/s.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[cfg_attr(not(all(feature = "live", target_os = "linux")), expect(dead_code, reason = "checked, and not used"))]
pub(crate) struct Settings {
    duration_s: f64,
    start_bps: f64,
    floor_bps: f64,
    ceiling_bps: f64,
    frame_rate: f64,
    ecn: bool,
    srtp: bool,
}

#[cfg(all(feature = "live", target_os = "linux"))]
mod linux {
    use super::Settings;
    use crate::interrupt::Interrupt;
    use pyo3::exceptions::{PyRuntimeError, PyValueError};
    use pyo3::prelude::*;
    use weir_cc::{Limits, Registry};
    use weir_live::call::{CallConfig, CallError, CallObserver, LoopbackSummary, Unobserved, loopback};
    use weir_live::srtp::Suite;
    use weir_session::Endpoint;
    use weir_units::{DataRate, TimeDelta, Timestamp};

    /// Interval of progress.
    const LOOK: TimeDelta = TimeDelta::from_millis(50);

    /// Passes the share of the call's time that is over to Python.
    struct Elapsed<'a> {
        interrupt: &'a Interrupt,
        duration: TimeDelta,
        begin: Option<Timestamp>,
    }

    impl CallObserver for Elapsed<'_> {
        fn on_look(&mut self, now: Timestamp, _: &mut Endpoint) {
            let begin = *self.begin.get_or_insert(now);
            self.interrupt.progress((now - begin).as_secs_f64() / self.duration.as_secs_f64());
        }
        fn look_interval(&self) -> TimeDelta {
            LOOK
        }
    }

    fn config(controller: &str, s: &Settings) -> PyResult<CallConfig> {
        let checked = |name: &str, value: f64, (least, most): (f64, f64), unit: &str| {
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            Err(PyValueError::new_err(format!("{name} is {value}: expected {least} to {most} {unit}")))
        };
        let rate = |name, value, within| Ok::<_, PyErr>(DataRate::from_bps_f64(checked(name, value, within, "bit/s")?));
        let ceiling = rate("ceiling_bps", s.ceiling_bps, (1e3, 1e10))?;
        Ok(CallConfig {
            controller: controller.into(),
            limits: Limits { floor: rate("floor_bps", s.floor_bps, (1e3, s.ceiling_bps))?, ceiling },
            start_rate: rate("start_bps", s.start_bps, (s.floor_bps, s.ceiling_bps))?,
            frame_rate: checked("frame_rate", s.frame_rate, (1.0, 240.0), "frames/s")?,
            ecn: s.ecn,
            srtp: s.srtp.then(Suite::default),
            ..CallConfig::default()
        })
    }

    pub(super) fn call(
        py: Python<'_>,
        controller: &str,
        settings: &Settings,
        registry: &Registry,
        interrupt: &Interrupt,
    ) -> PyResult<LoopbackSummary> {
        registry.find(controller).map_err(|e| PyValueError::new_err(format!("controller: {e}")))?;
        let config = config(controller, settings)?;
        if !(0.1..=1e6).contains(&settings.duration_s) {
            let what = format!("duration_s is {}: expected 0.1 to 1000000 s", settings.duration_s);
            return Err(PyValueError::new_err(what));
        }
        let duration = TimeDelta::from_secs_f64(settings.duration_s);
        let mut elapsed = Elapsed { interrupt, duration, begin: None };
        let ends = (&mut elapsed, &mut Unobserved);
        let made = interrupt.heeded(py, || loopback(&config, registry, Some(duration), interrupt.stop(), ends))?;
        interrupt.raise()?;
        made.map_err(|e| match e {
            CallError::Controller(e) => PyValueError::new_err(e.to_string()),
            e => PyRuntimeError::new_err(e.to_string()),
        })
    }
}

/// A call over the loopback device. Gives the JSON of `weir live call loopback --codec model --json` without its schema's name.
#[pyfunction]
#[pyo3(signature = (controller, settings, *, own=Vec::new(), progress=None))]
pub(crate) fn call(
    py: Python<'_>,
    controller: &str,
    settings: Settings,
    own: Vec<(String, Py<PyAny>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    #[cfg(all(feature = "live", target_os = "linux"))]
    {
        let failed = crate::controller::Failed::default();
        let (registry, faults) = crate::registry(own, &[controller.to_owned()], &failed);
        let interrupt = crate::interrupt::Interrupt::new(progress, failed);
        let summary = linux::call(py, controller, &settings, &registry, &interrupt)?;
        crate::warn_of(&faults, py)?;
        crate::json(&summary)
    }
    #[cfg(not(all(feature = "live", target_os = "linux")))]
    {
        let _ = (py, controller, settings, own, progress);
        let what = "live calls need Linux, and a build of the package with the cargo feature `live`";
        Err(pyo3::exceptions::PyNotImplementedError::new_err(what))
    }
}
