//! Tables in a document in Markdown, each between two marks, which a measurement replaces.

use crate::report::{Goal, Report, Row, Unit};
use crate::repository::Origin;

/// A table: its name in the marks, and its making.
type Table = (&'static str, fn(&Report) -> String);

/// The tables of docs/performance.md that `weir bench` measures.
const TABLES: &[Table] = &[
    ("simulator", simulator),
    ("sessions", sessions),
    ("calls", calls),
    ("controllers", controllers),
    #[cfg(target_os = "linux")]
    ("loopback", loopback),
];

fn marks(name: &str) -> [String; 2] {
    [format!("<!-- weir bench: {name} -->\n"), format!("<!-- weir bench: end of {name} -->")]
}

/// The document with its tables replaced by those of a report. Each is led by where it was measured. Errors: a table's marks
/// are not there, in words.
pub fn replaced(document: &str, report: &Report, origin: &Origin) -> Result<String, String> {
    let mut text = document.to_owned();
    for (name, make) in TABLES {
        let [begin, end] = marks(name);
        let lacks = |mark: &str| format!("the document has no line `{}`", mark.trim());
        let at = text.find(&begin).ok_or_else(|| lacks(&begin))? + begin.len();
        let until = at + text[at..].find(&end).ok_or_else(|| lacks(&end))?;
        text.replace_range(at..until, &format!("\n{}\n\n{}\n", led(report, origin), make(report)));
    }
    Ok(text)
}

/// The names of tables whose marks, or their order, are missing.
pub fn lacking(document: &str) -> Vec<&'static str> {
    let is_marked = |name: &str| {
        let [begin, end] = marks(name);
        document.find(&begin).is_some_and(|at| document[at..].contains(&end))
    };
    TABLES.iter().map(|t| t.0).filter(|name| !is_marked(name)).collect()
}

/// Line above a table: the origin of its numbers.
fn led(report: &Report, origin: &Origin) -> String {
    let scale = if report.scale == 1.0 { String::new() } else { format!(" --scale {}", report.scale) };
    let build = if report.debug_build { "; a debug build, whose speed says little" } else { "" };
    format!("{origin}{build}. `weir bench --markdown{scale}`, the best of {} after a warm-up.", report.best_of)
}

/// A whole number with its thousands apart.
pub fn grouped(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    rows.into_iter().for_each(|row| out.push_str(&format!("| {} |\n", row.join(" | "))));
    out
}

fn goal(row: &Row) -> String {
    let Some(Goal { value, times_ns3, met }) = &row.goal else { return "-".into() };
    let verdict = match met {
        Some(true) => ": met",
        Some(false) => ": **missed**",
        None => "",
    };
    let what = match row.unit {
        _ if *times_ns3 => " times ns-3",
        Unit::Nanoseconds => " ns",
        Unit::Seconds | Unit::Packets => "",
    };
    format!("{}{what}{verdict}", grouped(*value))
}

/// The rows whose names begin so.
fn named<'a>(report: &'a Report, prefix: &'a str) -> impl Iterator<Item = (&'a Row, &'a str)> {
    report.rows.iter().filter_map(move |r| Some((r, r.name.strip_prefix(prefix)?)))
}

fn simulator(report: &Report) -> String {
    let header = ["scenario", "Weir", "goal", "ns-3, bare", "ns-3 with its flow monitor"];
    let rows = report.rows.iter().filter(|r| crate::simulator::SCENARIOS.iter().any(|s| s.name == r.name)).map(|r| {
        let beside = |of: fn(&crate::ns3::Beside) -> (f64, f64)| {
            let number = |(speed, times): (f64, f64)| format!("{} ({times:.0} times)", grouped(speed));
            r.ns3.as_ref().map_or("not measured".into(), |b| number(of(b)))
        };
        let ns3 = [beside(|b| (b.bare, b.times_bare)), beside(|b| (b.flow_monitor, b.times_flow_monitor))];
        let [bare, monitor] = ns3;
        vec![r.summary.clone(), format!("{} {}", grouped(r.speed), r.unit.label()), goal(r), bare, monitor]
    });
    table(&header, rows)
}

