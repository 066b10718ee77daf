//! A paper's numbers and claims beside the measured ones, as text and as the Markdown of docs/papers.md.

mod ends;

use crate::tables::{fold, table};
use std::fmt::Write as _;
use weir_judge::paper::{Agreement, Cell, Claim, LostOrder, OpenCondition, Reproduction, Verdict};

pub(crate) use ends::ends;

const LEGEND: &str = "measured: mean over the runs; 95 %: half-width of its confidence interval; difference: measured less \
                      published. Near: within 1.5 dB; percentages up to 0.5 within 0.1 points; times of whole seconds within 20 % or \
                      0.5 s; anything else within 20 %; bounds, if they hold. An order is a pair of algorithms that a number \
                      distinguishes by more than 2 %; it is open if it is not kept and the two intervals overlap. An end is one of an \
                      open condition.";

/// Tables for a terminal.
pub(crate) fn text(r: &Reproduction) -> String {
    let mut out = format!("{}: published beside measured\n", r.paper);
    for (number, title) in tables(r) {
        let header =
            ["algorithm", "condition", "metric", "published", "measured", "95 %", "difference", "runs", "verdict"];
        let mut t = table(&header, 3).keys(3).last_is_text().spares(&["runs", "difference", "95 %"]);
        for c in r.cells.iter().filter(|c| c.table == number) {
            let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.2}"));
            t.add_row([
                c.algorithm.clone(),
                c.condition.clone(),
                format!("{} ({})", c.metric, c.unit),
                show(Some(c.published)),
                show(c.measured),
                c.measured_ci95.map_or("-".to_owned(), |v| format!("±{v:.2}")),
                c.measured.map_or("-".to_owned(), |m| format!("{:+.2}", m - c.published)),
                c.runs.to_string(),
                verdict(c.verdict).into(),
            ]);
        }
        out.push_str(&format!("\n{}\n{t}\n", fold(&format!("Table {number}: {title}"))));
    }
    out.push_str(&fold(&format!("\n{LEGEND}\n")));
    for e in r.explanations.iter().filter(|e| !e.cells.is_empty()) {
        let header = ["algorithm", "condition", "metric", "published", "measured", "one end", "other end", "explained"];
        let mut t = table(&header, 3).keys(3).last_is_text().spares(&["measured"]);
        e.cells.iter().for_each(|c| t.add_row(ends_row(c)));
        let heading = format!("{}. One end: {}; the other: {}.", e.condition, e.ends[0], e.ends[1]);
        out.push_str(&format!("\n{}\n{t}\n", fold(&heading)));
    }
    out.push('\n');
    for (what, count, of, goal) in score(&r.agreement) {
        let _ = writeln!(out, "{what}: {}", counted(count, of, goal));
    }
    if !r.lost_orders.is_empty() {
        let _ = writeln!(out, "\nOrders not kept: {}", other_orders(&r.agreement));
        let header = ["algorithms", "condition", "metric", "published", "measured", "kept"];
        let mut t = table(&header, 3).keys(3).last_is_text();
        r.lost_orders.iter().for_each(|o| t.add_row(order_row(o)));
        let _ = writeln!(out, "{t}");
    }
    if !r.claims.is_empty() {
        let mut t = table(&["holds", "claim", "source"], 3);
        r.claims.iter().for_each(|c| t.add_row([&outcome(c), &c.statement, &c.source]));
        let _ = write!(out, "\nThe paper's claims: {}\n{t}\n", claims_held(&r.claims));
    }
    out
}

/// A section of docs/papers.md; `command` made it in `seconds`.
pub(crate) fn markdown(r: &Reproduction, command: &str, seconds: Option<f64>) -> String {
    let time = seconds.map_or_else(String::new, |s| format!(" in {s:.0} s"));
    let mut out = format!("Made by `{command}`{time}.\n\n| score | reached |\n|---|---|\n");
    for (what, count, of, goal) in score(&r.agreement) {
        let _ = writeln!(out, "| {what} | {} |", counted(count, of, goal));
    }
    if r.agreement.orders > 0 {
        let _ = writeln!(out, "| other orders | {} |", other_orders(&r.agreement));
    }
    let _ = writeln!(out, "| claims that hold | {} |\n", claims_held(&r.claims));
    out.push_str(
        "| table | condition | algorithm | number | published | measured | verdict |\n|---|---|---|---|---|---|---|\n",
    );
    for c in &r.cells {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {}, {} | {} | {} | {} |",
            c.table,
            format!("{} {}", c.scenario, c.condition).trim_end(),
            c.algorithm,
            c.metric.replace('_', " "),
            c.unit,
            plain(c.published),
            c.measured.map_or("-".into(), |m| with_interval(m, c.measured_ci95)),
            verdict(c.verdict)
        );
    }
    if !r.ends.is_empty() {
        let _ = write!(out, "\n{}", ends(r, true));
    }
    for e in r.explanations.iter().filter(|e| !e.cells.is_empty()) {
        explanation(&mut out, e);
    }
    if !r.lost_orders.is_empty() {
        out.push_str(
            "\nOrders that are not kept.\n\n| table | condition | number | algorithms | published | measured | kept |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for o in &r.lost_orders {
            let [algorithms, condition, metric, published, measured, kept] = order_row(o);
            let cells = [&o.table, &condition, &metric, &algorithms, &published, &measured, &kept];
            let _ = writeln!(out, "| {} |", cells.map(String::as_str).join(" | "));
        }
    }
    if !r.claims.is_empty() {
        out.push_str("\n| claim | source | holds |\n|---|---|---|\n");
        for c in &r.claims {
            let _ = writeln!(out, "| {} | {} | {} |", c.statement, c.source, outcome(c));
        }
    }
    out
}

