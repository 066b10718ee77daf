//! The rule that no controller does harm: for ten seconds, it sends no rate of which it loses more than a twentieth where half of
//! that rate would have arrived whole.
//!
//! Runs over generated links find, for each controller, the ten seconds in which the greatest share is lost. Where that is too much, the
//! link is run once more with the same seed and company, and a flow of a fixed rate in the controller's place: half of what it sent in
//! those ten seconds. What the fixed flow loses in them is chance or the company's doing; what the controller lost beyond that is its own.

mod ledger;
mod links;

pub use ledger::{Account, Finding, Ledger, Verdict, Window};
pub use links::{Company, Kind, Link};

use std::path::Path;
use std::sync::Mutex;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};

/// Length of the time judged, s.
pub const LENGTH: f64 = 10.0;
/// Greatest share lost beyond what half of the rate loses.
pub const MOST_LOST: f64 = 0.05;
/// Name of the judged flow in each link's scenario.
const JUDGED: &str = "judged";

/// A controller on a link.
struct Place<'a> {
    link: &'a Link,
    controller: &'a str,
    scenario: Scenario,
}

/// Runs each controller over each link, `threads` runs at a time. Errors: a controller does not exist, or has no such parameter.
pub fn judge(
    controllers: &[String],
    links: &[Link],
    threads: usize,
    options: &RunOptions<'_>,
) -> Result<Ledger, InputError> {
    let mut places = Vec::with_capacity(controllers.len() * links.len());
    for controller in controllers {
        for link in links {
            places.push(Place { link, controller, scenario: scenario(link, controller, None, options)? });
        }
    }
    let verdicts: Vec<Mutex<Option<Verdict>>> = places.iter().map(|_| Mutex::new(None)).collect();
    let tasks =
        places.iter().enumerate().map(|(id, p)| Task { scenario: &p.scenario, seed: p.link.number, series: true, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
        let result = run(task.scenario, task.seed, options)?;
        let verdict = compare(&places[task.id], &result, options)?;
        if let Ok(mut slot) = verdicts[task.id].lock() {
            *slot = Some(verdict);
        }
        Ok(result)
    };
    let mut ledger = Ledger::of(controllers);
    run_each(tasks, places.len() as u64, threads, options, &make, &mut |task, result| match result {
        Ok(_) => {}
        Err(RunError::Stopped { .. }) => ledger.undone += 1,
        Err(e) => ledger.failed.push(format!("{}: {e}", task.scenario.label())),
    });
    for (place, verdict) in places.iter().zip(verdicts) {
        if let Ok(Some(verdict)) = verdict.into_inner() {
            ledger.enter(place.controller, place.link, verdict);
        }
    }
    let run = ledger.accounts.iter().map(|a| a.runs() as usize).sum::<usize>() + ledger.failed.len();
    ledger.undone = places.len() - run;
    ledger.sort();
    Ok(ledger)
}

/// The worst window of a run, beside what half of its rate would have lost.
fn compare(place: &Place<'_>, result: &RunResult, options: &RunOptions<'_>) -> Result<Verdict, RunError> {
    let window = Window::worst(result).unwrap_or_default();
    if window.lost <= MOST_LOST {
        return Ok(Verdict { window, lost_of_half: 0.0 });
    }
    let Ok(half) = scenario(place.link, place.controller, Some(0.5 * window.sent_bps), options) else {
        return Ok(Verdict { window, lost_of_half: 0.0 });
    };
    let beside = run(&half, place.link.number, options)?;
    // Where losses have no time of their own, the worst ten seconds of one run stand beside the worst of the other.
    let same = if place.link.kind == Kind::Radio { Window::at(&beside, window.from_s) } else { Window::worst(&beside) };
    let lost_of_half = same.map_or(0.0, |w| w.lost);
    Ok(Verdict { window, lost_of_half })
}

fn scenario(
    link: &Link,
    controller: &str,
    fixed: Option<f64>,
    options: &RunOptions<'_>,
) -> Result<Scenario, InputError> {
    let (name, text) = (format!("link-{}", link.number), link.scenario(controller, fixed));
    ScenarioFile::parse(&name, &text, Path::new("."), options.registry)?.scenario(None, None, options.registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use weir_cc::Registry;

    fn ledger(controllers: &[&str], links: &[Link]) -> Ledger {
        let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let controllers: Vec<String> = controllers.iter().map(|c| (*c).to_owned()).collect();
        let ledger = judge(&controllers, links, 2, &options).expect("judged");
        assert!(ledger.failed.is_empty() && ledger.undone == 0, "{ledger:#?}");
        ledger
    }

    #[test]
    fn a_rate_above_a_policer_is_harm_and_chance_is_none() {
        let mut links = Link::generate(1, 12);
        links.iter_mut().for_each(|l| l.company = Company::Alone);
        let of = |kind| links.iter().filter(|l| l.kind == kind).cloned().collect::<Vec<_>>();
        // It doubles until delay or loss answers, and takes a policer's losses for chance until a tenth is lost.
        let account = ledger(&["bbr-rtc"], &of(Kind::Policer)).accounts.remove(0);
        assert_eq!(account.harm.len(), 2, "{account:#?}");
        for Finding { link, verdict } in &account.harm {
            let (window, arrived) = (verdict.window, verdict.window.sent_bps * (1.0 - verdict.window.lost));
            assert!(window.lost > 0.05 && verdict.lost_of_half < 0.01, "{verdict:?}");
            // Its rate, and the burst, arrive.
            assert!((0.9..1.5).contains(&(arrived / link.rate_bps)), "{arrived} of {}", link.rate_bps);
        }
        for kind in [Kind::Chance, Kind::Clusters] {
            let account = ledger(&["tfrc"], &of(kind)).accounts.remove(0);
            assert_eq!((account.runs(), account.harm.len()), (2, 0), "{account:#?}");
        }
    }

    #[test]
    fn a_seed_makes_the_same_links_and_another_one_others() {
        let links = Link::generate(1, 24);
        assert_eq!(links, Link::generate(1, 24));
        assert!(links.iter().zip(Link::generate(2, 24)).all(|(a, b)| a.rate_bps != b.rate_bps));
        assert_eq!(links[..6], Link::generate(1, 6)[..]);
        for kind in Kind::ALL {
            assert_eq!(links.iter().filter(|l| l.kind == kind).count(), 4);
        }
        let count = |is: fn(&Company) -> bool| links.iter().filter(|l| is(&l.company)).count();
        assert!(count(|c| *c == Company::Alone) > 5 && count(|c| *c == Company::Cubic) > 1);
    }
}