fn sessions(report: &Report) -> String {
    let header =
        ["controller", "without metrics, simulated s per CPU s", "goal", "with all metrics", "goal: session / 1.15"];
    let rows = named(report, "session-").map(|(r, controller)| {
        let whole = named(report, "run-").find(|(_, c)| *c == controller).map(|(row, _)| row);
        let [speed, aim] = whole.map_or(["-".into(), "-".into()], |w| [grouped(w.speed), goal(w)]);
        vec![controller.to_owned(), grouped(r.speed), goal(r), speed, aim]
    });
    table(&header, rows)
}

fn calls(report: &Report) -> String {
    let header = ["calls", "CPU time per packet", "goal", "memory of a call, without metrics"];
    let rows = named(report, "calls-").map(|(r, count)| {
        let memory = r.bytes_per_call.map_or("-".into(), |bytes| format!("{:.1} kB", bytes as f64 / 1e3));
        let count = count.parse().map_or(count.to_owned(), grouped);
        vec![count, format!("{:.2} us", r.speed / 1e3), goal(r), memory]
    });
    table(&header, rows)
}

fn controllers(report: &Report) -> String {
    let rows = named(report, "controller-")
        .map(|(r, name)| vec![name.to_owned(), format!("{} ns", grouped(r.speed)), goal(r)]);
    table(&["controller", "time per packet", "goal"], rows)
}

#[cfg(target_os = "linux")]
fn loopback(report: &Report) -> String {
    let header = ["loopback device, 1,400 bytes", "Mbit/s", "of TCP with such segments", "CPU time each", "lost"];
    let rows = report.loopback.iter().map(|l| {
        let s = &l.speed;
        vec![
            l.name.to_owned(),
            grouped(s.goodput_bps / 1e6),
            format!("{:.2}", l.times_tcp),
            format!("{} ns", grouped(s.cpu_ns_per_datagram)),
            format!("{:.2} %", 100.0 * s.loss),
        ]
    });
    table(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let session = Row::new("session-nada".into(), String::new(), 10_000.0, 1.0).with_goal(Some(20_000.0));
        let calls = Row::new("calls-1000".into(), String::new(), 1.0, 1.0).with_packets(1e6).in_unit(Unit::Nanoseconds);
        let calls = Row { bytes_per_call: Some(17_040), ..calls.with_goal(Some(1_200.0)) };
        Report {
            version: "1",
            debug_build: false,
            scale: 0.5,
            best_of: 3,
            rows: vec![session, calls],
            #[cfg(target_os = "linux")]
            loopback: vec![],
        }
    }

    fn document() -> String {
        let marked = |(name, _): &Table| marks(name).join("old\n");
        format!("# Speed\n\n{}\n\nProse.\n", TABLES.iter().map(marked).collect::<Vec<_>>().join("\n\n"))
    }

    #[test]
    fn tables_are_replaced_between_their_marks_and_prose_stays() {
        let origin = Origin { commit: "abc of 2026-01-01".into(), machine: "a machine".into(), load: None };
        let text = replaced(&document(), &report(), &origin).expect("marked");
        assert!(text.starts_with("# Speed\n") && text.ends_with("\nProse.\n") && !text.contains("old"), "{text}");
        for part in [
            "Commit abc of 2026-01-01; a machine. `weir bench --markdown --scale 0.5`, the best of 3",
            "| nada | 10,000 | 20,000: **missed** | - | - |",
            "| 1,000 | 1.00 us | 1,200 ns: met | 17.0 kB |",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(replaced(&text, &report(), &origin).as_deref(), Ok(&text[..]), "again the same");
    }

    #[test]
    fn a_document_without_a_mark_is_not_touched() {
        let document = document().replace("end of calls", "end");
        assert_eq!(lacking(&document), ["calls"]);
        let origin = Origin { commit: String::new(), machine: String::new(), load: None };
        assert!(replaced(&document, &report(), &origin).expect_err("a mark is missing").contains("end of calls"));
    }

    #[test]
    fn thousands_stand_apart() {
        let cases = [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (123_456.0, "123,456"), (1.5e6, "1,500,000")];
        for (x, text) in cases {
            assert_eq!(grouped(x), text);
        }
    }
}
