//! Division of flows at a bottleneck into groups (RFC 8382, section 3.3.1, steps 2 to 5).

use super::Config;
use super::statistics::Summary;

/// A flow at a bottleneck.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Measured {
    /// Its index in the caller's list.
    pub index: usize,
    pub summary: Summary,
}

/// Sorts flows from the highest value to the lowest, and separates neighbours for which `apart` holds.
fn split(
    mut flows: Vec<Measured>,
    value: impl Fn(&Summary) -> f64,
    apart: impl Fn(f64, f64) -> bool,
) -> Vec<Vec<Measured>> {
    flows.sort_by(|a, b| value(&b.summary).total_cmp(&value(&a.summary)).then(a.index.cmp(&b.index)));
    let mut groups: Vec<Vec<Measured>> = Vec::new();
    for flow in flows {
        let joins = groups
            .last()
            .and_then(|g| g.last())
            .is_some_and(|before| !apart(value(&before.summary), value(&flow.summary)));
        match groups.last_mut().filter(|_| joins) {
            Some(group) => group.push(flow),
            None => groups.push(vec![flow]),
        }
    }
    groups
}

/// The groups of flows at a bottleneck.
pub(super) fn group(config: &Config, flows: Vec<Measured>) -> Vec<Vec<Measured>> {
    let by_frequency = split(flows, |s| s.frequency, |high, low| high - low >= config.p_f);
    // Two values of zero are equal: they have no relative difference.
    let relative = |share: f64| move |high: f64, low: f64| high > low && high - low >= share * high;
    let divide = |groups: Vec<Vec<Measured>>, by: &dyn Fn(Vec<Measured>) -> Vec<Vec<Measured>>| {
        groups.into_iter().flat_map(by).collect::<Vec<_>>()
    };
    let by_variability = divide(by_frequency, &|g| split(g, |s| s.variability, relative(config.p_mad)));
    let by_skewness = divide(by_variability, &|g| split(g, |s| s.skewness, |high, low| high - low >= config.p_s));
    divide(by_skewness, &|g| split(g, |s| s.loss, |high, low| high > config.p_l && relative(config.p_d)(high, low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(flows: &[(f64, f64, f64, f64)]) -> Vec<Vec<usize>> {
        let measured = flows.iter().enumerate().map(|(index, (frequency, variability, skewness, loss))| Measured {
            index,
            summary: Summary { frequency: *frequency, variability: *variability, skewness: *skewness, loss: *loss },
        });
        let mut all: Vec<Vec<usize>> = group(&Config::default(), measured.collect())
            .into_iter()
            .map(|g| {
                let mut members: Vec<usize> = g.into_iter().map(|m| m.index).collect();
                members.sort_unstable();
                members
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn each_statistic_separates_beyond_its_threshold() {
        let like = (0.30, 0.0100, -0.20, 0.0);
        assert_eq!(groups(&[like, like, like]), [vec![0, 1, 2]]);
        assert_eq!(groups(&[like, (0.39, 0.0100, -0.20, 0.0)]), [vec![0, 1]]);
        assert_eq!(groups(&[like, (0.41, 0.0100, -0.20, 0.0)]), [vec![0], vec![1]]);
        assert_eq!(groups(&[like, (0.30, 0.0110, -0.20, 0.0)]), [vec![0, 1]]);
        assert_eq!(groups(&[like, (0.30, 0.0112, -0.20, 0.0)]), [vec![0], vec![1]]);
        assert_eq!(groups(&[like, (0.30, 0.0100, -0.06, 0.0)]), [vec![0, 1]]);
        assert_eq!(groups(&[like, (0.30, 0.0100, -0.04, 0.0)]), [vec![0], vec![1]]);
    }

    #[test]
    fn losses_separate_only_where_they_are_high() {
        let lossy = |loss| (0.30, 0.0100, -0.20, loss);
        assert_eq!(groups(&[lossy(0.01), lossy(0.09)]), [vec![0, 1]]);
        assert_eq!(groups(&[lossy(0.20), lossy(0.19)]), [vec![0, 1]]);
        assert_eq!(groups(&[lossy(0.20), lossy(0.17)]), [vec![0], vec![1]]);
        // Low losses stay together beside a high one.
        assert_eq!(groups(&[lossy(0.20), lossy(0.05), lossy(0.01)]), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn neighbours_chain_and_groups_divide_again() {
        // 0.30, 0.38, 0.46: neighbours differ by less than p_f.
        let a = (0.30, 0.01, -0.2, 0.0);
        let b = (0.38, 0.01, -0.2, 0.0);
        let c = (0.46, 0.02, -0.2, 0.0);
        assert_eq!(groups(&[a, b, c]), [vec![0, 1], vec![2]]);
    }
}
