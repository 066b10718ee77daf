//! The `weir` command line, as a library: a program with custom controllers passes its registry and has the whole
//! command, as in `examples/custom_controller.rs`.
//!
//! `args/` has the grammar, and each verb a file or folder of its name here. Nothing is decided here: commands call the
//! libraries and show what they return.

mod absent;
mod args;
mod bench;
mod compare;
#[cfg(feature = "coverage")]
mod coverage;
#[cfg(feature = "dist")]
mod dist;
mod episodes;
mod estimator;
mod fit;
mod former;
mod gate;
mod help;
mod judge;
mod layers;
#[cfg(target_os = "linux")]
mod live;
mod media;
mod open;
mod output;
mod overlay;
mod policies;
mod progress;
mod reading;
mod reproduction;
mod result_tables;
mod run;
mod search;
mod session;
mod show;
mod tables;
mod values;

use args::{Args, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use output::Failure;
use session::Session;
use std::ffi::OsString;
use std::process::ExitCode;
use weir_cc::Registry;

/// Runs the command line of this process with the controllers of a registry.
pub fn main(registry: Registry) -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(renamed) = former::renamed(&words) {
        // Once, where the program starts itself again in a namespace.
        if !session::is_started_again() {
            output::remark(&renamed.note);
        }
        words = renamed.words;
    }
    if let Some(failure) = absent::answer(&words) {
        return failure.report();
    }
    let args = match parse(words) {
        Ok(args) => args,
        Err(e) => return complain(&e),
    };
    let mut registry = policies::with_policies(registry);
    // Only what was typed here may start a program, not what a scenario has.
    let typed = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let faults = weir_estimator::add_to(&mut registry, weir_estimator::Permits::of_words(typed));
    let session = Session::new(registry);
    let done = match args.command {
        None => compare::alone(&session, &args.compare),
        Some(Command::Run(a)) => run::run(&session, &a),
        Some(Command::Compare(a)) => compare::compare(&session, &a),
        Some(Command::Judge { command }) => judge::judge(&session, &command),
        Some(Command::Search { command }) => search::search(&session, &command),
        #[cfg(target_os = "linux")]
        Some(Command::Live { command }) => live::live(&session, &command),
        Some(Command::Media { command }) => media::media(&session, &command),
        Some(Command::Show { command }) => show::show(&session, &command),
        Some(Command::Bench(a)) => bench::bench(&session, &a),
        Some(Command::Open(a)) => open::open(&session, &a),
        Some(Command::Fit(a)) => fit::fit(&session, &a),
        Some(Command::WhatIf(a)) => fit::whatif(&session, &a),
        Some(Command::Estimator { command }) => estimator::estimator(&session, &command),
        Some(Command::Gate(a)) => gate::gate(&session, &a),
        Some(Command::Overlay(a)) => overlay::overlay(&session, &a),
        Some(Command::Layers(a)) => layers::layers(&session, &a),
        #[cfg(feature = "dist")]
        Some(Command::Completions(a)) => dist::completions(&a),
        #[cfg(feature = "dist")]
        Some(Command::Manual(a)) => dist::manual(&a),
        #[cfg(feature = "coverage")]
        Some(Command::Coverage { command }) => coverage::coverage(&session, &command),
    };
    let broken = faults.take();
    broken.iter().for_each(|fault| output::remark(fault));
    match done {
        Ok(()) if broken.is_empty() => ExitCode::SUCCESS,
        Ok(()) => Failure::Work("numbers of a flow whose estimator failed are those of its floor from then on".into())
            .report(),
        Err(failure) => failure.report(),
    }
}

/// Messages of the standard library about values that it cannot read, each with the message that stands in its place.
const UNREADABLE: [(&str, &str); 8] = [
    ("invalid digit found in string", "expected a whole number, such as 5"),
    ("number would be zero for non-zero type", "expected a whole number above zero, such as 5"),
    ("cannot parse integer from empty string", "expected a whole number, such as 5"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid float literal", "expected a number, such as 0.5"),
    ("cannot parse float from empty string", "expected a number, such as 0.5"),
    ("invalid IP address syntax", "expected an IP address, such as 192.0.2.7"),
    ("invalid socket address syntax", "expected an IP address and a port, such as 127.0.0.1:8090"),
];

/// Prints what is wrong with the command line, or the help that it asks for, and returns the exit status.
fn complain(e: &clap::Error) -> ExitCode {
    let said =
        UNREADABLE.into_iter().find(|(std, _)| e.kind() == ErrorKind::ValueValidation && e.to_string().contains(std));
    match said {
        Some((std, instead)) => output::remark(e.to_string().replace(std, instead).trim_end()),
        None => match e.print() {
            // A closed pipe, as in `weir --help | head`, is no error of ours.
            Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
                return Failure::Work(format!("the help cannot be written: {failed}")).report();
            }
            _ => {}
        },
    }
    ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(output::USAGE))
}

/// The same grammar, in which a number below zero is an option's value, so that the error names the option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.allow_negative_numbers(true).mut_subcommands(with_negative_numbers)
}

/// The grammar of the command line, whose help says which commands this build lacks.
fn grammar() -> clap::Command {
    let mut command = help::with_whole_paragraphs(with_negative_numbers(Args::command()));
    if let Some(lacking) = absent::listed() {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        command = command.after_help(format!("{lacking}\n\n{examples}"));
    }
    command
}

fn parse(words: Vec<OsString>) -> Result<Args, clap::Error> {
    let words: Vec<OsString> = std::iter::once(OsString::from("weir")).chain(words).collect();
    let shows_help = |e: &clap::Error| {
        matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
    };
    let matches = match with_negative_numbers(Args::command()).try_get_matches_from(&words) {
        // Only a help text needs whole paragraphs, which are a seventh of the program's start.
        Err(e) if shows_help(&e) => grammar().try_get_matches_from(&words),
        matches => matches,
    }?;
    Args::from_arg_matches(&matches)
}

/// The result of a command.
type Done = Result<(), Failure>;
