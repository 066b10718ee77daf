//! The grammar of `weir pcap`.

use super::OneArgs;
use clap::ValueHint;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct PcapArgs {
    #[command(flatten)]
    pub(crate) one: OneArgs,
    /// Where packets are captured; said in the file's comment
    #[arg(long, value_name = "POINT", value_enum, default_value = "receiver")]
    pub(crate) at: At,
    /// The file to write; the scenario's name with .pcapng if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Write zeros where the simulator carries a payload's length only; such packets are truncated if absent
    #[arg(long)]
    pub(crate) zeros: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// At the media sender: media as it leaves, feedback as it arrives; loss on the path does not show
    Sender,
    /// At the media receiver: media as it arrives, feedback as it leaves; lost packets are missing
    Receiver,
    /// Behind the bottleneck: media as it comes out of the link, feedback as it enters the link back
    Link,
}
