//! Files that Weir itself writes about a run or a call: series (`weir run --series`), reports (`--json`) and pages of calls with browsers.
//!
//! All are numbers over time, or totals, of flows, links and ends: they are kept in [`Recording::series`] by their names in the file.
//! Packets are in none of them (`weir run --pcap`, and the capture that a call's page saves, have those). Times count from the begin
//! of the run or the call.

pub(crate) mod page;
pub(crate) mod result;
pub(crate) mod series;

use crate::recording::Recording;
use crate::schema::{Estimate, EstimateKind};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Types of the objects in [`Recording::series`].
pub(crate) const FLOW: &str = "flow";
pub(crate) const LINK: &str = "link";
/// The longest run: 30 years.
const MOST_SECONDS: f64 = 1e9;

/// A time in s; `None`: it is none that a run has.
fn time(seconds: f64) -> Option<Timestamp> {
    (0.0..MOST_SECONDS).contains(&seconds).then(|| Timestamp::ZERO + TimeDelta::from_secs_f64(seconds))
}

/// Numbers of one object over time.
type Points<'a> = &'a [(Timestamp, f64)];

/// Quantities of [`crate::why::curves`]: name, points at the ends of the times that they are means of, and what one is multiplied by.
pub(crate) fn over_time(of: &Recording) -> Vec<(&'static str, Points<'_>, f64)> {
    let columns: &[Drawn] = match of.format {
        crate::Format::WeirSeries => &series::DRAWN,
        crate::Format::WeirPage => &page::DRAWN,
        _ => return Vec::new(),
    };
    let Some(id) = shown(of) else { return Vec::new() };
    let points = |d: &Drawn| of.series.iter().find(|((k, i, n), _)| k == d.kind && i == id && n == d.name);
    columns.iter().filter_map(|d| Some((d.quantity, points(d)?.1.points.as_slice(), d.unit))).collect()
}

/// Where a quantity comes from.
pub(crate) struct Drawn {
    quantity: &'static str,
    kind: &'static str,
    name: &'static str,
    unit: f64,
}

/// The flow or the call whose numbers are shown over time: the first by its name that has a target, else the first.
fn shown(of: &Recording) -> Option<&str> {
    let (kind, target) = match of.format {
        crate::Format::WeirPage => (page::CALL, page::TARGET),
        _ => (FLOW, series::TARGET),
    };
    let all = || of.series.iter().filter(|((k, _, _), s)| k == kind && !s.points.is_empty());
    let with_target = all().find(|((_, _, name), _)| name == target);
    with_target.or_else(|| all().next()).map(|((_, id, _), _)| id.as_str())
}

/// Adds the targets of what is shown where they change; a target stands at the end of its row.
fn add_targets(out: &mut Recording, (kind, name): (&str, &str), unit: f64) {
    let Some(id) = shown(out).map(str::to_owned) else { return };
    let points = out.series.get(&(kind.to_owned(), id, name.to_owned())).map(|s| s.points.clone()).unwrap_or_default();
    let mut last = f64::NAN;
    for (at, target) in points {
        if target != last && out.room(1) {
            last = target;
            let rate = DataRate::from_bps((target * unit).max(0.0) as u64);
            out.estimates.push(Estimate { at, kind: EstimateKind::Target, rate, loss: None, detector: None });
        }
    }
}
