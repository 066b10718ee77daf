//! How a value is judged against its goal.

use serde::Serialize;

/// Tolerance of a goal: times are differences of sums, such as 40.35 s less 40 s.
const CLOSE: f64 = 1e-9;

/// Direction in which values of a metric are better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More.
    High,
    /// Less.
    Low,
    /// Nearer one.
    One,
}

impl Better {
    /// How far a value is on its way to a goal: 1 where it is met; `None` ("never") is 0.
    ///
    /// Of a value of which more is better, its share of the goal; of which less is better, the goal's share of it (where the
    /// goal is not above zero, 1 / (1 + how far off it is)); of a ratio that should be one, how much further from it than the goal.
    pub fn closeness(self, goal: f64, value: Option<f64>) -> f64 {
        let Some(value) = value.filter(|v| !v.is_nan()) else { return 0.0 };
        let share = match self {
            Self::High if value >= goal - CLOSE => 1.0,
            Self::High if goal > 0.0 => value / goal,
            Self::High => 1.0 / (1.0 + goal - value),
            Self::Low if value <= goal + CLOSE => 1.0,
            Self::Low if goal > 0.0 => goal / value,
            Self::Low => 1.0 / (1.0 + value - goal),
            Self::One => {
                let (off, allowed) = (libm::log(value.max(1e-9)).abs(), libm::log(goal).abs());
                if off <= allowed + CLOSE { 1.0 } else { libm::exp(allowed - off) }
            }
        };
        share.clamp(0.0, 1.0)
    }

    /// Whether a value meets a goal.
    pub fn meets(self, goal: f64, value: Option<f64>) -> bool {
        self.closeness(goal, value) >= 1.0
    }
}

/// Mean over runs; `None` ("never") where that is the value of at least half of them.
pub(crate) fn mean_of(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (known.len() * 2 > values.len()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// A value in three digits or so.
pub fn shown(value: Option<f64>) -> String {
    match value {
        None => "never".into(),
        Some(v) if v.is_nan() => "-".into(),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_meets_its_goal_is_as_close_as_can_be() {
        for (better, goal, value, closeness) in [
            (Better::High, 0.95, Some(0.97), 1.0),
            (Better::High, 0.8, Some(0.2), 0.25),
            (Better::Low, 60.0, Some(59.0), 1.0),
            (Better::Low, 60.0, Some(240.0), 0.25),
            (Better::Low, 0.35, Some(40.35 - 40.0), 1.0),
            (Better::Low, 0.0, Some(0.0), 1.0),
            (Better::Low, 0.0, Some(3.0), 0.25),
            (Better::Low, -1.0, Some(-0.75), 0.8),
            (Better::Low, -1.0, Some(-1.5), 1.0),
            (Better::High, -1.0, Some(-2.0), 0.5),
            (Better::High, -1.0, Some(-0.5), 1.0),
            (Better::One, 0.9, Some(1.1), 1.0),
            (Better::One, 0.8, Some(5.0), 0.25),
            (Better::One, 0.8, Some(0.2), 0.25),
            (Better::Low, 1.0, None, 0.0),
            (Better::High, 1.0, Some(f64::NAN), 0.0),
        ] {
            let found = better.closeness(goal, value);
            assert!((found - closeness).abs() < 1e-9, "{better:?} {goal} {value:?}: {found}");
            assert_eq!(better.meets(goal, value), closeness >= 1.0, "{better:?} {goal} {value:?}");
        }
    }

    #[test]
    fn never_outweighs_half_of_the_runs() {
        assert_eq!(mean_of(&[Some(1.0), Some(3.0), None]), Some(2.0));
        assert_eq!(mean_of(&[Some(1.0), None]), None);
        assert_eq!(mean_of(&[]), None);
        assert_eq!([None, Some(512.3), Some(51.23), Some(0.512)].map(shown), ["never", "512", "51.2", "0.51"]);
    }
}
