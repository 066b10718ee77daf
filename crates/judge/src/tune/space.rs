//! The parameters searched, as numbers around zero.

use serde::Serialize;
use weir_cc::Registry;
use weir_cc::tunable::ParamInfo;
use weir_lab::scenario::{InputError, suggest};

/// Change of a parameter for a step of one: this factor, or of a parameter that starts at zero, this share of its range.
const FACTOR: f64 = 1.25;
const SHARE: f64 = 0.05;
/// Units of parameters that are no continuous numbers.
const SWITCH: &str = "0 or 1";

/// A parameter of the search.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// Where the search starts.
    pub start: f64,
    /// Least value allowed.
    pub min: f64,
    /// Greatest value allowed.
    pub max: f64,
}

/// A controller and the parameters searched.
#[derive(Clone, PartialEq, Debug)]
pub struct Space {
    /// The controller's name.
    controller: String,
    /// Parameters that the start sets and the search leaves as they are.
    fixed: Vec<(String, String)>,
    parameters: Vec<Parameter>,
}

impl Space {
    /// The space around a controller, `NAME` or `NAME:PARAMETER=VALUE:...`, of the parameters named; all that are continuous numbers
    /// if none is named. Errors: a controller, a parameter or a value that does not exist; a parameter that is a switch.
    pub fn new(start: &str, names: &[String], registry: &Registry) -> Result<Self, InputError> {
        let mut parts = start.split(':');
        let controller = parts.next().unwrap_or_default().to_owned();
        let wrong = |what: String| InputError::whole(start, what).field("CONTROLLER");
        let spec = suggest::find(registry, start, &controller).map_err(|e| e.field("CONTROLLER"))?;
        let known = || spec.params.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let mut given = Vec::new();
        for part in parts {
            let (name, text) = part.split_once('=').ok_or_else(|| wrong(format!("`{part}`: expected NAME=VALUE")))?;
            let value: f64 = text.parse().map_err(|_| wrong(format!("{name}: `{text}` is no number")))?;
            let Some(info) = spec.params.iter().find(|p| p.name == name) else {
                return Err(wrong(format!("{controller} has no parameter `{name}`")).help(known()));
            };
            if !(info.min..=info.max).contains(&value) {
                return Err(wrong(format!("{name} = {value}: expected {} to {}", info.min, info.max)));
            }
            given.push((name.to_owned(), text.to_owned()));
        }
        let start_of = |info: &ParamInfo| {
            given.iter().find(|g| g.0 == info.name).and_then(|g| g.1.parse().ok()).unwrap_or(info.default)
        };
        let mut parameters = Vec::new();
        for info in spec.params.iter().filter(|p| names.is_empty() || names.iter().any(|n| n == p.name)) {
            if info.unit == SWITCH {
                if names.is_empty() {
                    continue;
                }
                let what = format!("{} is a switch: the search is over continuous numbers", info.name);
                return Err(InputError::whole("--parameters", what));
            }
            let (name, unit) = (info.name.to_owned(), info.unit.to_owned());
            parameters.push(Parameter { name, unit, start: start_of(info), min: info.min, max: info.max });
        }
        if let Some(unknown) = names.iter().find(|n| !parameters.iter().any(|p| p.name == **n)) {
            let what = format!("{controller} has no parameter `{unknown}`");
            return Err(InputError::whole("--parameters", what).help(known()));
        }
        if parameters.is_empty() {
            return Err(wrong(format!("{controller} has no parameter to search")));
        }
        let fixed = given.into_iter().filter(|g| !parameters.iter().any(|p| p.name == g.0)).collect();
        Ok(Self { controller, fixed, parameters })
    }

    /// The parameters searched.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The parameters' values at a point: one number for each, 0 where the search starts, within their bounds, in four digits.
    pub fn values(&self, point: &[f64]) -> Vec<f64> {
        (self.parameters.iter().zip(point))
            .map(|(p, x)| {
                let raw = match p.start > 0.0 {
                    true => p.start * libm::pow(FACTOR, *x),
                    false => p.start + x * SHARE * (p.max - p.min),
                };
                let digits = if raw == 0.0 { 0.0 } else { libm::floor(libm::log10(raw.abs())) };
                let unit = libm::pow(10.0, 3.0 - digits);
                let rounded = if *x == 0.0 { p.start } else { libm::round(raw * unit) / unit };
                if rounded.is_nan() { p.start } else { rounded.clamp(p.min, p.max) }
            })
            .collect()
    }

    /// The controller with values, as scoreboards name it.
    pub fn named(&self, values: &[f64]) -> String {
        let changed = self.parameters.iter().zip(values).map(|(p, v)| (p.name.clone(), format!("{v}")));
        let all = self.fixed.iter().cloned().chain(changed);
        all.fold(self.controller.clone(), |name, (parameter, value)| format!("{name}:{parameter}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_becomes_a_controller_within_its_bounds() {
        let registry = Registry::builtin();
        let names = ["growth".to_owned(), "drain_time".to_owned()];
        let space = Space::new("sluice:pacing_start=2:drain_time=120:growth=1.6", &names, &registry).expect("known");
        // In the order of the controller's own list.
        let listed: Vec<_> = space.parameters().iter().map(|p| (p.name.as_str(), p.start)).collect();
        assert_eq!(listed, [("drain_time", 120.0), ("growth", 1.6)]);
        assert_eq!(space.named(&space.values(&[0.0, 0.0])), "sluice:pacing_start=2:drain_time=120:growth=1.6");
        assert_eq!(space.values(&[1.0, -1.0]), [150.0, 1.28]);
        assert_eq!(space.values(&[1e3, -1e3]), [5_000.0, 1.01]);
        assert_eq!(space.values(&[f64::NAN, 0.0]), [120.0, 1.6]);
        assert!(Space::new("sluice", &[], &registry).expect("all").parameters().len() > 20);
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let registry = Registry::builtin();
        for (start, names, what) in [
            ("nobody", "", "nobody"),
            ("sluice:growht=2", "", "growht"),
            ("sluice:growth=fast", "", "fast"),
            ("sluice:growth=99", "", "1.01 to 4"),
            ("sluice:growth", "", "NAME=VALUE"),
            ("sluice", "growht", "growht"),
            ("gcc", "loss_v2", "switch"),
        ] {
            let names: Vec<String> = Some(names.to_owned()).filter(|n| !n.is_empty()).into_iter().collect();
            let error = Space::new(start, &names, &registry).expect_err(start).to_string();
            assert!(error.contains(what), "{start}: {error}");
        }
    }
}
