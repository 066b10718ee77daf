//! `weir judge paper --all`: the scores of every paper, or of those that are named.

use super::{command, opened, plan, reproduction_of, timed};
use crate::args::PaperArgs;
use crate::compare::{finish, run_all};
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use crate::{Done, reproduction as tables};
use serde::Serialize;
use weir_judge::paper::data::papers;
use weir_judge::paper::{Agreement, Reproduction};

/// Output of `--all --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    /// How far the numbers of all papers agree.
    agreement: Agreement,
    /// Claims that hold.
    claims_kept: usize,
    /// Claims.
    claims: usize,
    /// Every paper whose runs have finished.
    papers: &'a [Reproduction],
}

/// Runs paper after paper; a stop shows those that have finished.
pub(super) fn judge_all(session: &Session, args: &PaperArgs) -> Done {
    let every: Vec<&str> = papers().map(|(name, _)| name).collect();
    let named = args.papers.iter().map(String::as_str);
    let wanted: Vec<&str> = if args.papers.is_empty() { every } else { named.collect() };
    let mut papers: Vec<(&str, Option<f64>)> = wanted.into_iter().map(|name| (name, None)).collect();
    let count = papers.len();
    let mut reproductions = Vec::new();
    let mut done = Ok(());
    for (i, (name, seconds)) in papers.iter_mut().enumerate() {
        match judge_one(session, args, name, (i + 1, count)) {
            Ok((reproduction, took)) => {
                // Runs that were kept took their time elsewhere.
                *seconds = args.resume.is_none().then_some(took);
                reproductions.push(reproduction);
            }
            Err(e) => {
                done = Err(e);
                break;
            }
        }
    }
    papers.truncate(reproductions.len());
    if reproductions.is_empty() {
        return done;
    }
    let seconds: Vec<Option<f64>> = papers.iter().map(|p| p.1).collect();
    let shown = if args.ends {
        let pages: Vec<String> = reproductions.iter().map(|r| tables::ends(r, args.markdown)).collect();
        print(&pages.join("\n"))
    } else if args.json {
        let claims = reproductions.iter().flat_map(|r| &r.claims);
        let json = Json {
            agreement: tables::agreement_of_all(&reproductions),
            claims_kept: claims.clone().filter(|c| c.holds == Some(true)).count(),
            claims: claims.count(),
            papers: &reproductions,
        };
        print_report("papers", &json)
    } else if args.markdown {
        let mut page = tables::summary_markdown(&reproductions, &seconds, &command(args));
        for (r, seconds) in reproductions.iter().zip(&seconds) {
            page += &format!("\n## {}\n\n{}", r.title, tables::markdown(r, &command(args), *seconds));
        }
        print(&page)
    } else {
        print(&tables::summary_text(&reproductions, &seconds))
    };
    done.and(shown)
}

/// Runs one paper of so many; returns how long that took, in seconds.
fn judge_one(
    session: &Session,
    args: &PaperArgs,
    name: &str,
    (number, count): (usize, usize),
) -> Result<(Reproduction, f64), Failure> {
    let data = opened(session, args, name)?.without_figures();
    let plan = plan(session, args, &data)?;
    if !args.work.quiet {
        remark(&format!("{name}, paper {number} of {count}: {} runs", plan.runs()));
    }
    let (outcome, seconds) = timed(|| run_all(session, &plan, &args.work, args.resume.as_deref()));
    let outcome = outcome?;
    let reproduction = reproduction_of(&data, &outcome);
    finish(outcome)?;
    Ok((reproduction, seconds))
}
