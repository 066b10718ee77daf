//! `weir estimator`.

use crate::Done;
use crate::args::{EstimatorCheckArgs, EstimatorCommand, EstimatorServeArgs};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::fold;
use weir_estimator::{Checked, PREFIX};
use weir_lab::scenario::{InputError, suggest};

pub(crate) fn estimator(session: &Session, command: &EstimatorCommand) -> Done {
    match command {
        EstimatorCommand::Check(args) => check(args),
        EstimatorCommand::Serve(args) => serve(session, args),
    }
}

fn check(args: &EstimatorCheckArgs) -> Done {
    let command = args.command.strip_prefix(PREFIX).unwrap_or(&args.command);
    let refused = |e: weir_estimator::Fault| InputError::whole("weir estimator check", e.to_string());
    let checked = weir_estimator::check(command).map_err(refused)?;
    if args.json {
        print_report("estimator", &checked)?;
    } else {
        print(&text(&checked))?;
    }
    match checked.findings.iter().filter(|f| f.is_fault).count() {
        0 => Ok(()),
        faults => Err(Failure::Work(format!("{} has {faults} faults", checked.name))),
    }
}

fn text(c: &Checked) -> String {
    let mut out = format!(
        "{}: a call of 60 s at 2 Mbit/s, target {:.2} Mbit/s; {} events at {:.1} us each, {:.0} times real time\n",
        c.name,
        c.target_bps * 1e-6,
        c.events,
        c.us_per_event,
        c.times_real_time
    );
    for f in &c.findings {
        let kind = if f.is_fault { "fault" } else { "remark" };
        out += &format!("{kind}: {}\n", f.text);
    }
    if c.findings.is_empty() {
        out += "No faults found.\n";
    }
    fold(&out)
}

fn serve(session: &Session, args: &EstimatorServeArgs) -> Done {
    suggest::find(&session.registry, "CONTROLLER", &args.controller)?;
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    weir_estimator::serve(&args.controller, &session.registry, input, output).map_err(Failure::work)
}
