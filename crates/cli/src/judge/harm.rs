//! `weir judge harm`.

use crate::Done;
use crate::args::HarmArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::path::Path;
use weir_judge::harm::{Account, Finding, Kind, LENGTH, Ledger, Link, MOST_LOST, judge};
use weir_report::atomic_write::write_atomically;

/// Findings of each controller in the table below.
const SHOWN: usize = 3;

pub(super) fn judge_harm(session: &Session, args: &HarmArgs) -> Done {
    let links = Link::generate(args.seed, args.links);
    if let Some(folder) = &args.write {
        return write(folder, &links, args.form.quiet);
    }
    let ledger = session.with_progress(args.form.quiet, true, |options, _| {
        judge(&args.controllers, &links, threads(args.jobs), options)
    })?;
    if args.form.json {
        print_report("harm", &ledger)?;
    } else if args.form.markdown {
        print(&markdown(&ledger))?;
    } else {
        print(&text(&ledger))?;
    }
    match (ledger.undone, ledger.failed.len()) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Failure::Work(format!("{failed} runs failed: {}", ledger.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// Writes each link with `$controller` in the controller's place.
fn write(folder: &Path, links: &[Link], quiet: bool) -> Done {
    let fail = |path: &Path, e: std::io::Error| Failure::Work(format!("{}: {e}", path.display()));
    std::fs::create_dir_all(folder).map_err(|e| fail(folder, e))?;
    for link in links {
        let path = folder.join(format!("link-{}.toml", link.number));
        let text = link.scenario("$controller", None);
        write_atomically(&path, |out| out.write_all(text.as_bytes())).map_err(|e| fail(&path, e))?;
    }
    if !quiet {
        remark(&format!("written: {} links into {}", links.len(), folder.display()));
    }
    Ok(())
}

/// Links with harm by kind, as `harm of links`.
fn counts(account: &Account) -> Vec<String> {
    account.links.iter().map(|&(kind, links)| format!("{} of {links}", account.harm_on(kind))).collect()
}

fn worst(account: &Account) -> String {
    account.harm.first().map_or_else(String::new, |f| percent(f.verdict.own()))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn text(ledger: &Ledger) -> String {
    let heads: Vec<&str> = Kind::ALL.iter().map(|k| k.name()).collect();
    let heads: Vec<&str> = ["controller"].into_iter().chain(heads).chain(["worst, %"]).collect();
    let mut rows = table(&heads, 1).keys(1);
    for account in &ledger.accounts {
        rows.add_row([vec![account.controller.clone()], counts(account), vec![worst(account)]].concat());
    }
    let mut out = format!("{rows}\n");
    out += &fold(&format!(
        "Links on which a controller did harm: in some {LENGTH:.0} s, more than {:.0} % of what it sent was lost beyond what half of \
         that rate loses on the same link.\n",
        100.0 * MOST_LOST
    ));
    if ledger.accounts.iter().any(|a| !a.harm.is_empty()) {
        let heads = ["controller", "link", "from, s", "Mbit/s", "lost, %", "half loses, %"];
        let mut rows = table(&heads, 2).keys(2);
        for account in &ledger.accounts {
            for finding in account.harm.iter().take(SHOWN) {
                rows.add_row(found(&account.controller, finding));
            }
        }
        let _ = write!(out, "\nThe worst of each:\n{rows}\n");
        out += &fold("--write DIR writes the links as scenarios; the seed of link N is N. --json has all.\n");
    }
    if ledger.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", ledger.undone);
    }
    out
}

fn found(controller: &str, f: &Finding) -> [String; 6] {
    let window = f.verdict.window;
    [
        controller.to_owned(),
        format!("{}: {}, {}", f.link.number, f.link.kind.name(), f.link.company.name()),
        format!("{:.1}", window.from_s),
        format!("{:.2}", window.sent_bps / 1e6),
        percent(window.lost),
        percent(f.verdict.lost_of_half),
    ]
}

fn markdown(ledger: &Ledger) -> String {
    let names: Vec<&str> = Kind::ALL.iter().map(|k| k.name()).collect();
    let mut out = format!("| controller | {} | worst, % |\n|{}\n", names.join(" | "), "---|".repeat(names.len() + 2));
    for account in &ledger.accounts {
        let _ = writeln!(out, "| {} | {} | {} |", account.controller, counts(account).join(" | "), worst(account));
    }
    out
}
