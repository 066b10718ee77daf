//! `weir fit` and `weir whatif`.

mod answer;
mod page;

use crate::Done;
use crate::args::{FitArgs, FittedArgs, WhatIfArgs};
use crate::open::{damages, whole};
use crate::output::{Failure, check_apart, check_file, check_folder, print, print_report, remark};
use crate::reading::heeding;
use crate::session::{Session, threads};
use crate::tables::{fold, pairs, table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weir_cc::Registry;
use weir_fit::{
    ChangeError, Changes, Check, Discipline, Evidence, Fit, Residual, TRACE, WhatIf, WhatIfError, changed_whatif,
    residual, whatif as unchanged_whatif,
};
use weir_lab::run::RunError;
use weir_lab::scenario::{InputError, suggest};
use weir_report::atomic_write::write_atomically;

/// Output of `weir fit --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FitJson {
    fit: Fit,
    /// The recorded controller on the fitted link; with `--controller`.
    residual: Option<Residual>,
}

/// Output of `weir whatif --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhatIfJson {
    fit: Fit,
    /// Changes by `--set`, as they were given.
    set: BTreeMap<String, String>,
    whatif: WhatIf,
    /// The recorded controller over links without changes, beside the recording; with `--controller`.
    check: Option<Check>,
}

/// Reads a call and fits its link; also where its recordings are damaged.
fn fitted(session: &Session, args: &FittedArgs) -> Result<(Fit, Vec<String>), Failure> {
    let call = crate::open::call(session, &args.files)?;
    let damages = damages(&call);
    let name = args.files.first().map_or_else(String::new, |f| f.display().to_string());
    let mut found = heeding(&session.stop, &name, move || weir_fit::fit(&call))?
        .map_err(|e| InputError::whole(&name, e.to_string()).help("weir open shows what a recording has"))?;
    if let Some(ceiling) = args.ceiling {
        found.source.ceiling_bps = ceiling.as_bps_f64();
    }
    Ok((found, damages))
}

fn failure(e: WhatIfError) -> Failure {
    match e {
        WhatIfError::Input(e) => e.into(),
        WhatIfError::Run(e) if matches!(*e, RunError::Stopped { .. }) => Failure::Interrupted,
        e => Failure::work(e),
    }
}

/// Errors: the page cannot be written, or is one of the recordings.
fn check_page(file: &Path, call: &FittedArgs) -> Done {
    check_file("--report", file)?;
    check_apart("--report", file, call.files.iter().map(PathBuf::as_path))
}

pub(crate) fn fit(session: &Session, args: &FitArgs) -> Done {
    args.out.as_ref().map_or(Ok(()), |folder| check_folder("--out", folder))?;
    args.report.as_ref().map_or(Ok(()), |file| check_page(file, &args.call))?;
    if let Some(name) = &args.controller {
        suggest::find(&session.registry, "--controller", name)?;
    }
    let (found, damages) = fitted(session, &args.call)?;
    let run = |name: &String| {
        session.with_progress(args.call.quiet, true, |options, _| residual(&found, name, options).map_err(failure))
    };
    let residual = args.controller.as_ref().map(run).transpose()?;
    if let Some(folder) = &args.out {
        save(&found, &Changes::default(), folder, &["$controller".into()], args.call.quiet)?;
    }
    if let Some(path) = &args.report {
        page::write(path, &found, residual.as_ref())?;
        if !args.call.quiet {
            remark(&format!("report: {}", path.display()));
        }
    }
    if args.call.json {
        print_report("fit", &FitJson { fit: found, residual })?;
        return whole(&damages, args.call.quiet);
    }
    let mut out = text(&found, args.call.ceiling.is_some());
    if let Some(r) = &residual {
        out.push('\n');
        out.push_str(&beside(&found, r));
    }
    print(&out)?;
    whole(&damages, args.call.quiet)
}

/// Controllers of a command line, each once.
pub(crate) fn controllers(registry: &Registry, names: &[String]) -> Result<Vec<String>, InputError> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        suggest::find(registry, "--controllers", name)?;
        // Naming a controller twice is no wish to see it beside itself.
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    Ok(all)
}

