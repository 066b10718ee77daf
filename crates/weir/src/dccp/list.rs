//! `weir dccp list`.

use crate::Done;
use crate::args::dccp::ListArgs;
use crate::output::{print, print_json};
use crate::tables::table;
use serde::Serialize;
use weir_dccp::ccid::Registry;

#[derive(Serialize)]
struct Param {
    name: &'static str,
    unit: &'static str,
    default: f64,
    min: f64,
    max: f64,
    doc: &'static str,
}

#[derive(Serialize)]
struct Ccid {
    ccid: u8,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    params: Vec<Param>,
}

#[derive(Serialize)]
struct All {
    ccids: Vec<Ccid>,
}

pub(super) fn list(args: &ListArgs) -> Done {
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
                .map(|p| Param { name: p.name, unit: p.unit, default: p.default, min: p.min, max: p.max, doc: p.doc })
                .collect(),
        })
        .collect();
    ccids.sort_by_key(|c| c.ccid);
    if args.json {
        return print_json(&All { ccids });
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
