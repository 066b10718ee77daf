//! `weir live emulate`.

use super::with_privilege;
use crate::Done;
use crate::args::OneArgs;
use crate::args::live::EmulateArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use crate::values::{queue, rate};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_lab::scenario::suggest;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_live::clock::Clock;
use weir_live::emulate::{Config, Emulator, EmulatorError, Network};
use weir_live::netns::{Namespace, Process};
use weir_live::tun::Side;
use weir_testbed::{emulated_link, emulated_path};
use weir_units::{TimeDelta, Timestamp};

/// Head start of the right program, so that a server is ready when its client starts.
const HEAD_START: Duration = Duration::from_millis(300);
/// Interval of checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn emulate(session: &Session, args: &EmulateArgs) -> Done {
    let config = network(session, args)?;
    with_privilege(args.quiet)?;
    let mut emulator = Emulator::new(&config, ()).map_err(failure)?;
    if !args.quiet {
        for side in [Side::Left, Side::Right] {
            let name = if side == Side::Left { "left: " } else { "right:" };
            remark(&format!("{name} {}, {}  {}", side.ipv4(0), side.ipv6(0), emulator.namespace(side).enter()));
        }
        if args.left.is_none() && args.right.is_none() && args.command.is_empty() && args.duration.is_none() {
            remark("Ctrl-C ends it");
        }
    }
    let mut right = start(args.right.as_deref().map(shell).as_deref(), Side::Right, args, &emulator)?;
    let left = args.left.as_deref().map(shell).unwrap_or_else(|| args.command.clone());
    let has_programs = right.is_some() || !left.is_empty();
    let end = args.duration.map(Timestamp::from_secs_f64);
    let stop = AtomicBool::new(false);
    let (accuracy, ended) = std::thread::scope(|scope| {
        let stop = &stop;
        let mut left_process = None;
        // Programs run on the namespaces' threads: a handle on them does not borrow from the emulator.
        let started = (|| {
            if right.is_some() && !left.is_empty() {
                std::thread::sleep(HEAD_START);
            }
            left_process = start(Some(&left[..]).filter(|l| !l.is_empty()), Side::Left, args, &emulator)?;
            Ok::<(), Failure>(())
        })();
        let thread = scope.spawn(move || {
            let look = |_, _: &mut Network<()>| std::ops::ControlFlow::Continue(());
            emulator.hurry();
            let accuracy = emulator.run(&Clock::starting_now(), end, stop, TimeDelta::from_millis(100), look);
            (accuracy, emulator)
        });
        let mut ended: Option<ExitStatus> = None;
        while started.is_ok() && !thread.is_finished() && !session.stopped() && ended.is_none() {
            std::thread::sleep(LOOK);
            if let Some(p) = left_process.as_mut().or(right.as_mut()) {
                ended = p.try_wait().ok().flatten();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let accuracy = match thread.join() {
            Ok((accuracy, emulator)) => {
                drop((left_process, right.take(), emulator));
                accuracy.map_err(Failure::work)
            }
            Err(panic) => std::panic::resume_unwind(panic),
        };
        started.and(accuracy).map(|a| (a, ended))
    })?;
    if args.json {
        print_report("emulate", &accuracy)?;
    } else {
        print(&accuracy.to_string())?;
    }
    match ended {
        Some(status) if !status.success() => Err(Failure::work(format!("the program has ended with {status}"))),
        None if session.stopped() && has_programs => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

fn shell(command: &str) -> Vec<String> {
    vec!["sh".into(), "-c".into(), command.to_owned()]
}

fn start(command: Option<&[String]>, side: Side, args: &EmulateArgs, e: &Emulator) -> Result<Option<Process>, Failure> {
    let Some((program, rest)) = command.and_then(<[String]>::split_first) else { return Ok(None) };
    let mut command = Namespace::command(program).map_err(Failure::work)?;
    command.args(rest);
    command.env("WEIR_HERE", side.ipv4(0).to_string()).env("WEIR_PEER", side.other().ipv4(0).to_string());
    if args.json {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    if side == Side::Right {
        command.stdin(Stdio::null());
    }
    e.namespace(side).start(command).map(Some).map_err(Failure::work)
}

/// The network that the arguments describe.
fn network(session: &Session, args: &EmulateArgs) -> Result<Config, Failure> {
    let Some(name) = &args.scenario else {
        let scenario = described(session, args)?;
        return Ok(emulated_path(&scenario, args.seed.unwrap_or(scenario.seed)));
    };
    let one = OneArgs {
        scenario: name.clone(),
        controller: None,
        variant: args.variant.clone(),
        seed: args.seed,
        quiet: args.quiet,
    };
    let (scenario, seed) = session.one(&one)?;
    if let Some(link) = scenario.links.iter().find(|l| l.assist.is_some()).filter(|_| !args.quiet) {
        let text =
            "a program's own sources are not known, so its base station sends no notices; `weir live testbed` has it";
        remark(&format!("link `{}`: {text}", link.name));
    }
    match &args.link {
        None => Ok(emulated_path(&scenario, seed)),
        Some(link) => emulated_link(&scenario, link, seed).ok_or_else(|| {
            let names: Vec<&str> = scenario.links.iter().map(|l| &l.name[..]).collect();
            let error = InputError::whole("--link", format!("`{name}` has no link `{link}`"));
            error.help(suggest::help(link, &names)).into()
        }),
    }
}

/// A scenario of the one link that the arguments describe, read as a scenario file is.
fn described(session: &Session, args: &EmulateArgs) -> Result<Scenario, Failure> {
    let text = |value: &str| format!("{value:?}");
    let mut link = format!("rate = {}\n", text(&rate(args.rate.as_deref().unwrap_or("unlimited"))));
    link += &format!("delay = {}\n", text(args.delay.as_deref().unwrap_or("0 ms")));
    if let Some(discipline) = &args.discipline {
        link += &queue(discipline, args.queue.as_deref());
    } else if let Some(queue) = &args.queue {
        link += &format!("queue = {}\n", text(queue));
    }
    if let Some(loss) = args.loss {
        link += &format!("loss = {loss:?}\n");
    }
    if let Some(jitter) = &args.jitter {
        link += &format!("jitter = {{ max = {} }}\n", text(jitter));
    }
    if let Some(reverse) = &args.reverse_rate {
        link += &format!("reverse = {{ rate = {} }}\n", text(&rate(reverse)));
    }
    let file = format!(
        "title = \"the command line\"\nduration = \"1 s\"\n[links.link]\n{link}[udp.any]\nrate = \"1 Mbps\"\npayload = \"100 B\"\n"
    );
    let read = ScenarioFile::parse("the command line", &file, ".".as_ref(), &session.registry);
    let scenario = read.and_then(|file| file.scenario(None, None, &session.registry));
    Ok(scenario.map_err(|e| at_option(e, args))?)
}

/// An error of the scenario that was made from the arguments, at the option that it is about.
fn at_option(error: InputError, args: &EmulateArgs) -> InputError {
    let Some(field) = error.field_path().and_then(|path| path.strip_prefix("links.link.")) else { return error };
    let option = match field.split('.').next().unwrap_or_default() {
        "rate" => "--rate",
        "delay" => "--delay",
        "loss" => "--loss",
        "jitter" => "--jitter",
        "reverse" => "--reverse-rate",
        "queue" if args.discipline.is_none() || field == "queue.limit" => "--queue",
        "queue" => "--discipline",
        _ => return error,
    };
    let at = InputError::whole(option, error.message());
    error.help_text().map_or(at.clone(), |help| at.help(help))
}

fn failure(e: EmulatorError) -> Failure {
    Failure::work(e)
}
