//! A gate's answer for those who read it in a build: JUnit's XML, Markdown, and annotations.

use super::report::{Check, Report};
use super::sprt::Verdict;
use std::fmt::Write as _;

/// Text for XML, in an attribute or not. Characters that XML 1.0 has no way to write become a question mark.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // Attributes would be given blanks in their place.
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// Suite, scenario and controller.
type Group<'a> = (&'a str, &'a str, &'a str);

/// Whether a verdict is a failure to a build: undecided ones are where the gate is strict.
pub(super) fn is_failure(check: &Check, strict: bool) -> bool {
    check.verdict == Verdict::Fails || (strict && check.verdict == Verdict::Undecided)
}

impl Report {
    /// As XML in JUnit's form: a suite for each controller in each scenario, a case for each budget. Undecided budgets are skipped
    /// ones, or failures where the gate is `strict`; a program that died is an error.
    pub fn junit(&self, strict: bool) -> String {
        let counts = |checks: &[&Check]| {
            let errors = checks.iter().filter(|c| c.broken.is_some()).count();
            let failures = checks.iter().filter(|c| is_failure(c, strict)).count() - errors;
            let skipped = checks.iter().filter(|c| c.verdict == Verdict::Undecided && !strict).count();
            format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"", checks.len())
        };
        let all: Vec<&Check> = self.checks.iter().collect();
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(out, "<testsuites name=\"{}\" {}>", xml(&self.file), counts(&all));
        let mut groups: Vec<(Group<'_>, Vec<&Check>)> = Vec::new();
        for check in &self.checks {
            let key = (check.suite.as_str(), check.scenario.as_str(), check.controller.as_str());
            match groups.iter_mut().find(|g| g.0 == key) {
                Some(group) => group.1.push(check),
                None => groups.push((key, vec![check])),
            }
        }
        for ((suite, scenario, controller), checks) in groups {
            let name = if suite == scenario { scenario.to_owned() } else { format!("{suite}: {scenario}") };
            let name = xml(&format!("{name}, {controller}"));
            let _ = writeln!(out, "  <testsuite name=\"{name}\" {}>", counts(&checks));
            for check in checks {
                case(&mut out, check, &name, strict);
            }
            out += "  </testsuite>\n";
        }
        out + "</testsuites>\n"
    }

    /// As Markdown: the summary, those that fail with their reasons and plots, and a table of all.
    pub fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", sentence_case(&self.summary()));
        let head = out.len();
        for check in self.checks.iter().filter(|c| c.verdict == Verdict::Fails) {
            let _ = writeln!(out, "- **fails** (line {}): {}", check.line, plain(&check.sentence()));
            if let Some(why) = &check.why {
                let _ = writeln!(out, "  - {}", plain(why));
            }
        }
        let mut plots: Vec<(&str, &Check)> = Vec::new();
        for check in &self.checks {
            let Some(plot) = check.plot.as_deref() else { continue };
            if !plots.iter().any(|p| p.0 == plot) {
                plots.push((plot, check));
            }
        }
        for (plot, check) in plots {
            let seed = check.worst_seed.unwrap_or(self.seed);
            let _ = write!(
                out,
                "\n![{}, {}, seed {seed}](<{}>)\n",
                plain(&check.scenario),
                plain(&check.controller),
                plot.replace(['<', '>'], "")
            );
        }
        if out.len() > head {
            out.push('\n');
        }
        out += "| verdict | scenario | controller | budget | measured |\n|---|---|---|---|---|\n";
        for check in &self.checks {
            let measured = check.broken.clone().unwrap_or_else(|| check.measured());
            let cells = [check.verdict.name(), &check.scenario, &check.controller, &check.budget, &measured];
            let _ = writeln!(out, "| {} |", cells.map(plain).join(" | "));
        }
        let _ = write!(
            out,
            "\nEach budget is tested seed by seed; a wrong verdict on any of the {} has a probability of about {} at most.\n",
            self.checks.len(),
            self.error
        );
        out
    }

    /// Workflow commands of GitHub, a line a budget that does not pass: an error, or a warning where it is undecided and the gate
    /// not `strict`.
    pub fn annotations(&self, strict: bool) -> String {
        let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
        let mut out = String::new();
        for check in self.checks.iter().filter(|c| c.verdict != Verdict::Passes) {
            let level = if is_failure(check, strict) { "error" } else { "warning" };
            let why = check.why.as_ref().map_or_else(String::new, |why| format!("; {why}"));
            let _ = writeln!(
                out,
                "::{level} file={},line={},title={}::{}",
                property(&self.file),
                check.line,
                property(&format!("weir gate {}", check.verdict.name())),
                data(&format!("{}{why}", check.sentence()))
            );
        }
        out
    }
}

fn case(out: &mut String, check: &Check, class: &str, strict: bool) {
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{}\"", xml(&check.budget));
    let message = xml(check.broken.as_ref().or(check.note.as_ref()).unwrap_or(&check.measured()));
    let kind = match check.verdict {
        Verdict::Passes => {
            *out += "/>\n";
            return;
        }
        Verdict::Undecided if !strict => {
            let _ = write!(out, ">\n      <skipped message=\"{message}\"/>\n    </testcase>\n");
            return;
        }
        _ if check.broken.is_some() => "error",
        _ => "failure",
    };
    let more = xml(check.why.as_deref().unwrap_or(&check.sentence()));
    let _ = write!(out, ">\n      <{kind} message=\"{message}\">{more}</{kind}>\n    </testcase>\n");
}

