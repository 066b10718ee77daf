//! Parameters of controllers, checked against what each has.

use crate::choice::RawNumber;
use crate::error::InputError;
use crate::quantity::{Rate, Size, Time};
use crate::resolve::flow::Flows;
use crate::spanned::{At, Named};
use crate::suggest;
use weir_cc::Spec;
use weir_cc::tunable::ParamInfo;

impl Flows<'_> {
    pub(crate) fn params(&self, spec: &Spec, given: &Named<RawNumber>) -> Result<Vec<(String, f64)>, InputError> {
        let mut out = Vec::new();
        for (name, value) in given.iter() {
            let Some(info) = spec.params.iter().find(|p| p.name == name.value) else {
                let known: Vec<&str> = spec.params.iter().map(|p| p.name).collect();
                return Err(self
                    .text
                    .error(name.span.clone(), format!("controller `{}` has no parameter `{}`", spec.name, name.value))
                    .help(suggest::help(&name.value, &known)));
            };
            out.push((name.value.clone(), self.param_in_range(info, value)?));
        }
        Ok(out)
    }

    /// A parameter's value in its own unit.
    pub(crate) fn param_in_range(&self, info: &ParamInfo, value: &At<RawNumber>) -> Result<f64, InputError> {
        let n = param_value(info, &value.value).map_err(|why| self.text.error(value.span.clone(), why))?;
        if (info.min..=info.max).contains(&n) {
            return Ok(n);
        }
        let ParamInfo { min, max, unit, .. } = info;
        let unit = if *unit == "1" { String::new() } else { format!(" (unit: {unit})") };
        let message = format!("expected a number between {min} and {max}{unit}, found {n}");
        Err(self.text.error(value.span.clone(), message).help(info.doc))
    }
}

/// A parameter's number in its own unit.
fn param_value(info: &ParamInfo, raw: &RawNumber) -> Result<f64, String> {
    let text = match raw {
        RawNumber::Plain(n) => return Ok(*n),
        RawNumber::Text(t) => t,
    };
    match info.unit {
        "ms" => Time::read(text).map(|t| t.0.as_millis_f64()),
        "kbit/s" => Rate::read(text).map(|r| r.0.as_kbps_f64()),
        "bytes" => Size::read(text).map(|s| s.0.as_bytes() as f64),
        unit => Err(format!("expected a plain number (unit: {unit}), found \"{text}\"")),
    }
}
