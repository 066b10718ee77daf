//! Makes the runs of the questions and reads them.

use super::answers::{Answer, Answers, CaseAnswer, CheckAnswer, Value};
use super::lies::with_lies;
use super::question::{Beside, Case, Question, Runs, Source};
use super::read::OTHER;
use crate::rfc::with_tcp;
use crate::rows::{Reading, Row, mean_of, rows, scenario as row_scenario, variants};
use weir_cc::Registry;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};

/// A scenario of a case, its variant by number and for whom it is.
struct Place {
    variant: usize,
    who: Who,
    scenario: Scenario,
    runs: Vec<RunResult>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// A controller by number.
    Controller(usize),
    /// The run beside those of all controllers.
    All,
    /// That beside one controller's.
    Beside(usize),
}

/// Answers the questions under each controller with `runs` seeds, `threads` runs at a time. `begun` is called as a case begins.
///
/// # Errors
/// A controller or a parameter that does not exist.
pub fn judge(
    questions: &[Question],
    controllers: &[String],
    runs: u32,
    threads: usize,
    options: &RunOptions<'_>,
    begun: &(dyn Fn(&str) + Sync),
) -> Result<Answers, InputError> {
    let registry = with_lies(options.registry);
    let options = RunOptions { registry: &registry, series: true, ..*options };
    let mut answers = Answers { controllers: controllers.to_vec(), runs, ..Answers::default() };
    let known = rows();
    for question in questions {
        let mut answer = Answer {
            section: question.section.into(),
            title: question.title.into(),
            asks: question.asks.into(),
            cases: Vec::new(),
        };
        for case in &question.cases {
            let mut places = places(case, controllers, &known, &registry)?;
            begun(&format!("{} {}", question.section, question.title));
            make(&mut places, runs, threads, &options, &mut answers);
            answer.cases.push(read(case, controllers, &places));
        }
        answers.questions.push(answer);
    }
    answers.count();
    Ok(answers)
}

/// The scenarios of a case under a controller, all variants.
fn scenarios(case: &Case, controller: &str, known: &[Row], registry: &Registry) -> Result<Vec<Scenario>, InputError> {
    match case.source {
        Source::File(name) => variants(&ScenarioFile::builtin(name, registry)?, controller, registry),
        Source::Row(key) => match known.iter().find(|r| r.key == key) {
            Some(row) => row_scenario(row, controller, registry).map(|only| vec![only]),
            None => Err(InputError::whole(key, format!("no row is named `{key}`"))),
        },
    }
}

fn places(case: &Case, controllers: &[String], known: &[Row], registry: &Registry) -> Result<Vec<Place>, InputError> {
    let mut places: Vec<Place> = Vec::new();
    let place = |variant, who, scenario| Place { variant, who, scenario, runs: Vec::new() };
    for (i, controller) in controllers.iter().enumerate() {
        let prefix = case.lie.map_or("", |l| l.prefix());
        let all = scenarios(case, &format!("{prefix}{controller}"), known, registry)?;
        let chosen = all.iter().filter(|s| case.has(s.variant.as_deref())).enumerate();
        for (variant, scenario) in chosen {
            let is_new = |who| places.iter().all(|p| (p.variant, p.who) != (variant, who));
            let beside = match case.beside {
                Beside::Nothing => None,
                Beside::Tcp(algorithm) if is_new(Who::All) => Some((Who::All, with_tcp(scenario, algorithm))),
                Beside::ItsOwnKind if is_new(Who::All) => {
                    let own = scenario.flows.iter().find(|f| f.name == OTHER).and_then(|f| f.rtp());
                    let own = own.map_or_else(|| controller.clone(), |rtp| rtp.controller.clone());
                    let all = scenarios(case, &own, known, registry)?;
                    all.into_iter().find(|s| s.variant == scenario.variant).map(|s| (Who::All, s))
                }
                Beside::Tcp(_) | Beside::ItsOwnKind => None,
                Beside::Variant(name) => {
                    let honest = scenarios(case, controller, known, registry)?;
                    honest.into_iter().find(|s| s.variant.as_deref() == Some(name)).map(|s| (Who::Beside(i), s))
                }
            };
            places.extend(beside.map(|(who, scenario)| place(variant, who, scenario)));
            places.push(place(variant, Who::Controller(i), scenario.clone()));
        }
    }
    Ok(places)
}

fn make(places: &mut [Place], runs: u32, threads: usize, options: &RunOptions<'_>, answers: &mut Answers) {
    let scenarios: Vec<Scenario> = places.iter().map(|p| p.scenario.clone()).collect();
    let total = places.len() as u64 * u64::from(runs);
    let tasks = (1..=u64::from(runs)).flat_map(|seed| {
        scenarios.iter().enumerate().map(move |(id, scenario)| Task { scenario, seed, series: true, id })
    });
    let mut done = 0;
    let one = |task: &Task<'_>, options: &RunOptions<'_>| run(task.scenario, task.seed, options);
    run_each(tasks, total, threads, options, &one, &mut |task, result| match result {
        Ok(result) => {
            done += 1;
            places[task.id].runs.push(result);
        }
        Err(RunError::Stopped { .. }) => {}
        Err(e) => {
            done += 1;
            answers.failed.push(format!("{}, seed {}: {e}", task.scenario.label(), task.seed));
        }
    });
    answers.undone += total - done;
}

fn read(case: &Case, controllers: &[String], places: &[Place]) -> CaseAnswer {
    let checks = case.checks.iter().map(|check| CheckAnswer {
        quantity: check.quantity.into(),
        unit: check.unit.into(),
        bound: check.bound,
        why: check.why.into(),
        values: (controllers.iter().enumerate())
            .map(|(i, controller)| {
                let own: Vec<&Place> = places.iter().filter(|p| p.who == Who::Controller(i)).collect();
                let mut worst: Option<(Option<f64>, &Place)> = None;
                for place in &own {
                    let is_beside =
                        |p: &&Place| p.variant == place.variant && [Who::All, Who::Beside(i)].contains(&p.who);
                    let beside = places.iter().find(is_beside);
                    let values: Vec<Option<f64>> = (place.runs.iter().enumerate())
                        .map(|(seed, run)| {
                            let beside = beside.and_then(|b| b.runs.get(seed)).and_then(Reading::of);
                            check.read(&Runs { run: Reading::of(run)?, beside })
                        })
                        .collect();
                    let value = mean_of(&values);
                    if worst.is_none_or(|(known, _)| check.bound.is_worse(value, known)) {
                        worst = Some((value, place));
                    }
                }
                let (value, variant) = worst.map_or((None, None), |(v, p)| (v, p.scenario.variant.clone()));
                let variant = if own.len() > 1 { variant.unwrap_or_default() } else { String::new() };
                Value { controller: controller.clone(), value, variant, kept: check.bound.keeps(value) }
            })
            .collect(),
    });
    CaseAnswer {
        command: case.command(controllers.first().map_or("sluice", String::as_str)),
        variants: case.variants(),
        checks: checks.collect(),
    }
}
