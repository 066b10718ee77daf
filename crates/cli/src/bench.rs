//! `weir bench`.

mod against;
mod performance;
mod tables;

#[cfg(all(test, feature = "schema"))]
pub(crate) use against::Json as AgainstJson;

use crate::Done;
use crate::args::{BenchArgs, Ns3};
use crate::output::{Failure, print, print_report, remark};
use crate::progress::Progress;
use crate::session::Session;
use weir_bench::ns3::{self, Figures};
use weir_bench::suite::{BenchError, Suite, TRIES};
use weir_lab::scenario::InputError;

pub(crate) fn bench(session: &Session, args: &BenchArgs) -> Done {
    if !(args.scale.is_finite() && args.scale > 0.0 && args.scale <= 1_000.0) {
        let what = format!("{}: expected a number above 0 and up to 1000", args.scale);
        return Err(InputError::whole("--scale", what).into());
    }
    if cfg!(debug_assertions) && !args.quiet {
        remark("this is a debug build, whose speed is not representative; use cargo run --release -- bench");
    }
    if let Some(other) = &args.against {
        return against::compare(session, args, other);
    }
    // Before minutes of work.
    let page = if args.markdown { Some(performance::open()?) } else { None };
    let ns3 = beside(session, args)?;
    let progress = Progress::share(args.quiet);
    let begins = |share: f64, name: &str| {
        progress.set_share(share);
        progress.set_message(name.to_owned());
    };
    let suite = Suite { registry: &session.registry, stop: &session.stop, scale: args.scale, begins: &begins };
    let report = suite.measure(&ns3).map_err(failure)?;
    drop(progress);
    match page {
        Some(page) => page.write(&report, args.quiet),
        None if args.json => print_report("bench", &report),
        None => print(&tables::text(&report)),
    }
}

fn failure(e: BenchError) -> Failure {
    match e {
        BenchError::Stopped => Failure::Interrupted,
        BenchError::Failed(what) => Failure::Work(what),
    }
}

/// ns-3's runs of the same scenarios, if they are wanted and it is installed.
fn beside(session: &Session, args: &BenchArgs) -> Result<Vec<Figures>, Failure> {
    if args.ns3 == Ns3::Never {
        return Ok(Vec::new());
    }
    let say = |line: &str| {
        if !args.quiet {
            remark(line);
        }
    };
    match ns3::measure(args.scale, TRIES, &session.stop, &say) {
        Ok(figures) => Ok(figures),
        Err(ns3::Trouble::Interrupted) => Err(Failure::Interrupted),
        Err(ns3::Trouble::Absent(why)) if args.ns3 == Ns3::Always => Err(Failure::Work(why)),
        Err(ns3::Trouble::Absent(why)) => {
            say(&format!("ns-3 is not measured: {why}"));
            Ok(Vec::new())
        }
    }
}
