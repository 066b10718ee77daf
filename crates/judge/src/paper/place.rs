//! The scenario, variant or window that corresponds to a published condition.

use super::Published;
use serde::{Deserialize, Serialize};

/// Where published numbers are measured whose condition is not the name of a variant or a window.
///
/// Over several variants a metric whose name ends in `_min` or `_at_least` is that of the variant with the least mean, one
/// that ends in `_max` or `_at_most` that of the variant with the greatest, and any other the mean over all.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The condition as published.
    pub condition: String,
    /// Only numbers of this algorithm as published; of any if absent.
    #[serde(default)]
    pub algorithm: Option<String>,
    /// Only numbers of this scenario as published; of any if absent.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Only numbers of this metric as published; of any if absent.
    #[serde(default)]
    pub metric: Option<String>,
    /// The scenario that measures them, if it has another name.
    #[serde(default)]
    pub measured_in: Option<String>,
    /// The controller that measures them, if its name is not the algorithm's.
    #[serde(default)]
    pub controller: Option<String>,
    /// The variants that measure them.
    pub variants: Vec<String>,
    /// The flow by name, the mean over the copies of a flow with a count, or `*` for the mean over a run's RTP flows; the
    /// first RTP flow if absent.
    #[serde(default)]
    pub flow: Option<String>,
}

impl Place {
    /// Whether it applies to these numbers.
    pub(super) fn is_for(&self, p: &Published) -> bool {
        let agrees = |own: &Option<String>, other: &str| own.as_deref().is_none_or(|o| o == other);
        self.condition == p.condition
            && agrees(&self.scenario, &p.scenario)
            && agrees(&self.algorithm, &p.algorithm)
            && agrees(&self.metric, &p.metric)
    }
}

/// A bound or a point, by a metric's last part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reduce {
    Least,
    Greatest,
    Mean,
}

/// A metric's name without the part that selects among variants, and that part.
pub(super) fn split(metric: &str) -> (&str, Reduce) {
    for (suffix, reduce) in [
        ("_at_least", Reduce::Least),
        ("_min", Reduce::Least),
        ("_at_most", Reduce::Greatest),
        ("_max", Reduce::Greatest),
    ] {
        if let Some(name) = metric.strip_suffix(suffix) {
            return (name, reduce);
        }
    }
    (metric, Reduce::Mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_say_what_of_several_is_meant() {
        assert_eq!(split("throughput_min"), ("throughput", Reduce::Least));
        assert_eq!(split("residual_loss_at_most"), ("residual_loss", Reduce::Greatest));
        assert_eq!(split("goodput"), ("goodput", Reduce::Mean));
    }

    #[test]
    fn a_place_may_be_narrowed() {
        let p = Place { condition: "50ms/tcp".into(), algorithm: Some("fbra".into()), ..Place::default() };
        let of = |condition: &str, algorithm: &str, metric: &str| Published {
            condition: condition.into(),
            algorithm: algorithm.into(),
            metric: metric.into(),
            ..Published::default()
        };
        assert!(p.is_for(&of("50ms/tcp", "fbra", "loss")));
        assert!(!p.is_for(&of("50ms/tcp", "rrtcc", "loss")) && !p.is_for(&of("50ms", "fbra", "loss")));
        let p = Place { metric: Some("psnr".into()), ..p };
        assert!(p.is_for(&of("50ms/tcp", "fbra", "psnr")) && !p.is_for(&of("50ms/tcp", "fbra", "loss")));
    }
}
