//! A reproduction as text for a terminal.

use super::{Reproduction, Verdict};
use std::fmt::{self, Write as _};

impl fmt::Display for Reproduction {
    /// The cells of each table, then the claims, in lines of at most about 100 columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<[String; 8]> = Vec::new();
        let mut table = None;
        for c in &self.cells {
            if table != Some(&c.table) {
                flush(f, &mut rows)?;
                table = Some(&c.table);
                let title = self.tables.iter().find(|t| t.table == c.table).map_or("", |t| t.title.as_str());
                writeln!(f, "{} table {}  {title}", self.paper, c.table)?;
                rows.push(
                    ["scenario", "condition", "algorithm", "metric", "published", "measured", "difference", "verdict"]
                        .map(Into::into),
                );
            }
            let spread = |sigma: Option<f64>| sigma.map_or(String::new(), |s| format!(" ±{s:.2}"));
            rows.push([
                c.scenario.clone(),
                c.condition.clone(),
                c.algorithm.clone(),
                format!("{}, {}", c.metric, c.unit),
                format!("{:.2}{}", c.published, spread(c.published_sigma)),
                c.measured.map_or("-".into(), |m| format!("{m:.2}{}", spread(c.measured_sigma))),
                c.measured.map_or("-".into(), |m| format!("{:+.2}", m - c.published)),
                c.verdict.map_or("-", Verdict::word).into(),
            ]);
        }
        flush(f, &mut rows)?;
        for claim in &self.claims {
            let mark = match claim.holds {
                Some(true) => "holds",
                Some(false) => "FAILS",
                None => "not measured",
            };
            writeln!(f, "{mark:<12}  {} ({})", claim.statement, claim.source)?;
            writeln!(f, "              criterion: {}", claim.criterion)?;
            let mut line = String::from("              measured:  ");
            for (i, m) in claim.measured.iter().enumerate() {
                let value = m.value.map_or("-".into(), |v| format!("{v:.3}"));
                let sep = if i > 0 { "; " } else { "" };
                write!(line, "{sep}{} {} {value}", m.controller, m.metric)?;
            }
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

fn flush(f: &mut fmt::Formatter<'_>, rows: &mut Vec<[String; 8]>) -> fmt::Result {
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    for row in rows.iter() {
        let mut line = String::new();
        for (i, (text, w)) in row.iter().zip(&widths).enumerate() {
            if i < 4 || i == 7 {
                write!(line, "{text:<w$}  ")?;
            } else {
                write!(line, "{text:>w$}  ")?;
            }
        }
        writeln!(f, "  {}", line.trim_end())?;
    }
    if !rows.is_empty() {
        writeln!(f)?;
    }
    rows.clear();
    Ok(())
}
