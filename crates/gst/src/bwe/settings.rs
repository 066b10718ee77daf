//! Settings of an application, and the controller made from it.

pub(super) use weir_cc::DEFAULT_CONTROLLER;
use weir_cc::flow::Refused;
use weir_cc::tunable::SetupError;
use weir_cc::{Flow, Limits, Registry, Setup};
use weir_units::{DataRate, Timestamp};

/// Bounds and start of the rate in bit/s, as of `rtpgccbwe` (gst-plugins-rs 0.15, `net/rtp/src/gcc/imp.rs`).
pub(super) const DEFAULT_MIN: u32 = 1_000;
pub(super) const DEFAULT_MAX: u32 = 8_192_000;
pub(super) const DEFAULT_START: u32 = 2_048_000;

/// Begins the names of learned policies, of which a file's path is the rest.
#[cfg(not(feature = "onnx"))]
const POLICIES: &str = "onnx:";

/// The controllers by name: built-in ones and, in plugins with the feature `onnx`, learned policies. `find` reads their files.
fn registry() -> Registry {
    let mut registry = Registry::builtin();
    #[cfg(feature = "onnx")]
    weir_onnx::add_to(&mut registry);
    #[cfg(not(feature = "onnx"))]
    registry.add_family(POLICIES, |name| {
        let why = "this plugin has no learned policies: cargo build --release -p weir-gst --features gst,onnx".into();
        Err(SetupError::Refused { controller: name.into(), why })
    });
    registry
}

/// The properties.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub controller: String,
    /// Parameters of the controller by name.
    pub params: Vec<(String, f64)>,
    /// As given, for reading.
    pub params_given: Option<gst::Structure>,
    /// Rates in bit/s.
    pub min: u32,
    pub max: u32,
    pub start: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            controller: DEFAULT_CONTROLLER.into(),
            params: Vec::new(),
            params_given: None,
            min: DEFAULT_MIN,
            max: DEFAULT_MAX,
            start: DEFAULT_START,
        }
    }
}

impl Settings {
    pub(super) fn limits(&self) -> Limits {
        let rate = |bps: u32| DataRate::from_bps(bps.into());
        // Until they are checked, bounds that cross count as the upper one.
        Limits { floor: rate(self.min.min(self.max)), ceiling: rate(self.max) }
    }

    /// Errors: the bounds cross.
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        let Self { min, max, .. } = self;
        if min <= max {
            return Ok(());
        }
        Err(format!("min-bitrate={min} is above max-bitrate={max} (bit/s): set max-bitrate to {min} or more first"))
    }

    /// The controller, beginning at `start`.
    pub(super) fn flow(&self, start: DataRate, now: Timestamp) -> Result<Flow, Refused> {
        let limits = self.limits();
        let start_rate = limits.clamp(start);
        let setup = Setup { limits, start_rate, now, seed: 1, params: self.params.clone() };
        let registry = registry();
        match registry.find(&self.controller) {
            // Below it is refused with the nearest name.
            Ok(_) | Err(SetupError::UnknownController { .. }) => {}
            Err(e) => return Err(Refused::Setup(e)),
        }
        Flow::by_name(&registry, &self.controller, &setup)
    }

    pub(super) fn start_rate(&self) -> DataRate {
        DataRate::from_bps(self.start.into())
    }

    /// Errors: the bounds cross, or no controller can be made.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_bounds()?;
        self.flow(self.start_rate(), Timestamp::ZERO).map(drop).map_err(|e| e.to_string())
    }
}

/// The numbers of a structure, as parameters.
///
/// # Errors
/// A field that is no number, by name.
pub(super) fn params(given: Option<&gst::Structure>) -> Result<Vec<(String, f64)>, String> {
    let fields = given.into_iter().flat_map(|s| s.iter());
    fields
        .map(|(name, value)| {
            let number = (value.get::<f64>().ok())
                .or_else(|| value.get::<i32>().ok().map(f64::from))
                .or_else(|| value.get::<bool>().ok().map(|b| f64::from(u8::from(b))));
            let number = number.filter(|n| n.is_finite());
            number
                .map(|n| (name.to_string(), n))
                .ok_or_else(|| format!("parameter `{name}` is {value:?}: expected a finite number or a boolean"))
        })
        .collect()
}

/// The names that can be given, for the property's text.
pub(super) fn controllers() -> Vec<String> {
    let settings = Settings { controller: String::new(), ..Settings::default() };
    match settings.flow(settings.start_rate(), Timestamp::ZERO) {
        Err(Refused::Unknown { known, .. }) => known,
        _ => Vec::new(),
    }
}
