//! A question, its cases, and what is read from their runs.

use super::lies::Lie;
use crate::rows::Reading;
use serde::Serialize;
use weir_lab::scenario::TcpAlgorithm;

/// A criterion of the RFC.
#[derive(Debug)]
pub struct Question {
    /// The RFC's section.
    pub section: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The criterion in a few words.
    pub asks: &'static str,
    /// The runs that answer.
    pub cases: Vec<Case>,
}

/// Where a case's scenario is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A built-in scenario, by its name.
    File(&'static str),
    /// A row of the scoreboard, by its key.
    Row(&'static str),
}

/// A run beside which the controller's is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    /// None.
    Nothing,
    /// The same with a TCP flow in the place of each flow under the controller.
    Tcp(TcpAlgorithm),
    /// The same with the controller of the flow `other` in the controller's place.
    ItsOwnKind,
    /// Another variant of the same scenario under the same controller.
    Variant(&'static str),
}

/// Runs, and the numbers read from them.
#[derive(Debug)]
pub struct Case {
    pub(super) source: Source,
    /// Parts that a variant's name has, between commas; all variants if empty.
    pub(super) variants: &'static [&'static str],
    pub(super) beside: Beside,
    pub(super) lie: Option<Lie>,
    /// The numbers.
    pub checks: Vec<Check>,
}

impl Case {
    pub(super) fn file(name: &'static str) -> Self {
        Self { source: Source::File(name), variants: &[], beside: Beside::Nothing, lie: None, checks: Vec::new() }
    }
    pub(super) fn row(key: &'static str) -> Self {
        Self { source: Source::Row(key), ..Self::file("") }
    }
    pub(super) fn only(mut self, variants: &'static [&'static str]) -> Self {
        self.variants = variants;
        self
    }
    pub(super) fn beside(mut self, beside: Beside) -> Self {
        self.beside = beside;
        self
    }
    pub(super) fn under(mut self, lie: Lie) -> Self {
        self.lie = Some(lie);
        self
    }
    pub(super) fn check(
        mut self,
        quantity: &'static str,
        unit: &'static str,
        (bound, why): (Bound, &'static str),
        read: impl Fn(&Runs<'_>) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push(Check { quantity, unit, bound, why, read: Box::new(read) });
        self
    }

    /// Whether a variant of its scenario belongs to it.
    pub(super) fn has(&self, variant: Option<&str>) -> bool {
        let parts: Vec<&str> = variant.unwrap_or_default().split(", ").collect();
        self.variants.iter().all(|v| parts.contains(v))
    }

    /// The command that makes its runs under a controller, without those beside it.
    pub fn command(&self, controller: &str) -> String {
        match (self.source, self.lie) {
            (Source::File(name), None) => format!("weir run {name} --controller {controller}"),
            (Source::Row(key), None) => format!("weir run row:{key} --controller {controller}"),
            (_, Some(_)) => format!("weir judge rfc {controller} --suite {} --sections 7.6", super::NAME),
        }
    }

    /// The variants' names, or nothing where it has all.
    pub fn variants(&self) -> String {
        self.variants.join(", ")
    }
}

/// The bound of a value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At least so much.
    Least(f64),
    /// At most so much.
    Most(f64),
    /// Nothing: the RFC asks to look, and no bound follows.
    Shown,
}

impl Bound {
    /// Whether a value keeps it; `None` where there is nothing to keep.
    pub fn keeps(self, value: Option<f64>) -> Option<bool> {
        let value = value.filter(|v| !v.is_nan());
        match self {
            Self::Least(least) => Some(value.is_some_and(|v| v >= least)),
            Self::Most(most) => Some(value.is_some_and(|v| v <= most)),
            Self::Shown => None,
        }
    }

    /// Whether `a` is worse than `b`; no value is the worst. Without a bound the greater one is.
    pub(super) fn is_worse(self, a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b, self) {
            (None, b, _) => b.is_some(),
            (_, None, _) => false,
            (Some(a), Some(b), Self::Least(_)) => a < b,
            (Some(a), Some(b), _) => a > b,
        }
    }
}

/// Reads a number; `None` is "never".
type Read = Box<dyn Fn(&Runs<'_>) -> Option<f64> + Send + Sync>;

/// A number with its bound.
pub struct Check {
    /// The number in words.
    pub quantity: &'static str,
    /// Its unit; none for a ratio.
    pub unit: &'static str,
    /// The bound that it has to keep.
    pub bound: Bound,
    /// Reason of the bound.
    pub why: &'static str,
    read: Read,
}

impl Check {
    pub(super) fn read(&self, runs: &Runs<'_>) -> Option<f64> {
        (self.read)(runs)
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.quantity, self.bound)
    }
}

/// A controller's run, and the one beside it.
pub(super) struct Runs<'a> {
    pub(super) run: Reading<'a>,
    pub(super) beside: Option<Reading<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept_or_not_and_no_value_is_the_worst() {
        assert_eq!(Bound::Least(0.85).keeps(Some(0.85)), Some(true));
        assert_eq!(Bound::Most(5.0).keeps(Some(5.1)), Some(false));
        assert_eq!(Bound::Most(5.0).keeps(None), Some(false));
        assert_eq!(Bound::Least(0.0).keeps(Some(f64::NAN)), Some(false));
        assert_eq!(Bound::Shown.keeps(Some(1.0)), None);
        assert!(Bound::Least(1.0).is_worse(Some(1.0), Some(2.0)) && Bound::Most(1.0).is_worse(Some(2.0), Some(1.0)));
        assert!(Bound::Most(1.0).is_worse(None, Some(9.0)) && !Bound::Most(1.0).is_worse(Some(9.0), None));
    }

    #[test]
    fn variants_are_chosen_by_whole_parts_of_their_names() {
        let case = Case::file("x").only(&["codel", "marks"]);
        assert!(
            case.has(Some("codel, marks")) && !case.has(Some("fq-codel, marks")) && !case.has(Some("codel, drops"))
        );
        assert!(Case::file("x").has(None) && Case::file("x").has(Some("any")) && !case.has(None));
    }
}
