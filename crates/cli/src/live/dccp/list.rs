//! `weir show ccids`.

use super::Report;
use crate::Done;
use crate::args::ListArgs;
use crate::output::{print, print_report};
use crate::tables::table;
use serde::Serialize;
use weir_dccp::ccid::Registry;

/// A parameter of a CCID.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CcidParam {
    /// Name in `--param`.
    name: &'static str,
    /// Unit.
    unit: &'static str,
    /// The value if none is given.
    default: f64,
    /// Minimum.
    min: f64,
    /// Maximum.
    max: f64,
    /// Its effect.
    doc: &'static str,
}

/// A congestion control of DCCP.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ccid {
    /// Its number.
    ccid: u8,
    /// Its name.
    name: &'static str,
    /// Summary in one line.
    summary: &'static str,
    /// The document that it follows.
    source: &'static str,
    /// Its parameters.
    params: Vec<CcidParam>,
}

/// The CCIDs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CcidList {
    /// The CCIDs, in the order of their numbers.
    ccids: Vec<Ccid>,
}

pub(crate) fn list_ccids(args: &ListArgs) -> Done {
    let registry = Registry::builtin();
    let mut ccids: Vec<Ccid> = registry
        .specs()
        .iter()
        .map(|s| Ccid {
            ccid: s.number,
            name: s.name,
            summary: s.summary,
            source: s.source,
            params: s
                .params
                .iter()
                .map(|p| CcidParam {
                    name: p.name,
                    unit: p.unit,
                    default: p.default,
                    min: p.min,
                    max: p.max,
                    doc: p.doc,
                })
                .collect(),
        })
        .collect();
    ccids.sort_by_key(|c| c.ccid);
    if args.json {
        return print_report("dccp", &Report::List(CcidList { ccids }));
    }
    let mut t = table(&["CCID", "name", "what it is", "source"], 4);
    for c in &ccids {
        t.add_row([&c.ccid.to_string(), c.name, c.summary, c.source]);
    }
    let mut out = format!("{t}\n");
    for c in ccids.iter().filter(|c| !c.params.is_empty()) {
        let mut t = table(&["parameter", "unit", "default", "from", "to", "what it is"], 2).last_is_text();
        for p in &c.params {
            let numbers = [p.default, p.min, p.max].map(|n| n.to_string());
            let [default, min, max] = &numbers;
            t.add_row([p.name, p.unit, default, min, max, p.doc]);
        }
        out.push_str(&format!("\nCCID {}, {}\n{t}\n", c.ccid, c.name));
    }
    print(&out)
}
