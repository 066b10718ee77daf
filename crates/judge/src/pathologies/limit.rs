//! Limits of what a run under a controller may show.

use super::quantity::Quantity;
use serde::Serialize;

/// How a number is compared with its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "PathologyComparison"))]
pub enum Against {
    /// The number itself.
    Itself,
    /// The number over that of the same controller's undisturbed run.
    Share,
    /// The number less that of the same controller's undisturbed run.
    More,
}

/// Least and greatest value that is kept; absent where there is no such limit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PathologyBounds"))]
pub struct Bounds {
    /// Least value.
    pub low: Option<f64>,
    /// Greatest value.
    pub high: Option<f64>,
}

impl Bounds {
    /// From a least to a greatest value.
    pub(super) const fn within(low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high) }
    }

    /// A least value.
    pub(super) const fn least(low: f64) -> Self {
        Self { low: Some(low), high: None }
    }

    /// A greatest value.
    pub(super) const fn most(high: f64) -> Self {
        Self { low: None, high: Some(high) }
    }

    /// Whether a value is inside. One that is not a number is not.
    pub fn contain(&self, value: f64) -> bool {
        !value.is_nan() && self.low.is_none_or(|l| l <= value) && self.high.is_none_or(|h| value <= h)
    }
}

/// A controller's own bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exception {
    /// The controller's name.
    pub controller: &'static str,
    /// Bounds that hold for it instead.
    pub bounds: Bounds,
    /// Cause in the controller's specification, or in what was measured.
    pub reason: &'static str,
}

/// A limit of a case's runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Limit {
    /// The number that is compared.
    pub quantity: Quantity,
    /// How it is compared. Limits beside the undisturbed run say nothing of that run itself.
    pub against: Against,
    /// Bounds for every controller that has no exception.
    pub bounds: Bounds,
    /// The variants to which it applies; all if there is none.
    pub variants: &'static [&'static str],
    /// The exceptions.
    pub exceptions: Vec<Exception>,
}

impl Limit {
    /// A limit of the number itself, in all variants.
    pub(super) const fn of(quantity: Quantity, bounds: Bounds) -> Self {
        Self { quantity, against: Against::Itself, bounds, variants: &[], exceptions: Vec::new() }
    }

    /// A limit of the number over that of the undisturbed run.
    pub(super) fn share(quantity: Quantity, bounds: Bounds) -> Self {
        Self { against: Against::Share, ..Self::of(quantity, bounds) }
    }

    /// A limit of the number less that of the undisturbed run.
    pub(super) fn more(quantity: Quantity, most: f64) -> Self {
        Self { against: Against::More, ..Self::of(quantity, Bounds::most(most)) }
    }

    /// Only in these variants.
    pub(super) const fn only(mut self, variants: &'static [&'static str]) -> Self {
        self.variants = variants;
        self
    }

    /// A controller's own bounds, and why it has them.
    pub(super) fn but(mut self, controller: &'static str, bounds: Bounds, reason: &'static str) -> Self {
        self.exceptions.push(Exception { controller, bounds, reason });
        self
    }

    /// The exception of a controller. Parameters that follow its name change nothing.
    pub fn exception(&self, controller: &str) -> Option<&Exception> {
        let name = controller.split(':').next().unwrap_or(controller);
        self.exceptions.iter().find(|e| e.controller == name)
    }
}

/// A scenario with its limits.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The scenario's name in its folder.
    pub name: &'static str,
    /// Controllers of other shelves that run it too.
    pub also: &'static [&'static str],
    /// The limits.
    pub limits: Vec<Limit>,
}