/// Changes of a command line.
pub(crate) fn changes(given: &[(String, String)]) -> Result<Changes, InputError> {
    Changes::new(given.iter().map(|(key, value)| (key, value))).map_err(wrong_change)
}

fn wrong_change(e: ChangeError) -> InputError {
    InputError::whole("--set", e.message).help(e.help)
}

pub(crate) fn whatif(session: &Session, args: &WhatIfArgs) -> Done {
    args.save.as_ref().map_or(Ok(()), |folder| check_folder("--save", folder))?;
    args.report.as_ref().map_or(Ok(()), |file| check_page(file, &args.call))?;
    let controllers = controllers(&session.registry, &args.controllers)?;
    if let Some(name) = &args.controller {
        suggest::find(&session.registry, "--controller", name)?;
    }
    let changes = changes(&args.set)?;
    let (found, damages) = fitted(session, &args.call)?;
    let is_limit_known = args.call.ceiling.is_some() || found.source.ceiling_is_logged;
    changes.check(found.source.ceiling_bps).map_err(wrong_change)?;
    let (answer, check) = session.with_progress(args.call.quiet, false, |options, progress| {
        progress.set_message(format!("{} links, {} controllers", args.draws + 1, controllers.len()));
        let threads = threads(args.jobs);
        let answer = changed_whatif(&found, &changes, &controllers, args.draws, threads, options).map_err(failure)?;
        let Some(name) = &args.controller else { return Ok((answer, None)) };
        // Changes are none of the recorded call.
        let at = controllers.iter().position(|c| c == name).filter(|_| changes.is_empty());
        let over = match at {
            Some(at) => answer.controllers[at].clone(),
            None => {
                progress.set_message(format!("{name}, which was recorded"));
                let alone = unchanged_whatif(&found, std::slice::from_ref(name), args.draws, threads, options);
                alone.map_err(failure)?.controllers.remove(0)
            }
        };
        Ok::<_, Failure>((answer, Some(Check::of(&over, found.measured))))
    })?;
    if let Some(folder) = &args.save {
        save(&found, &changes, folder, &controllers, args.call.quiet)?;
    }
    if let Some(path) = &args.report {
        page::write_whatif(path, &found, &changes, &answer, check.as_ref())?;
        if !args.call.quiet {
            remark(&format!("report: {}", path.display()));
        }
    }
    if args.call.json {
        let set = changes.given().iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        print_report("whatif", &WhatIfJson { fit: found, set, whatif: answer, check })?;
        return whole(&damages, args.call.quiet);
    }
    print(&answer::text(&found, &changes, &answer, check.as_ref(), is_limit_known))?;
    whole(&damages, args.call.quiet)
}

/// Writes the likeliest link as a scenario.
fn save(found: &Fit, changes: &Changes, folder: &Path, compare: &[String], quiet: bool) -> Done {
    let names: Vec<String> = compare.iter().filter(|c| *c != "$controller").cloned().collect();
    let names = if names.is_empty() { ["gcc", "nada", "scream2", "sluice"].map(str::to_owned).to_vec() } else { names };
    let scenario = found.changed_scenario("A fitted link", &names, None, changes);
    let failed = |path: &Path, e: std::io::Error| Failure::Work(format!("cannot write {}: {e}", path.display()));
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    for (name, text) in [(TRACE, &scenario.trace), ("scenario.toml", &scenario.text)] {
        let path = folder.join(name);
        write_atomically(&path, |out| out.write_all(text.as_bytes())).map_err(|e| failed(&path, e))?;
    }
    if !quiet {
        remark(&format!("scenario: {}", folder.join("scenario.toml").display()));
    }
    Ok(())
}

/// Least, median and greatest.
fn spread(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    Some([*all.first()?, all[all.len() / 2], *all.last()?])
}

