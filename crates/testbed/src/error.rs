//! Errors of live runs.

use std::io;
use weir_lab::run::RunError;
use weir_live::call::CallError;
use weir_live::emulate::EmulatorError;
use weir_live::netns::SetupError;

/// Why a live run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario exceeds what one machine can run in real time.
    #[error("{what}")]
    Cannot {
        /// The part that exceeds it, and the alternative.
        what: String,
    },
    /// An end cannot be made, or the run was stopped.
    #[error("{0}")]
    Run(Box<RunError>),
    /// The emulator cannot be made.
    #[error("{0}")]
    Emulator(Box<EmulatorError>),
    /// A namespace or program fails.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A call fails.
    #[error("flow `{flow}`: {source}")]
    Call {
        /// The flow.
        flow: String,
        /// The cause.
        source: Box<CallError>,
    },
    /// A device fails.
    #[error("the emulator: {0}")]
    Device(io::Error),
    /// The capture cannot be written.
    #[error("cannot write {file}: {source}")]
    Capture {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
}

impl From<RunError> for LiveError {
    fn from(e: RunError) -> Self {
        Self::Run(Box::new(e))
    }
}

impl From<EmulatorError> for LiveError {
    fn from(e: EmulatorError) -> Self {
        match e {
            EmulatorError::Setup(e) => Self::Setup(e),
            e => Self::Emulator(Box::new(e)),
        }
    }
}
