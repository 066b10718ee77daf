//! The `weir` command.

use std::process::ExitCode;
use weir_cc::Registry;
use weir_webrtc::rtc_gcc::RtcGcc;

fn main() -> ExitCode {
    let mut registry = Registry::builtin();
    registry.add::<RtcGcc>();
    weir::main(registry)
}