/// The numbers of all papers together.
pub(crate) fn agreement_of_all(papers: &[Reproduction]) -> Agreement {
    papers.iter().fold(Agreement::default(), |sum, r| sum.plus(r.agreement))
}

const SUMMARY: [&str; 9] =
    ["paper", "measured", "near", "near or explained", "orders kept", "open, at an end", "claims", "at an end", "time"];

/// The scores of papers for a terminal, one line each, and the goals.
pub(crate) fn summary_text(papers: &[Reproduction], seconds: &[Option<f64>]) -> String {
    let mut t = table(&SUMMARY, 1).spares(&["time", "measured"]);
    summary(papers, seconds).into_iter().for_each(|row| t.add_row(row));
    format!("{t}\n{}", fold(&format!("\n{LEGEND}\n")))
}

/// The same in Markdown; `command` made it.
pub(crate) fn summary_markdown(papers: &[Reproduction], seconds: &[Option<f64>], command: &str) -> String {
    let total: Option<f64> = seconds.iter().copied().sum();
    let time = total.map_or_else(String::new, |s| format!(" in {s:.0} s"));
    let mut out =
        format!("Made by `{command}`{time}.\n\n| {} |\n|{}\n", SUMMARY.join(" | "), "---|".repeat(SUMMARY.len()));
    for row in summary(papers, seconds) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

/// A row for each paper, one for all, and one with the goals.
fn summary(papers: &[Reproduction], seconds: &[Option<f64>]) -> Vec<[String; 9]> {
    let time = |s: Option<f64>| s.map_or("-".into(), |s| format!("{s:.0} s"));
    let row = |name: &str, a: &Agreement, claims: &[&Claim], seconds: Option<f64>| -> [String; 9] {
        let [measured, near, explained, orders] = score(a).map(|(_, count, of, _)| share(count, of));
        let others = format!("{}, {}", a.orders_open, a.orders_explained);
        let held = share(claims.iter().filter(|c| c.holds == Some(true)).count(), claims.len());
        let at_ends = claims.iter().filter(|c| c.holds_at.is_some()).count().to_string();
        [name.into(), measured, near, explained, orders, others, held, at_ends, time(seconds)]
    };
    let of = |r: &Reproduction, seconds| row(&r.paper, &r.agreement, &r.claims.iter().collect::<Vec<_>>(), seconds);
    let mut rows: Vec<_> = papers.iter().zip(seconds).map(|(r, seconds)| of(r, *seconds)).collect();
    let claims: Vec<&Claim> = papers.iter().flat_map(|r| &r.claims).collect();
    let all = agreement_of_all(papers);
    rows.push(row("all", &all, &claims, seconds.iter().copied().sum()));
    let goals = score(&all).map(|(_, _, _, goal)| format!("{:.0} %", goal * 100.0));
    let [measured, near, explained, orders] = goals;
    let none = || "-".to_owned();
    rows.push(["goal".into(), measured, near, explained, orders, none(), none(), none(), none()]);
    rows
}

fn share(count: usize, of: usize) -> String {
    if of == 0 {
        return "none".into();
    }
    format!("{count} of {of}, {:.0} %", 100.0 * count as f64 / of as f64)
}

fn explanation(out: &mut String, e: &OpenCondition) {
    let [one, other] = &e.ends;
    let _ = write!(
        out,
        "\n{}.\n\n| table | condition | algorithm | number | published | measured | {one} | {other} | explained |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        e.condition
    );
    for c in &e.cells {
        let end = |i: usize| c.at_ends[i].map_or("-".into(), |v| with_interval(v, c.at_ends_ci95[i]));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {}, {} | {} | {} | {} | {} | {} |",
            c.table,
            c.condition,
            c.algorithm,
            c.metric.replace('_', " "),
            c.unit,
            plain(c.published),
            plain(c.measured),
            end(0),
            end(1),
            yes(c.explained)
        );
    }
}