fn text(f: &Fit, is_ceiling_given: bool) -> String {
    let mut rows: Vec<(&str, String)> = vec![("length", format!("{:.1} s", f.length_s))];
    if f.evidence == Evidence::Statistics {
        rows.push(("evidence", "statistics once a second: a coarse link with wide bounds".into()));
    }
    rows.push(("round trip", f.rtt_ms.map_or("not known".into(), |r| format!("{r:.1} ms without a queue"))));
    rows.extend(
        f.base.iter().skip(1).map(|b| ("longer path", format!("{:+.1} ms from {:.1} s on", b.more_ms, b.from_s))),
    );
    rows.extend(
        f.back.iter().skip(1).map(|b| ("longer way back", format!("{:+.1} ms from {:.1} s on", b.more_ms, b.from_s))),
    );
    let known = f.capacity.known_share() * 100.0;
    let capacity = match spread(f.capacity.served_bps.iter().flatten().map(|r| r * 1e-3)) {
        Some([low, middle, high]) => {
            format!("{low:.0} to {high:.0} kbit/s, median {middle:.0}, known in {known:.0} % of the time")
        }
        None => {
            let most = f.capacity.least_bps.iter().copied().fold(0.0, f64::max) * 1e-3;
            format!("at least {most:.0} kbit/s: no packet queued")
        }
    };
    rows.push(("capacity", capacity));
    let q = &f.queue;
    let room =
        q.limit_bytes.map_or_else(|| format!("at least {:.0} bytes", q.at_least_bytes), |l| format!("{l:.0} bytes"));
    let kind = match q.discipline {
        Discipline::DropTail => "drop tail, ",
        Discipline::Managed => "drops before it is full, ",
        Discipline::Unknown => "",
    };
    rows.push(("queue", format!("{kind}{room}, packets waited up to {:.0} ms", q.longest_ms)));
    if let (Some(first), Some(last)) = (f.stalls.first(), f.stalls.last()) {
        let longest = f.stalls.iter().map(|s| s.to_s - s.from_s).fold(0.0, f64::max) * 1e3;
        let (n, from, to) = (f.stalls.len(), first.from_s, last.to_s);
        rows.push(("stalls", format!("{n} of up to {longest:.0} ms, from {from:.1} to {to:.1} s")));
    }
    if let Some(p) = &f.policer {
        rows.push(("policer", format!("{:.0} kbit/s, burst {:.0} bytes", p.rate_bps * 1e-3, p.burst_bytes)));
    }
    let l = &f.loss;
    let in_a_row = if l.by_chance > 0 { format!(" ({:.1} in a row)", l.in_a_row) } else { String::new() };
    let lost = format!(
        "{} packets by chance{in_a_row}, {} by the queue, {} by a policer",
        l.by_chance, l.by_queue, l.by_policer
    );
    rows.push(("lost", lost));
    for o in &l.outages {
        rows.push(("outage", format!("nothing arrived from {:.1} to {:.1} s", o.from_s, o.to_s)));
    }
    for (i, j) in f.jitter.iter().enumerate().filter(|(_, j)| j.max_ms > 0.0) {
        // A step counts until the next one.
        let until = f.jitter.get(i + 1).map_or(" on".to_owned(), |next| format!(" to {:.0} s", next.from_s));
        rows.push(("jitter", format!("up to {:.1} ms from {:.0} s{until}", j.max_ms, j.from_s)));
    }
    if f.reordered > 0.0 {
        rows.push(("reordered", format!("{:.2} % of the packets", f.reordered * 100.0)));
    }
    for c in &f.cross {
        rows.push(("others", format!("{:.0} kbit/s from {:.0} to {:.0} s", c.rate_bps * 1e-3, c.from_s, c.to_s)));
    }
    let s = &f.source;
    let by = if s.ceiling_is_logged || is_ceiling_given { "" } else { ", by what was sent" };
    rows.push(("source", format!("{:.0} pictures a second, at most {:.0} kbit/s{by}", s.fps, s.ceiling_bps * 1e-3)));
    let mut out = pairs(&rows);
    for gap in &f.unknown {
        out.push_str(&fold(&format!("Not known: {gap}.")));
        out.push('\n');
    }
    out
}

fn beside(f: &Fit, r: &Residual) -> String {
    let mut t = table(&[r.controller.as_str(), "kbit/s", "delay p95 ms", "lost %"], 1);
    for (name, m) in [("measured", &f.measured), ("on the fitted link", &r.simulated)] {
        let cells =
            [format!("{:.0}", m.received_kbps), format!("{:.0}", m.delay_p95_ms), format!("{:.2}", m.lost_percent)];
        t.add_row(std::iter::once(name.to_owned()).chain(cells));
    }
    format!("{t}\n")
}
