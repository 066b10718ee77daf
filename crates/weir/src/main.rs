//! The `weir` command.

use std::process::ExitCode;
use weir_cc::Registry;

fn main() -> ExitCode {
    let mut registry = Registry::builtin();
    #[cfg(feature = "rtc-gcc")]
    registry.add::<weir_adapters::rtc_gcc::RtcGcc>();
    #[cfg(not(feature = "rtc-gcc"))]
    registry.add_family("rtc-gcc", |name| {
        let why = "this build has no estimator of webrtc-rs: cargo build --release --features rtc-gcc".into();
        Err(weir_cc::tunable::SetupError::Refused { controller: name.into(), why })
    });
    weir::main(registry)
}
