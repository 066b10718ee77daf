//! A paper's scores at each end of the conditions that it leaves open.

use crate::tables::{fold, table};
use weir_judge::paper::Reproduction;

const HEADER: [&str; 7] = ["condition", "end", "decides", "of these near", "near", "orders", "claims"];
const LEGEND: &str = "If all that one condition may decide ran at one of its ends and the rest as it does. Decides: numbers that \
                      the condition may decide; of these near: as run, and at the end; near, orders and claims: of the whole paper.";

/// The table, for a terminal or in Markdown.
pub(crate) fn ends(r: &Reproduction, markdown: bool) -> String {
    if r.ends.is_empty() {
        return format!("{}: no condition is open, or none of its ends was run\n", r.paper);
    }
    let rows = rows(r);
    if markdown {
        let mut out = format!("{LEGEND}\n\n| {} |\n|{}\n", HEADER.join(" | "), "---|".repeat(HEADER.len()));
        rows.iter().for_each(|row| out += &format!("| {} |\n", row.join(" | ")));
        return out;
    }
    let mut t = table(&HEADER, 2).keys(2);
    rows.into_iter().for_each(|row| t.add_row(row));
    format!("{}: scores at the ends of open conditions\n{t}\n{}", r.paper, fold(&format!("\n{LEGEND}\n")))
}

/// The paper as run, and a row for each end that it does not have already.
fn rows(r: &Reproduction) -> Vec<[String; 7]> {
    let a = &r.agreement;
    let claims = r.claims.iter().filter(|c| c.holds == Some(true)).count();
    let whole = |near: usize, orders: usize, held: usize| {
        [
            format!("{near} of {}", a.measured),
            format!("{orders} of {}", a.orders),
            format!("{held} of {}", r.claims.len()),
        ]
    };
    let [near, orders, held] = whole(a.near, a.orders_kept, claims);
    let mut rows = vec![["as run".into(), String::new(), String::new(), String::new(), near, orders, held]];
    for e in r.ends.iter().filter(|e| !e.as_run) {
        let [near, orders, held] = whole(e.near, e.orders_kept, e.claims_kept);
        let of_these = format!("{}, {}", e.covered_near_as_run, e.covered_near);
        rows.push([e.id.clone(), e.end.clone(), e.covered.to_string(), of_these, near, orders, held]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_judge::paper::{Agreement, EndScore};

    #[test]
    fn an_end_stands_below_the_paper_as_run() {
        let end = |name: &str, as_run| EndScore {
            id: "queue".into(),
            end: name.into(),
            as_run,
            covered: 4,
            covered_near_as_run: 1,
            covered_near: 3,
            near: 7,
            orders_kept: 2,
            claims_kept: 0,
        };
        let agreement = Agreement { measured: 10, near: 5, orders: 3, orders_kept: 1, ..Agreement::default() };
        let ends_of = vec![end("10 packets, as run", true), end("50 packets", false)];
        let r = Reproduction { paper: "p".into(), agreement, ends: ends_of, ..Reproduction::default() };
        let page = ends(&r, true);
        assert!(page.contains("| as run |  |  |  | 5 of 10 | 1 of 3 | 0 of 0 |\n"), "{page}");
        assert!(page.ends_with("| queue | 50 packets | 4 | 1, 3 | 7 of 10 | 2 of 3 | 0 of 0 |\n"), "{page}");
        assert!(!page.contains("10 packets, as run"), "{page}");
        assert!(ends(&Reproduction::default(), false).contains("no condition is open"));
    }
}
