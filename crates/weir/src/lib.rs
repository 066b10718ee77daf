//! The command line of the program `weir`, for programs that have controllers of their own: see `examples/custom_controller.rs`.

pub use weir_cli::main;