fn ends_row(c: &weir_judge::paper::ExplainedCell) -> [String; 8] {
    let end = |i: usize| c.at_ends[i].map_or("-".into(), |v| with_interval(v, c.at_ends_ci95[i]));
    [
        c.algorithm.clone(),
        c.condition.clone(),
        format!("{} ({})", c.metric, c.unit),
        plain(c.published),
        plain(c.measured),
        end(0),
        end(1),
        yes(c.explained).into(),
    ]
}

/// Tables with numbers, in their order, and their titles.
fn tables(r: &Reproduction) -> Vec<(&str, &str)> {
    let mut numbers: Vec<&str> = r.cells.iter().map(|c: &Cell| c.table.as_str()).collect();
    numbers.dedup();
    let title = |n: &str| r.tables.iter().find(|t| t.table == n).map_or("", |t| t.title.as_str());
    numbers.into_iter().map(|n| (n, title(n))).collect()
}

/// Each count with its name, its whole, and the goal as a share.
fn score(a: &Agreement) -> [(&'static str, usize, usize, f64); 4] {
    [
        ("measured", a.measured, a.cells, 1.0),
        ("near", a.near, a.measured, Agreement::NEAR_GOAL),
        ("near or explained", a.near + a.explained, a.measured, Agreement::EXPLAINED_GOAL),
        ("orders kept", a.orders_kept, a.orders, Agreement::ORDERS_GOAL),
    ]
}

fn counted(count: usize, of: usize, goal: f64) -> String {
    if of == 0 {
        return "none".into();
    }
    format!("{} (goal {:.0} %)", share(count, of), goal * 100.0)
}

fn claims_held(claims: &[Claim]) -> String {
    let held = claims.iter().filter(|c| c.holds == Some(true)).count();
    let at_ends = claims.iter().filter(|c| c.holds_at.is_some()).count();
    let others = if at_ends > 0 { format!(", {at_ends} more at an end") } else { String::new() };
    format!("{held} of {}{others}", claims.len())
}

fn outcome(c: &Claim) -> String {
    let at = || c.holds_at.as_ref().map_or_else(String::new, |[id, end]| format!("; {}", at_end(id, end)));
    match c.holds {
        Some(true) => "yes".into(),
        Some(false) => format!("NO{}", at()),
        None => "not measured".into(),
    }
}

fn at_end(id: &str, end: &str) -> String {
    format!("yes at `{id}`: {end}")
}

/// Orders that are not kept, by how far the runs and the open conditions decide them.
fn other_orders(a: &Agreement) -> String {
    let left = a.orders - a.orders_kept - a.orders_open - a.orders_explained;
    format!("{} open, {} kept at an end, {left} reversed", a.orders_open, a.orders_explained)
}

fn order_row(o: &LostOrder) -> [String; 6] {
    let at = || o.kept_at.as_ref().map_or_else(|| "NO".to_owned(), |[id, end]| at_end(id, end));
    let measured = [0, 1].map(|i| with_interval(o.measured[i], o.measured_ci95[i]));
    [
        o.algorithms.join(", "),
        o.condition.clone(),
        format!("{}, {}", o.metric.replace('_', " "), o.unit),
        o.published.map(plain).join(", "),
        measured.join(", "),
        if o.open { "open".into() } else { at() },
    ]
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

fn verdict(v: Option<Verdict>) -> &'static str {
    v.map_or("-", Verdict::word)
}

fn with_interval(value: f64, ci95: Option<f64>) -> String {
    ci95.map_or_else(|| plain(value), |ci| format!("{} ±{}", plain(value), plain(ci)))
}

/// Two decimals where they matter.
fn plain(v: f64) -> String {
    if v.abs() >= 1_000.0 { format!("{v:.0}") } else { format!("{v:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_stands_beside_its_goal() {
        let a = Agreement { cells: 12, measured: 10, near: 6, explained: 2, ..Agreement::default() };
        let lines: Vec<String> = score(&a).map(|(what, n, of, goal)| format!("{what} {}", counted(n, of, goal))).into();
        assert_eq!(lines[1], "near 6 of 10, 60 % (goal 70 %)");
        assert_eq!(lines[2], "near or explained 8 of 10, 80 % (goal 95 %)");
        assert_eq!(
            (lines[0].as_str(), lines[3].as_str()),
            ("measured 10 of 12, 83 % (goal 100 %)", "orders kept none")
        );
    }

    #[test]
    fn every_number_has_its_verdict_in_both_forms() {
        let cell = Cell {
            paper: "p".into(),
            table: "1".into(),
            scenario: "s".into(),
            condition: "c".into(),
            algorithm: "gcc".into(),
            metric: "loss_rate".into(),
            unit: "percent".into(),
            published: 4.27,
            published_sigma: None,
            measured: Some(1.25),
            measured_sigma: Some(0.5),
            measured_ci95: Some(0.75),
            runs: 3,
            verdict: Some(Verdict::Explained),
        };
        let far = Cell { verdict: Some(Verdict::Far), algorithm: "nada".into(), ..cell.clone() };
        let r = Reproduction { paper: "p".into(), cells: vec![cell, far], ..Reproduction::default() };
        let page = markdown(&r, "weir judge paper p --markdown", Some(61.2));
        assert!(page.starts_with("Made by `weir judge paper p --markdown` in 61 s.\n"), "{page}");
        assert!(
            page.contains("| 1 | s c | gcc | loss rate, percent | 4.27 | 1.25 ±0.75 | near, explained |"),
            "{page}"
        );
        let text = text(&r);
        assert!(text.contains("near, explained") && text.contains("far"), "{text}");
    }

    #[test]
    fn orders_and_claims_that_are_lost_name_the_end_that_keeps_them() {
        let end = || Some(["queue".to_owned(), "10 packets".to_owned()]);
        let order = LostOrder {
            table: "1".into(),
            scenario: "s".into(),
            condition: "c".into(),
            metric: "loss_rate".into(),
            unit: "percent".into(),
            algorithms: ["gcc".into(), "nada".into()],
            published: [4.27, 1.5],
            measured: [1.25, 2.5],
            measured_ci95: [Some(0.75), None],
            open: false,
            kept_at: end(),
        };
        let claim = Claim {
            paper: "p".into(),
            id: "x".into(),
            statement: "gcc loses most".into(),
            source: "table 1".into(),
            criterion: String::new(),
            holds: Some(false),
            holds_at: end(),
            measured: vec![],
        };
        let open = LostOrder { open: true, ..order.clone() };
        let agreement =
            Agreement { orders: 4, orders_kept: 1, orders_open: 1, orders_explained: 1, ..Agreement::default() };
        let r =
            Reproduction { agreement, lost_orders: vec![order, open], claims: vec![claim], ..Reproduction::default() };
        let page = markdown(&r, "weir", None);
        for line in [
            "| other orders | 1 open, 1 kept at an end, 1 reversed |",
            "| claims that hold | 0 of 1, 1 more at an end |",
            "| 1 | c | loss rate, percent | gcc, nada | 4.27, 1.50 | 1.25 ±0.75, 2.50 | yes at `queue`: 10 packets |",
            "| 1 | c | loss rate, percent | gcc, nada | 4.27, 1.50 | 1.25 ±0.75, 2.50 | open |",
            "| gcc loses most | table 1 | NO; yes at `queue`: 10 packets |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(text(&r).contains("1 open, 1 kept at an end, 1 reversed"));
    }

    #[test]
    fn the_scores_of_papers_stand_above_their_sum_and_the_goals() {
        let of = |near, seconds| {
            let agreement = Agreement {
                cells: 10,
                measured: 10,
                near,
                explained: 1,
                orders: 4,
                orders_kept: 3,
                ..Agreement::default()
            };
            (Reproduction { paper: "p".into(), agreement, ..Reproduction::default() }, seconds)
        };
        let (papers, seconds): (Vec<_>, Vec<_>) = [of(7, Some(60.4)), of(4, Some(61.0))].into_iter().unzip();
        let page = summary_markdown(&papers, &seconds, "weir judge paper --all --markdown");
        assert!(page.starts_with("Made by `weir judge paper --all --markdown` in 121 s.\n"), "{page}");
        assert!(
            page.contains(
                "| p | 10 of 10, 100 % | 7 of 10, 70 % | 8 of 10, 80 % | 3 of 4, 75 % | 0, 0 | none | 0 | 60 s |"
            ),
            "{page}"
        );
        assert!(
            page.contains(
                "| all | 20 of 20, 100 % | 11 of 20, 55 % | 13 of 20, 65 % | 6 of 8, 75 % | 0, 0 | none | 0 | 121 s |"
            ),
            "{page}"
        );
        assert!(page.ends_with("| goal | 100 % | 70 % | 95 % | 90 % | - | - | - | - |\n"), "{page}");
        // Runs that were kept have no time.
        let text = summary_text(&papers, &[None, Some(1.0)]);
        assert!(text.contains("13 of 20, 65 %") && text.contains("90 %"), "{text}");
    }
}
