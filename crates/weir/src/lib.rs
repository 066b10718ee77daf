//! The `weir` command line, as a library: a program with custom controllers passes its registry and has the whole
//! command, as in `examples/custom_controller.rs`.

mod args;
mod bench;
#[cfg(target_os = "linux")]
mod call;
mod clip;
mod compare;
#[cfg(feature = "coverage")]
mod coverage;
#[cfg(target_os = "linux")]
mod dccp;
mod emulate;
mod explain;
mod list;
mod output;
mod overlay;
mod pcap;
mod policies;
mod progress;
mod quality;
mod reading;
mod reproduce;
mod result_tables;
mod run;
mod scenario;
mod schema;
mod scoreboard;
mod scorecard;
mod session;
mod sweep;
mod tables;
mod testbed;
mod tune;
mod twin;
mod values;

use args::{Args, Command, ScenarioCommand, TwinCommand};
use clap::Parser;
use output::Failure;
use session::Session;
use std::process::ExitCode;
use weir_cc::Registry;

/// Runs the command line of this process with the controllers of a registry.
pub fn main(registry: Registry) -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => {
            // A closed pipe, as in `weir --help | head`, is no error of ours.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(output::USAGE));
        }
    };
    let session = Session::new(policies::with_policies(registry));
    let done = match args.command {
        None => compare::compare(&session, &args.compare),
        Some(Command::Compare(a)) => compare::compare(&session, &a),
        Some(Command::Reproduce(a)) => reproduce::reproduce(&session, &a),
        Some(Command::Sweep(a)) => sweep::sweep(&session, &a),
        Some(Command::Run(a)) => run::run(&session, &a),
        Some(Command::Explain(a)) => explain::command(&session, &a),
        Some(Command::List(a)) => list::list(&session, &a),
        Some(Command::Scenario { command }) => match command {
            ScenarioCommand::Check { files } => scenario::check(&session, &files),
            ScenarioCommand::Show { name } => scenario::show(&session, &name),
            ScenarioCommand::Schema => scenario::schema(),
        },
        Some(Command::Scorecard(a)) => scorecard::scorecard(&session, &a),
        Some(Command::Scoreboard(a)) => scoreboard::scoreboard(&session, &a),
        Some(Command::Tune(a)) => tune::tune(&session, &a),
        Some(Command::Twin { command }) => match command {
            TwinCommand::List => twin::list(&session),
            TwinCommand::Run(a) => twin::run_twins(&session, &a),
        },
        Some(Command::Schema { command }) => schema::print_schema(&command),
        Some(Command::Pcap(a)) => pcap::pcap(&session, &a),
        Some(Command::Emulate(a)) => emulate::emulate(&session, &a),
        #[cfg(target_os = "linux")]
        Some(Command::Call { command }) => call::call(&session, &command),
        #[cfg(target_os = "linux")]
        Some(Command::Dccp { command }) => dccp::dccp(&session, &command),
        #[cfg(not(target_os = "linux"))]
        Some(Command::Call(_)) => output::needs_linux("weir call", "the kernel's packet timestamps and eventfd"),
        #[cfg(not(target_os = "linux"))]
        Some(Command::Dccp(_)) => output::needs_linux("weir dccp", "the kernel's packet timestamps and eventfd"),
        #[cfg(feature = "coverage")]
        Some(Command::Coverage { command }) => coverage::coverage(&session, &command),
        Some(Command::Quality(a)) => quality::quality(&session, &a),
        Some(Command::Clip(a)) => clip::clip(&session, &a),
        Some(Command::Testbed(a)) => testbed::testbed(&session, &a),
        Some(Command::Overlay(a)) => overlay::overlay(&session, &a),
        Some(Command::Bench(a)) => bench::bench(&session, &a),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The result of a command.
type Done = Result<(), Failure>;
