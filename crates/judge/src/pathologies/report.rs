//! Numbers of runs beside their limits.

use super::limit::{Against, Bounds, Case, Limit};
use super::{Place, Readings, UNDISTURBED};
use serde::Serialize;

/// A number of one controller's run beside its limits.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PathologyVerdict"))]
pub struct Verdict {
    /// The controller.
    pub controller: String,
    /// The number in the limit's unit; absent if the run does not have it.
    pub value: Option<f64>,
    /// The same of the undisturbed run, where it is compared with that.
    pub undisturbed: Option<f64>,
    /// Value that the bounds are for: the number, its share or its difference.
    pub compared: Option<f64>,
    /// The controller's own bounds, if it has some.
    pub own: Option<Bounds>,
    /// Why it has them.
    pub reason: Option<String>,
    /// Whether the bounds are kept.
    pub kept: bool,
}

/// A limit in one variant of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PathologyLimit"))]
pub struct LimitReport {
    /// The variant; empty if the scenario has none.
    pub variant: String,
    /// The number.
    pub quantity: String,
    /// Its unit; empty for counts and shares.
    pub unit: String,
    /// How it is compared.
    pub against: Against,
    /// The bounds for every controller that has none of its own.
    pub bounds: Bounds,
    /// The controllers whose runs were made.
    pub verdicts: Vec<Verdict>,
}

/// A case.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PathologyCase"))]
pub struct CaseReport {
    /// Its name.
    pub case: String,
    /// Title of its scenario.
    pub title: String,
    /// Runs made.
    pub runs: usize,
    /// Its limits by variant.
    pub limits: Vec<LimitReport>,
}

/// All cases.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Pathologies"))]
pub struct Report {
    /// The controllers, in the order of the columns; cases may add others.
    pub controllers: Vec<String>,
    /// The cases.
    pub cases: Vec<CaseReport>,
    /// Runs that failed: label and reason.
    pub failed: Vec<String>,
    /// Runs not made, since the judge was stopped.
    pub undone: usize,
}

impl CaseReport {
    /// The verdicts, each with its limit.
    pub fn verdicts(&self) -> impl Iterator<Item = (&LimitReport, &Verdict)> {
        self.limits.iter().flat_map(|l| l.verdicts.iter().map(move |v| (l, v)))
    }

    /// Number of verdicts, of those that are kept, and of those by a controller's own bounds; of one controller, or of all.
    pub fn tally(&self, controller: Option<&str>) -> [usize; 3] {
        let of = self.verdicts().map(|(_, v)| v).filter(|v| controller.is_none_or(|c| v.controller == c));
        of.fold([0; 3], |n, v| [n[0] + 1, n[1] + usize::from(v.kept), n[2] + usize::from(v.own.is_some())])
    }
}

impl Report {
    /// Of the cases' places and what was read from their runs; both are in the order of cases, controllers and variants.
    pub(super) fn of(
        cases: &[Case],
        titles: &[String],
        controllers: &[String],
        places: &[Place],
        read: &[Option<Readings>],
        failed: Vec<String>,
    ) -> Self {
        let made = read.iter().flatten().count();
        let undone = places.len().saturating_sub(made + failed.len());
        let each = |(at, case): (usize, &Case)| {
            let runs: Vec<Run<'_>> = places
                .iter()
                .zip(read)
                .filter(|(p, _)| p.case == at)
                .filter_map(|(p, r)| Some(Run { controller: &p.controller, variant: p.variant(), read: r.as_ref()? }))
                .collect();
            let mut variants: Vec<&str> = Vec::new();
            places.iter().filter(|p| p.case == at).for_each(|p| {
                if !variants.contains(&p.variant()) {
                    variants.push(p.variant());
                }
            });
            let limits = variants.iter().flat_map(|v| {
                let runs = &runs;
                case.limits.iter().enumerate().filter_map(move |(n, limit)| limit_in(v, n, limit, runs))
            });
            CaseReport {
                case: case.name.into(),
                title: titles.get(at).cloned().unwrap_or_default(),
                limits: limits.collect(),
                runs: runs.len(),
            }
        };
        Self { controllers: controllers.to_vec(), cases: cases.iter().enumerate().map(each).collect(), failed, undone }
    }

    /// All controllers with a verdict, those of the columns first.
    pub fn judged(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.controllers.iter().map(String::as_str).collect();
        for (_, v) in self.cases.iter().flat_map(CaseReport::verdicts) {
            if !all.contains(&v.controller.as_str()) {
                all.push(&v.controller);
            }
        }
        all
    }

    /// Runs made.
    pub fn runs(&self) -> usize {
        self.cases.iter().map(|c| c.runs).sum()
    }

    /// Number of verdicts, of those that are kept, and of those by a controller's own bounds; of one controller, or of all.
    pub fn tally(&self, controller: Option<&str>) -> [usize; 3] {
        let each = self.cases.iter().map(|c| c.tally(controller));
        each.fold([0; 3], |n, m| [n[0] + m[0], n[1] + m[1], n[2] + m[2]])
    }

    /// The verdicts that are not kept, with their case and limit.
    pub fn broken(&self) -> impl Iterator<Item = (&CaseReport, &LimitReport, &Verdict)> {
        let all = self.cases.iter().flat_map(|c| c.verdicts().map(move |(l, v)| (c, l, v)));
        all.filter(|(_, _, v)| !v.kept)
    }
}

/// Numbers read from a run.
struct Run<'a> {
    controller: &'a str,
    variant: &'a str,
    read: &'a Readings,
}

impl Place {
    fn variant(&self) -> &str {
        self.scenario.variant.as_deref().unwrap_or_default()
    }
}

/// A case's limit number `n` in a variant, if it applies there.
fn limit_in(variant: &str, n: usize, limit: &Limit, runs: &[Run<'_>]) -> Option<LimitReport> {
    let beside = limit.against != Against::Itself;
    let applies = limit.variants.is_empty() || limit.variants.contains(&variant);
    if !applies || (beside && variant == UNDISTURBED) {
        return None;
    }
    let of = |run: &Run<'_>| run.read.get(n).copied().flatten();
    let verdicts = runs.iter().filter(|r| r.variant == variant).filter_map(|run| {
        let is_undisturbed = |r: &&Run<'_>| r.controller == run.controller && r.variant == UNDISTURBED;
        // Without that run there is nothing to compare with; it failed, or was not made.
        let undisturbed = if beside { of(runs.iter().find(is_undisturbed)?) } else { None };
        Some(verdict(run.controller, limit, of(run), undisturbed))
    });
    Some(LimitReport {
        variant: variant.into(),
        quantity: limit.quantity.label(),
        unit: limit.quantity.unit().into(),
        against: limit.against,
        bounds: limit.bounds,
        verdicts: verdicts.collect(),
    })
}

fn verdict(controller: &str, limit: &Limit, value: Option<f64>, undisturbed: Option<f64>) -> Verdict {
    let compared = match limit.against {
        Against::Itself => value,
        Against::Share => value.zip(undisturbed).map(|(v, u)| v / u),
        Against::More => value.zip(undisturbed).map(|(v, u)| v - u),
    };
    let compared = compared.filter(|c| c.is_finite());
    let own = limit.exception(controller);
    let bounds = own.map_or(limit.bounds, |e| e.bounds);
    Verdict {
        controller: controller.into(),
        value,
        undisturbed,
        compared,
        own: own.map(|e| e.bounds),
        reason: own.map(|e| e.reason.into()),
        kept: compared.is_some_and(|c| bounds.contain(c)),
    }
}
