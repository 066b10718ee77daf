//! Arguments of `weir media clip`.

use clap::ValueHint;
use std::path::PathBuf;
use weir_media::FrameRate;

pub(super) const EXAMPLES: &str = "\
Clips: talking-head (a news reader, the camera still), hand-held (a person talking, the camera in a hand, a building),
sports (players, a fast camera, a crowd), movie (cuts between such scenes, titles). The same arguments give the same bytes on every machine.

Examples:
  weir media clip talking-head
  weir media clip sports --size 1280x720 --fps 25 --frames 100 --out sports.y4m
  weir media clip hand-held --out - | ffplay -";

#[derive(clap::Args, Debug)]
pub(crate) struct ClipArgs {
    /// Its name, with a size and a rate where wanted: NAME:640x480@15
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Size; 640x480 if absent
    #[arg(long, value_name = "WxH", value_parser = crate::values::size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Pictures a second; 30 if absent
    #[arg(long, alias = "rate", value_name = "N", value_parser = crate::values::frame_rate)]
    pub(crate) fps: Option<FrameRate>,
    /// How many pictures; 300 if absent
    #[arg(long, value_name = "N")]
    pub(crate) frames: Option<u64>,
    /// Seed of texture, motion and grain
    #[arg(long, value_name = "S", default_value = "1")]
    pub(crate) seed: u64,
    /// The file to write, - for standard output; NAME.y4m if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