/// Text in Markdown that means itself, on one line of a table.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn check(budget: &str, verdict: Verdict) -> Check {
        Check {
            suite: "quick".into(),
            scenario: "quick".into(),
            controller: "exec:sh -c 'a & b'".into(),
            budget: budget.into(),
            line: 7,
            unit: String::new(),
            verdict,
            hits: 1,
            misses: 4,
            values: vec![Some(0.5); 5],
            median: Some(0.5),
            others: Vec::new(),
            median_of_others: None,
            worst_seed: Some(3),
            broken: None,
            note: None,
            why: None,
            plot: None,
        }
    }

    pub(in crate::gate) fn report() -> Report {
        let why = Some("seed 3: the rate fell\nby 50 % <at once>".into());
        let broken = Some("seed 1: it ended (\u{1b}[31mexit\u{0}) & said \"no\"".into());
        let note = Some("time was over".into());
        let checks = vec![
            check("loss <= 0.02", Verdict::Passes),
            Check { why, plot: Some("gate-plot-1.svg".into()), ..check("use|d >= 0.9", Verdict::Fails) },
            Check { note, ..check("loss >= 0", Verdict::Undecided) },
            Check { broken, scenario: "row j1".into(), ..check("a,b: c <= 1", Verdict::Fails) },
        ];
        Report {
            file: "dir/weir-gate.toml".into(),
            verdict: Report::over(&checks),
            controllers: vec!["mine".into()],
            seed: 1,
            runs: 40,
            error: 0.05,
            error_of_each: 0.0125,
            made: 20,
            ended: None,
            checks,
        }
    }

    /// The elements of an XML text that is well formed, each with its attributes. Panics where it is not.
    fn elements(text: &str) -> Vec<(String, Vec<(String, String)>)> {
        let (mut open, mut all) = (Vec::<String>::new(), Vec::new());
        let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
        let sound = |text: &str| {
            assert!(!text.contains(['<', '>']), "{text}");
            assert!(text.chars().all(|c| c >= ' ' || c == '\n'), "{text:?}");
            for entity in text.split('&').skip(1) {
                let name = entity.split_once(';').unwrap_or_else(|| panic!("{entity}")).0;
                assert!(["amp", "lt", "gt", "quot", "apos", "#10", "#9", "#13"].contains(&name), "{name}");
            }
        };
        while let Some((before, tag)) = rest.split_once('<') {
            sound(before);
            assert!(!open.is_empty() || before.trim().is_empty(), "{before}");
            let (tag, after) = tag.split_once('>').expect("a tag ends");
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
                continue;
            }
            assert!(!open.is_empty() || all.is_empty(), "one root");
            let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
            let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            let mut found: Vec<(String, String)> = Vec::new();
            while let Some((key, more)) = attributes.split_once("=\"") {
                let (value, more) = more.split_once('"').expect("a value ends");
                sound(value);
                assert!(found.iter().all(|f| f.0 != key), "{key} twice");
                found.push((key.trim().into(), value.into()));
                attributes = more;
            }
            assert!(attributes.trim().is_empty(), "{attributes}");
            all.push((name.to_owned(), found));
            if !closed {
                open.push(name.into());
            }
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
        all
    }

    #[test]
    fn junit_is_well_formed_whatever_a_process_says() {
        let text = report().junit(false);
        let all = elements(&text);
        let names: Vec<&str> = all.iter().map(|e| e.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "testsuites",
                "testsuite",
                "testcase",
                "testcase",
                "failure",
                "testcase",
                "skipped",
                "testsuite",
                "testcase",
                "error"
            ]
        );
        let of = |at: usize, key: &str| all[at].1.iter().find(|a| a.0 == key).map(|a| a.1.as_str());
        let counts = ["tests", "failures", "errors", "skipped"].map(|key| of(0, key));
        assert_eq!(counts, [Some("4"), Some("1"), Some("1"), Some("1")]);
        assert_eq!(of(1, "name"), Some("quick, exec:sh -c &apos;a &amp; b&apos;"));
        assert_eq!(of(7, "name"), Some("quick: row j1, exec:sh -c &apos;a &amp; b&apos;"));
        assert_eq!(of(9, "message"), Some("seed 1: it ended (?[31mexit?) &amp; said &quot;no&quot;"));
        assert!(text.contains("by 50 % &lt;at once&gt;</failure>"), "{text}");
        let strict = elements(&report().junit(true));
        assert_eq!(strict.iter().filter(|e| e.0 == "failure").count(), 2);
        assert!(strict.iter().all(|e| e.0 != "skipped"));
    }

    #[test]
    fn annotations_are_one_line_each_and_escaped() {
        let text = report().annotations(false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("::error file=dir/weir-gate.toml,line=7,title=weir gate fails::quick, exec:sh"));
        assert!(lines[0].ends_with("; seed 3: the rate fell%0Aby 50 %25 <at once>"), "{text}");
        assert!(lines[1].starts_with("::warning ") && lines[1].ends_with("time was over"), "{text}");
        assert!(report().annotations(true).lines().all(|l| l.starts_with("::error ")));
    }

    #[test]
    fn markdown_shows_what_fails_first_and_cells_stay_cells() {
        let text = report().markdown();
        assert!(text.starts_with("## The gate fails: 1 of 4 budgets pass, 2 fail, 1 are undecided\n"), "{text}");
        assert!(text.contains("  - seed 3: the rate fell by 50 % &lt;at once>\n"), "{text}");
        assert!(text.contains("\n![quick, exec:sh -c 'a &amp; b', seed 3](<gate-plot-1.svg>)\n"), "{text}");
        let table: Vec<&str> = text.lines().filter(|l| l.starts_with("| ")).collect();
        assert_eq!(table.len(), 5);
        for line in table {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 6, "{line}");
        }
    }
}
