//! Predictions of `weir whatif` as text.

use crate::tables::{fold, table};
use std::fmt::Write as _;
use weir_fit::{Changes, Check, DECIDED, Estimate, Fit, Judged, WhatIf};

/// An estimate with its interval.
pub(super) fn number(e: &Estimate, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$} to {:.digits$})", e.likely, e.low, e.high)
}

/// The changes in words; `None` where there are none.
pub(super) fn set(changes: &Changes) -> Option<String> {
    let all: Vec<String> = changes.given().iter().map(|(key, value)| format!("{key} {value}")).collect();
    (!all.is_empty()).then(|| format!("Set: {}.", all.join("; ")))
}

/// Repair in words.
pub(super) fn repair(changes: &Changes) -> String {
    match changes.repair() {
        Some(by) => format!("Repair by {by}, whatever the call did."),
        None => "No lost packet is sent again and none is protected, whatever the call did.".into(),
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(&fold(text));
    out.push('\n');
}

pub(super) fn text(f: &Fit, changes: &Changes, answer: &WhatIf, check: Option<&Check>, is_limit_known: bool) -> String {
    let mut t = table(&["controller", "goodput kbit/s", "delay p95 ms", "late or lost %", "frozen s"], 1);
    for p in &answer.controllers {
        t.add_row([
            p.controller.clone(),
            number(&p.goodput_kbps, 0),
            number(&p.delay_p95_ms, 0),
            number(&p.late_percent, 1),
            number(&p.frozen_s, 1),
        ]);
    }
    let m = &f.measured;
    let mut out = fold(&format!(
        "Recorded: {:.0} kbit/s, delay p95 {:.0} ms. Over the likeliest link, and in brackets from the 5th to the 95th percentile of {} \
         links drawn within the bounds:",
        m.received_kbps, m.delay_p95_ms, answer.draws
    ));
    let _ = writeln!(out, "\n{t}");
    if let Some(set) = set(changes) {
        line(&mut out, &set);
    }
    checked(&mut out, check, is_limit_known);
    let deadline = changes.given().get("deadline").map_or("400 ms", String::as_str);
    line(&mut out, &format!("Frames are late {deadline} after their capture. {}", repair(changes)));
    for (by, words) in [(Judged::Late, "Fewer frames late or lost"), (Judged::Goodput, "More goodput")] {
        let of = || answer.orders.iter().filter(|o| o.by == by);
        let decided: Vec<String> =
            of().filter(|o| o.share >= DECIDED).map(|o| format!("{} than {}", o.better, o.worse)).collect();
        let open: Vec<String> =
            of().filter(|o| o.share < DECIDED).map(|o| format!("{} and {}", o.better, o.worse)).collect();
        if !decided.is_empty() {
            line(&mut out, &format!("{words}: {}.", decided.join(", ")));
        }
        if !open.is_empty() {
            line(&mut out, &format!("{words}, not decided: {}.", open.join(", ")));
        }
    }
    for gap in &f.unknown {
        line(&mut out, &format!("Not known: {gap}."));
    }
    out
}

/// The recorded controller over its links beside the recording. Where the application's limit is not known, it can be the reason.
fn checked(out: &mut String, check: Option<&Check>, is_limit_known: bool) {
    let Some(check) = check else {
        let text =
            "Whether the fit explains the call is not checked: --controller NAME says which controller was recorded.";
        return line(out, text);
    };
    let mut t = table(&[check.controller.as_str(), "kbit/s", "delay p95 ms"], 1);
    let recorded = &check.recorded;
    t.add_row([
        "recorded".to_owned(),
        format!("{:.0}", recorded.received_kbps),
        format!("{:.0}", recorded.delay_p95_ms),
    ]);
    t.add_row(["over its links".to_owned(), number(&check.received_kbps, 0), number(&check.delay_p95_ms, 0)]);
    let _ = writeln!(out, "{t}");
    line(out, &check.words());
    if !check.explained && !is_limit_known {
        line(
            out,
            "The limit is taken from what was sent: --ceiling states the application's limit where it was higher.",
        );
    }
}
