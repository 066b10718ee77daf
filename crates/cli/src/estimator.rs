//! `weir estimator`.

use crate::Done;
use crate::args::{EstimatorCheckArgs, EstimatorCommand, EstimatorServeArgs};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::fold;
use weir_estimator::protocol::{Form, Side};
use weir_estimator::{CALLS, Checked, PREFIX};
use weir_lab::scenario::{InputError, suggest};

/// Calls whose times are compared with `--time`: an odd number, which has a median.
const TIMED: u32 = 9;

pub(crate) fn estimator(session: &Session, command: &EstimatorCommand) -> Done {
    match command {
        EstimatorCommand::Check(args) => check(args),
        EstimatorCommand::Serve(args) => serve(session, args),
    }
}

fn check(args: &EstimatorCheckArgs) -> Done {
    let command = args.command.strip_prefix(PREFIX).unwrap_or(&args.command);
    let refused = |e: weir_estimator::Fault| InputError::whole("weir estimator check", e.to_string());
    let checked = weir_estimator::check(command, if args.time { TIMED } else { CALLS }).map_err(refused)?;
    if args.json {
        print_report("estimator", &checked)?;
    } else {
        print(&text(&checked))?;
    }
    match checked.findings.iter().filter(|f| f.is_fault).count() {
        0 => Ok(()),
        1 => Err(Failure::Work(format!("{} has a fault", checked.name))),
        faults => Err(Failure::Work(format!("{} has {faults} faults", checked.name))),
    }
}

fn text(c: &Checked) -> String {
    let form = match c.form {
        Form::Json => "JSON",
        Form::Binary => "the binary form",
    };
    let ends: Vec<&str> = c.sides.iter().map(|s| if *s == Side::Sender { "sender" } else { "receiver" }).collect();
    // Numbers of a call that was not made to its end say nothing.
    let is_whole = !c.findings.iter().any(|f| f.is_fault);
    let mut out = if is_whole {
        numbers(c, form, &ends)
    } else {
        format!("{}, at the {}, in {form}\n", c.name, ends.join(" and the "))
    };
    for f in &c.findings {
        let kind = if f.is_fault { "fault" } else { "remark" };
        out += &format!("{kind}: {}\n", f.text);
    }
    if c.findings.is_empty() {
        out += "No faults found.\n";
    }
    fold(&out)
}

/// Numbers of the calls of a check.
fn numbers(c: &Checked, form: &str, ends: &[&str]) -> String {
    format!(
        "{}, at the {}, in {form}: a call of 60 s at 2 Mbit/s, target {:.2} Mbit/s, {:.0} times real time\n\
         {} events of {:.0} bytes in {} turns; {:.2} us an event, {:.2} at best of {} calls\n",
        c.name,
        ends.join(" and the "),
        c.target_bps * 1e-6,
        c.times_real_time,
        c.events,
        c.bytes_per_event,
        c.turns,
        c.us_per_event,
        c.us_per_event_least,
        c.calls
    )
}

fn serve(session: &Session, args: &EstimatorServeArgs) -> Done {
    suggest::find(&session.registry, "CONTROLLER", &args.controller)?;
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let form = if args.binary { Form::Binary } else { Form::Json };
    weir_estimator::serve(&args.controller, form, &session.registry, input, output).map_err(Failure::work)
}
