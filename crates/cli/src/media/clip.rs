//! `weir media clip`.

use super::quality::{shown, whole, wrong};
use crate::Done;
use crate::args::ClipArgs;
use crate::output::{Failure, remark};
use crate::progress::Progress;
use crate::session::Session;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use weir_media::clip::{Clip, ClipSpec};
use weir_media::y4m::Y4mWriter;
use weir_media::{Picture, PictureSource};

/// Pictures where nothing is said: ten seconds at the usual rate.
const CLIP_PICTURES: u64 = 300;

pub(super) fn clip(session: &Session, args: &ClipArgs) -> Done {
    let mut spec: ClipSpec = args.name.parse().map_err(|e| wrong(&args.name, e))?;
    if let Some((width, height)) = args.size {
        (spec.width, spec.height) = (width, height);
    }
    spec.rate = args.fps.unwrap_or(spec.rate);
    spec.pictures = Some(args.frames.unwrap_or(CLIP_PICTURES));
    spec.seed = args.seed;
    let mut clip = Clip::new(spec).map_err(|e| wrong(&args.name, e))?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.y4m", spec.character)));
    if out.as_os_str() == "-" {
        let stdout = BufWriter::new(io::stdout().lock());
        return draw(session, args, &mut clip, stdout).map(|_| ());
    }
    let pictures = whole(&out, |file| draw(session, args, &mut clip, file))?;
    if !args.quiet {
        let (w, h) = (spec.width, spec.height);
        remark(&format!("{pictures} pictures of {w}x{h} at {} a second: {}", spec.rate, out.display()));
    }
    Ok(())
}

fn draw(session: &Session, args: &ClipArgs, clip: &mut Clip, out: impl Write) -> Result<u64, Failure> {
    let failed = |e: io::Error| match e.kind() {
        ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::work(format!("cannot write {}: {e}", shown(args.out.as_deref()))),
    };
    let spec = *clip.spec();
    let progress = Progress::pictures(args.quiet, spec.pictures);
    let mut picture = Picture::new(spec.width, spec.height).map_err(Failure::work)?;
    let mut writer = Y4mWriter::new(out, clip.size(), spec.rate).map_err(failed)?;
    let mut pictures = 0;
    while clip.next_picture(&mut picture).map_err(Failure::work)? {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        writer.write(&picture).map_err(failed)?;
        pictures += 1;
        progress.set(pictures);
    }
    writer.finish().map_err(failed)?;
    Ok(pictures)
}
