//! Other programs play what Weir sends, and send what Weir plays: GStreamer and ffmpeg.

mod receiving;
mod sending;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_cc::{Limits, Registry, Setup};
use weir_live::call::{CallObserver, DecodeSummary, LiveEnd, Peer, ReceivingVideo, RunUntil, VideoReceive};
use weir_live::clock::Clock;
use weir_live::sdp::{Description, Direction, MediaSection, MediaTransport, Payload};
use weir_live::srtp::{SrtpKey, SrtpSession, Suite};
use weir_live::udp::{UdpConfig, Waker};
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::quality::{PSNR_CAP, PlaneErrors};
use weir_media::y4m::{Unseekable, Y4mReader};
use weir_media::{
    EncodedSource, EncoderConfig, OnDamage, Picture, PictureSource, Source, VideoCodec, VideoDecoder, VideoEncoder,
};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, Endpoint, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

const SIZE: (u32, u32) = (320, 240);
const FRAME: usize = 320 * 240 * 3 / 2;
/// Pictures of a call: 2 s.
const PICTURES: u64 = 60;
const SSRC: u32 = 0x1234_5678;

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: no {program} on this machine");
    }
    found
}

fn has_elements(names: &[&str]) -> bool {
    let found = |n: &&str| Command::new("gst-inspect-1.0").arg(n).output().is_ok_and(|o| o.status.success());
    match names.iter().find(|n| !found(n)) {
        Some(n) => println!("skipped: no GStreamer element {n} on this machine"),
        None => return true,
    }
    false
}

fn encoder(codec: VideoCodec) -> Option<Box<dyn VideoEncoder>> {
    let config = EncoderConfig { may_drop: false, ..EncoderConfig::live(SIZE.0, SIZE.1) };
    weir_codecs::encoder(codec, &config).map_err(|e| println!("skipped: {e}")).ok()
}

fn decoder(codec: VideoCodec) -> Option<Box<dyn VideoDecoder>> {
    weir_codecs::decoder(codec).map_err(|e| println!("skipped: {e}")).ok()
}

fn clip() -> Clip {
    let spec = ClipSpec::new(Character::TalkingHead, SIZE.0, SIZE.1, "30".parse().expect("a rate"));
    Clip::new(ClipSpec { pictures: Some(PICTURES), ..spec }).expect("a clip")
}

/// A program that is ended in any case.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it is there"))
    }
    /// Interrupts it, as by Ctrl-C, and waits for its end.
    fn interrupt(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT);
        self.wait();
    }
    fn wait(&mut self) {
        for _ in 0..200 {
            if self.0.try_wait().expect("it can be waited for").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The pictures of a file of I420.
fn pictures(path: &Path) -> Vec<Picture> {
    let bytes = fs::read(path).unwrap_or_default();
    let picture = |b: &[u8]| Picture::from_i420(SIZE.0, SIZE.1, b.to_vec()).expect("the size is right");
    bytes.chunks_exact(FRAME).map(picture).collect()
}

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("weir-interop-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder for files");
    dir
}

/// Words of a pipeline as shell arguments: exclamation marks and brackets are special there.
fn shell(pipeline: &str) -> String {
    let quoted = |w: &str| format!("'{}'", w.replace('"', ""));
    pipeline.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
}
