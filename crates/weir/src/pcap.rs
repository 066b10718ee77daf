//! `weir pcap`.

use crate::Done;
use crate::args::{At, PcapArgs};
use crate::output::{Failure, remark};
use crate::run::{failure, stem};
use crate::session::Session;
use std::path::PathBuf;
use weir_lab::report::capture::{self, CaptureError, CaptureOptions};
use weir_lab::run::CapturePoint;

pub(crate) fn pcap(session: &Session, args: &PcapArgs) -> Done {
    let (scenario, seed) = session.one(&args.one)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.pcapng", stem(&scenario.label()))));
    let at = match args.at {
        At::Sender => CapturePoint::Sender,
        At::Receiver => CapturePoint::Receiver,
        At::Link => CapturePoint::Link,
    };
    let what = CaptureOptions { at, zeros: args.zeros };
    let packets = session
        .with_progress(args.one.quiet, false, |options, progress| {
            progress.doing(format!("{}, seed {seed}", scenario.label()));
            capture::write(&scenario, seed, options, &out, what)
        })
        .map_err(|e| match e {
            CaptureError::Run(e) => failure(*e),
            e => Failure::work(e),
        })?;
    if !args.one.quiet {
        remark(&format!("{packets} packets: {}", out.display()));
    }
    Ok(())
}
