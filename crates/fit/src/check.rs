//! The recorded controller over the drawn links beside the recording: whether the fit explains the call.

use crate::measured::Measured;
use crate::whatif::{Estimate, Prediction};
use serde::Serialize;

/// Difference from the likely value up to which a prediction counts as near, as a share; of delays also in ms, since clocks and the
/// halved round trip have errors of their own.
pub const NEAR: f64 = 0.15;
/// See [`NEAR`].
pub const NEAR_MS: f64 = 5.0;

/// A recorded number beside the interval of the same controller over the drawn links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfStanding"))]
pub enum Standing {
    /// In the interval.
    Inside,
    /// Beside it, and within 15 % of the likely value; of a delay, or 5 ms.
    Near,
    /// Beside it and farther away.
    Outside,
}

/// The recorded controller over the drawn links beside the recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfCheck"))]
pub struct Check {
    /// The recorded controller.
    pub controller: String,
    /// Its recorded numbers.
    pub recorded: Measured,
    /// Rate that arrived over the links, in kbit/s.
    pub received_kbps: Estimate,
    /// 95th percentile of the one-way delay over the links, in ms.
    pub delay_p95_ms: Estimate,
    /// The recorded rate beside its interval.
    pub received: Standing,
    /// The recorded delay beside its interval.
    pub delay: Standing,
    /// Whether neither is outside. Else the fitted link is not that of the call, or the recorded controller is another one, and the
    /// predictions of other controllers are not to be relied on.
    pub explained: bool,
}

fn standing(recorded: f64, over: &Estimate, near: f64) -> Standing {
    match () {
        () if (over.low..=over.high).contains(&recorded) => Standing::Inside,
        () if (recorded - over.likely).abs() <= near => Standing::Near,
        () => Standing::Outside,
    }
}

impl Check {
    /// Of the recorded controller's prediction over links as they were, without changes.
    pub fn of(over: &Prediction, recorded: Measured) -> Self {
        let rate = over.received_kbps;
        let received = standing(recorded.received_kbps, &rate, NEAR * rate.likely);
        let delays = over.delay_p95_ms;
        let delay = standing(recorded.delay_p95_ms, &delays, (NEAR * delays.likely).max(NEAR_MS));
        Self {
            controller: over.controller.clone(),
            recorded,
            received_kbps: rate,
            delay_p95_ms: delays,
            received,
            delay,
            explained: received != Standing::Outside && delay != Standing::Outside,
        }
    }

    /// How the recorded numbers stand to their intervals, in words.
    pub fn words(&self) -> String {
        let Self { controller, recorded, received_kbps: rate, delay_p95_ms: delay, .. } = self;
        let mut parts = Vec::new();
        let mut add = |standing, name: &str, unit: &str, value: f64, over: &Estimate| {
            if standing != Standing::Inside {
                parts.push(format!(
                    "recorded {name}{value:.0} {unit}, {controller} over its links {:.0} ({:.0} to {:.0})",
                    over.likely, over.low, over.high
                ));
            }
        };
        add(self.received, "", "kbit/s", recorded.received_kbps, rate);
        add(self.delay, "delay p95 ", "ms", recorded.delay_p95_ms, delay);
        let all = parts.join("; ");
        match self.explained {
            true if parts.is_empty() => {
                "The fit explains this call: both recorded numbers are in their intervals.".into()
            }
            true => format!("The fit nearly explains this call: {all}."),
            false => {
                format!(
                    "The fit does not explain this call: {all}. Predictions of other controllers can be as far off."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(likely: f64, low: f64, high: f64) -> Prediction {
        let (rate, none) = (Estimate { likely, low, high }, Estimate { likely: 0.0, low: 0.0, high: 0.0 });
        Prediction {
            controller: "gcc".into(),
            goodput_kbps: rate,
            received_kbps: rate,
            delay_p95_ms: Estimate { likely: 40.0, low: 38.0, high: 42.0 },
            late_percent: none,
            frozen_s: none,
        }
    }

    #[test]
    fn a_recorded_rate_beside_the_interval_is_said_and_one_far_from_it_contradicts_the_fit() {
        let recorded = |rate, delay| Measured { received_kbps: rate, delay_p95_ms: delay, lost_percent: 0.0 };
        let of = |rate, delay| Check::of(&over(1_328.0, 1_290.0, 1_360.0), recorded(rate, delay));
        let inside = of(1_300.0, 41.0);
        assert!(inside.explained && inside.words().starts_with("The fit explains"), "{inside:?}");
        let near = of(1_400.0, 44.0);
        assert_eq!((near.received, near.delay, near.explained), (Standing::Near, Standing::Near, true));
        assert!(near.words().starts_with("The fit nearly explains"), "{near:?}");
        let outside = of(2_138.0, 41.0);
        assert_eq!((outside.received, outside.delay, outside.explained), (Standing::Outside, Standing::Inside, false));
        let words = "The fit does not explain this call: recorded 2138 kbit/s, gcc over its links 1328 (1290 to 1360). \
                     Predictions of other controllers can be as far off.";
        assert_eq!(outside.words(), words);
        assert!(!of(1_300.0, 60.0).explained);
        assert!(!of(f64::NAN, 41.0).explained, "a number that is none is not explained");
    }
}
