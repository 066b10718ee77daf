//! Coupling of a call's paths, so that paths behind one bottleneck take one flow's share of it together.

use weir_cc::coupled::Division;

/// The paths of a call that are coupled. Rates are coupled by flow state exchange (RFC 8699), windows by linked increases
/// (RFC 6356); a controller that reports neither a rate nor a window to couple stays alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coupling {
    /// None: each path is a flow.
    #[default]
    None,
    /// All usable paths.
    Always(Division),
    /// Paths that detection finds behind one bottleneck (RFC 8382), by the one-way delays and losses in per-packet
    /// feedback. Without such feedback none is found. A queue that is empty most of the time, as under GCC, is no bottleneck by the RFC's
    /// first test, and since paths carry parts of the same frames, separate bottlenecks can look alike, as under SCReAM 2.
    /// [`Self::Correlated`] has neither fault.
    Detected(Division),
    /// Paths whose delays change together ([`weir_cc::coupled::DelayCorrelation`]), by per-packet feedback as well. It also
    /// finds a bottleneck with a short queue, and separates two bottlenecks that are alike.
    Correlated(Division),
}

impl Coupling {
    /// Names and summaries of [`Self::named`].
    pub const NAMES: [(&str, &str); 4] = [
        ("none", "each path is a flow of its own"),
        ("always", "all paths share one flow's rate"),
        ("detected", "paths found behind one bottleneck share one flow's rate (RFC 8382)"),
        ("correlated", "paths whose delays change together share one flow's rate"),
    ];

    /// The coupling of a name in [`Self::NAMES`].
    pub fn named(name: &str, division: Division) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "always" => Some(Self::Always(division)),
            "detected" => Some(Self::Detected(division)),
            "correlated" => Some(Self::Correlated(division)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_coupling_of_its_own() {
        for (name, _) in Coupling::NAMES {
            for (division_name, division) in Division::NAMED {
                assert_eq!(Division::named(division_name), Some(division));
                let coupling = Coupling::named(name, division).expect("in the list");
                assert_eq!(coupling == Coupling::None, name == "none");
                let others = Coupling::NAMES.iter().filter(|(n, _)| *n != name);
                assert!(others.map(|(n, _)| Coupling::named(n, division)).all(|other| other != Some(coupling)));
            }
        }
        assert_eq!(Coupling::named("some", Division::Active), None);
    }
}
