//! The `weir` command.

use std::process::ExitCode;
use weir_cc::Registry;

fn main() -> ExitCode {
    weir::main(Registry::builtin())
}
