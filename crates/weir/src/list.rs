//! `weir list`.

use crate::Done;
use crate::args::ListArgs;
use crate::output::print;
use crate::session::Session;
use crate::tables::table;
use weir_lab::measure::scenario::{ScenarioFile, builtin_scenarios};
use weir_lab::publish::papers::papers;
use weir_path::Discipline;

/// Variants of a scenario shown in a list.
const SHOWN_VARIANTS: usize = 6;

pub(crate) fn list(session: &Session, args: &ListArgs) -> Done {
    match args.what.as_str() {
        "controllers" if args.params => params(session),
        "controllers" => {
            let mut t = table(&["controller", "what it is", "source"], 3);
            for s in session.registry.specs() {
                t.add_row([&s.name, &s.summary, &s.source]);
            }
            print(&format!(
                "{t}\nNAME+fec, such as gcc+fec: the controller's steps up go out as repair packets first\n"
            ))
        }
        "papers" => {
            let mut t = table(&["paper", "title"], 2);
            for (name, title) in papers() {
                t.add_row([name, &title]);
            }
            print(&format!("{t}\n"))
        }
        "disciplines" if args.params => discipline_params(),
        "disciplines" => {
            let mut t = table(&["discipline", "what it is", "source"], 3);
            for d in Discipline::all() {
                t.add_row([d.name(), d.summary(), d.source()]);
            }
            print(&format!("{t}\nIn a scenario file: queue = {{ discipline = \"codel\", target = \"5 ms\" }}\n"))
        }
        "codecs" => {
            let mut t = table(&["codec", "library", "version", "does", "slices", "references", "to build it in"], 7);
            let word = |on: bool| if on { "yes" } else { "no" };
            for l in weir_codecs::list() {
                let does = if l.decodes { "encodes, decodes" } else { "encodes" };
                let c = l.capabilities;
                let version = if l.built_in { l.version.as_str() } else { "not built in" };
                let way_out = if l.built_in { "" } else { l.way_out };
                t.add_row([
                    l.codec.name(),
                    l.name,
                    version,
                    does,
                    word(c.slices),
                    word(c.reference_selection),
                    way_out,
                ]);
            }
            print(&format!("{t}\n"))
        }
        _ => {
            let mut t = table(&["scenario", "what it is", "variants", "compares"], 4);
            for (name, _) in builtin_scenarios() {
                let file = ScenarioFile::builtin(name, &session.registry)?;
                let variants: Vec<&str> = file.variants().into_iter().flatten().collect();
                let shown = match variants.len() {
                    0..=SHOWN_VARIANTS => variants.join("; "),
                    n => format!("{}; ... {n} in all", variants[..SHOWN_VARIANTS].join("; ")),
                };
                t.add_row([name, file.title(), &shown, &file.controllers().join(", ")]);
            }
            print(&format!("{t}\nA name's last part is enough: weir run quick\n"))
        }
    }
}

fn discipline_params() -> Done {
    let mut out = String::new();
    for d in Discipline::all() {
        let mut t = table(&["parameter", "default", "allowed", "what it is"], 4);
        for p in d.parameters() {
            t.add_row([p.name, &p.default.to_string(), &p.expected(), &p.doc]);
        }
        out.push_str(&format!("{}: {} ({})\n{t}\n\n", d.name(), d.summary(), d.source()));
    }
    print(&out)
}

fn params(session: &Session) -> Done {
    let mut out = String::new();
    for s in session.registry.specs() {
        let mut t = table(&["parameter", "unit", "default", "from", "to", "what it is"], 2);
        if let Some(last) = t.column_mut(5) {
            last.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        for p in &s.params {
            let numbers = [p.default, p.min, p.max].map(|n| n.to_string());
            let [default, min, max] = &numbers;
            t.add_row([p.name, p.unit, default, min, max, p.doc]);
        }
        let text = if s.params.is_empty() { "no parameters".to_owned() } else { t.to_string() };
        out.push_str(&format!("{}: {}\n{text}\n\n", s.name, s.summary));
    }
    print(&out)
}
