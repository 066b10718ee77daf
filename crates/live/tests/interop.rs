//! Other programs play what Weir sends, and send what Weir plays: GStreamer and ffmpeg.

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
use weir_live::sdp::{Description, Direction, MediaSection, MediaTransport, Payload, Section, Sources};
use weir_live::srtp::{SrtpKey, SrtpSession, Suite};
use weir_live::udp::{UdpConfig, Waker};
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::quality::{PSNR_CAP, PlaneErrors};
use weir_media::y4m::{Unseekable, Y4mReader};
use weir_media::{
    EncodedSource, EncoderConfig, OnDamage, Picture, PictureSource, Source, VideoCodec, VideoDecoder, VideoEncoder,
};
use weir_session::allocation::MediaKind;
use weir_session::{Endpoint, EndpointConfig, ReceiveConfig, SendConfig};
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

/// An unused port of this machine, and the one above it.
fn free_port() -> u16 {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("an address").port();
        if port.is_multiple_of(2) && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// Waits until a socket listens.
fn wait_for_port(port: u16) -> bool {
    let text = format!(":{port:04X} ");
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ["/proc/net/udp", "/proc/net/udp6"].iter().any(|f| fs::read_to_string(f).is_ok_and(|t| t.contains(&text)))
    })
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

/// Sends the clip to a port of this machine; how many frames went.
fn send(codec: VideoCodec, port: u16, key: Option<&SrtpKey>) -> u64 {
    let clock = Clock::of_day();
    let now = clock.now();
    let rate = DataRate::from_kbps(800);
    let limits = Limits { floor: rate, ceiling: rate };
    let setup = Setup { limits, start_rate: rate, now, seed: 1, params: vec![] };
    let controller = Registry::builtin().make("fixed", &setup).expect("built in").sender;
    let encoder = encoder(codec).expect("looked for before");
    let source = EncodedSource::new(Box::new(clip()), encoder, now).expect("sizes fit");
    // The clip would repeat, but no more is requested.
    let source = Source::Codec(Box::new(source));
    let config = EndpointConfig { ssrc: SSRC, ntp_epoch: clock.ntp_epoch(), ..EndpointConfig::default() };
    let endpoint = Endpoint::new(config, Some(SendConfig::new(source, controller, limits)), None, now);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let peer = Peer::At(([127, 0, 0, 1], port).into());
    let mut end = LiveEnd::new(socket, UdpConfig::default(), peer, endpoint).expect("a socket");
    if let Some(key) = key {
        end.set_srtp(Some(SrtpSession::new(key, key).expect("a key")));
    }
    // On a busy machine frames are made late: the call ends when all of them have left, not at a time.
    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = RunUntil { ended: Some(&ended), ..RunUntil::stopped(&stop) };
    let mut enough = Enough { ended: &ended, frames: 0 };
    end.run(&clock, &until, &mut enough).expect("it runs");
    enough.frames
}

/// Stops the source after the clip's pictures.
struct Enough<'a> {
    ended: &'a AtomicBool,
    frames: u64,
}

impl CallObserver for Enough<'_> {
    fn on_turn(&mut self, _: Timestamp, endpoint: &mut Endpoint) {
        if self.frames < PICTURES {
            self.frames = endpoint.send_counters().frames;
            if self.frames >= PICTURES {
                endpoint.set_paused(true);
                self.ended.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The pictures of a file of I420.
fn pictures(path: &Path) -> Vec<Picture> {
    let bytes = fs::read(path).unwrap_or_default();
    let picture = |b: &[u8]| Picture::from_i420(SIZE.0, SIZE.1, b.to_vec()).expect("the size is right");
    bytes.chunks_exact(FRAME).map(picture).collect()
}

/// The mean PSNR of luma of pictures against the clip's.
fn psnr_beside_clip(pictures: &[Picture]) -> f64 {
    let mut original = Picture::new(SIZE.0, SIZE.1).expect("a size");
    let mut clip = clip();
    let mut sum = 0.0;
    for (i, p) in pictures.iter().enumerate() {
        clip.draw(i as u64, &mut original);
        sum += PlaneErrors::between(&original, p).expect("one size").psnr().y;
    }
    sum / pictures.len() as f64
}

/// Waits until another program has written as many pictures as it got, or has written nothing for some seconds: it has its last
/// ones buffered then, or something is wrong.
fn wait_for_pictures(out: &Path, sent: u64) {
    const STEP: Duration = Duration::from_millis(100);
    let (mut length, mut idle) = (0, 0);
    // Playout may be some 100 ms behind, and its program slow to begin.
    while idle < if length == 0 { 150 } else { 30 } && length < sent * FRAME as u64 {
        std::thread::sleep(STEP);
        let now = fs::metadata(out).map_or(0, |m| m.len());
        idle = if now > length { 0 } else { idle + 1 };
        length = length.max(now);
    }
}

fn check_played(what: &str, out: &Path, sent: u64) {
    let played = pictures(out);
    println!("{what}: {sent} frames sent, {} played, PSNR {:.1} dB", played.len(), psnr_beside_clip(&played));
    // The last frame or two may wait for a next one that is never sent.
    assert!((sent - 3..=sent).contains(&(played.len() as u64)), "{what}: {} of {sent} played", played.len());
    let psnr = psnr_beside_clip(&played);
    assert!((28.0..60.0).contains(&psnr), "{what}: {psnr} dB");
}

/// The stage between the socket and the pictures.
struct Playing {
    depay: &'static [&'static str],
    encoding: &'static str,
    codec: VideoCodec,
}

const H264: Playing =
    Playing { depay: &["rtph264depay", "h264parse", "openh264dec"], encoding: "H264", codec: VideoCodec::H264 };
const VP8: Playing = Playing { depay: &["rtpvp8depay", "vp8dec"], encoding: "VP8", codec: VideoCodec::Vp8 };

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("weir-interop-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder for files");
    dir
}

fn gstreamer_plays(what: &Playing, name: &str, key: Option<&SrtpKey>) {
    if !has("gst-launch-1.0") || encoder(what.codec).is_none() {
        return;
    }
    let more: &[&str] = if key.is_some() { &["srtpdec"] } else { &[] };
    if !has_elements(&[what.depay, more, &["rtpbin"]].concat()) {
        return;
    }
    let dir = folder(name);
    let (port, out) = (free_port(), dir.join("out.yuv"));
    let kind = if key.is_some() { "application/x-srtp" } else { "application/x-rtp" };
    let mut caps = format!("{kind},media=video,clock-rate=90000,encoding-name={},payload=96", what.encoding);
    let mut pipeline = format!("rtpbin name=b latency=200 udpsrc address=127.0.0.1 port={port} caps=\"CAPS\" ! ");
    if let Some(key) = key {
        let hex: String = key.bytes().iter().map(|b| format!("{b:02x}")).collect();
        let (cipher, auth) = match key.suite() {
            Suite::AeadAes128Gcm => ("aes-128-gcm", "null"),
            _ => ("aes-128-icm", "hmac-sha1-80"),
        };
        caps += &format!(
            ",ssrc=(uint){SSRC},srtp-key=(buffer){hex},srtp-cipher=(string){cipher},srtp-auth=(string){auth},\
             srtcp-cipher=(string){cipher},srtcp-auth=(string){auth},roc=(uint)0"
        );
        // It parts RTP from RTCP.
        pipeline += "d.rtp_sink srtpdec name=d d.rtcp_src ! b.recv_rtcp_sink_0 d.rtp_src ! ";
    }
    pipeline +=
        &format!("b.recv_rtp_sink_0 b. ! {} ! videoconvert ! video/x-raw,format=I420 ! ", what.depay.join(" ! "));
    pipeline += &format!("filesink location={} sync=false", out.display());
    let pipeline = pipeline.replace("CAPS", &caps.replace('"', "\\\""));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec gst-launch-1.0 -q -e {}", shell(&pipeline))]);
    let mut gst = Running::start(&mut command);
    assert!(wait_for_port(port), "GStreamer listens");
    let sent = send(what.codec, port, key);
    wait_for_pictures(&out, sent);
    gst.interrupt();
    check_played(&format!("GStreamer, {name}"), &out, sent);
    let _ = fs::remove_dir_all(dir);
}

/// Words of a pipeline as shell arguments: exclamation marks and brackets are special there.
fn shell(pipeline: &str) -> String {
    let quoted = |w: &str| format!("'{}'", w.replace('"', ""));
    pipeline.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
}

#[test]
fn gstreamer_plays_h264() {
    gstreamer_plays(&H264, "h264", None);
}

#[test]
fn gstreamer_plays_vp8() {
    gstreamer_plays(&VP8, "vp8", None);
}

#[test]
fn gstreamer_plays_h264_under_srtp() {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm] {
        let key = SrtpKey::random(suite).expect("random numbers");
        gstreamer_plays(&H264, suite.name(), Some(&key));
    }
}

fn description(codec: VideoCodec, port: u16, key: Option<&SrtpKey>) -> Description {
    let fmtp = weir_media::PayloadFormat::new(codec).fmtp(&EncoderConfig::live(SIZE.0, SIZE.1));
    let transport = MediaTransport {
        address: ([127, 0, 0, 1], port).into(),
        keys: key.map(|k| (1, k.clone())).into_iter().collect(),
        dccp: None,
        rtcp_mux: false,
    };
    let section = MediaSection {
        kind: MediaKind::Video,
        mid: None,
        transport: Some(transport),
        direction: Direction::Send,
        payloads: vec![(96, Payload::Video(codec, Some(fmtp)))],
        feedback: vec![],
        extensions: vec![],
        sources: Sources::default(),
        send: vec![],
        receive: vec![],
    };
    let sections = vec![Section::Media(Box::new(section))];
    Description { session: 1, cname: None, controller: None, bundle: vec![], is_bundle_only: false, sections }
}

fn ffmpeg_plays(codec: VideoCodec, name: &str, key: Option<&SrtpKey>) {
    if !has("ffmpeg") || encoder(codec).is_none() {
        return;
    }
    let dir = folder(name);
    let (port, out, sdp) = (free_port(), dir.join("out.yuv"), dir.join("call.sdp"));
    fs::write(&sdp, description(codec, port, key).to_sdp()).expect("a file");
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-loglevel", "error", "-y", "-protocol_whitelist", "file,udp,rtp,srtp", "-i"]).arg(&sdp);
    command.args(["-vsync", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo"]).arg(&out);
    let mut ffmpeg = Running::start(&mut command);
    assert!(wait_for_port(port), "ffmpeg listens");
    let sent = send(codec, port, key);
    wait_for_pictures(&out, sent);
    ffmpeg.interrupt();
    check_played(&format!("ffmpeg, {name}"), &out, sent);
    let _ = fs::remove_dir_all(dir);
}

#[test]
fn ffmpeg_plays_h264() {
    ffmpeg_plays(VideoCodec::H264, "ffmpeg-h264", None);
}

#[test]
fn ffmpeg_plays_vp8() {
    ffmpeg_plays(VideoCodec::Vp8, "ffmpeg-vp8", None);
}

#[test]
fn ffmpeg_plays_h264_under_srtp() {
    let key = SrtpKey::random(Suite::AesCm128HmacSha1_80).expect("random numbers");
    ffmpeg_plays(VideoCodec::H264, "ffmpeg-srtp", Some(&key));
}

/// From capture to playout. On a busy machine the other program sends late, and a frame received too late breaks those
/// that refer to it: this test judges the bytes, not their timing.
const PATIENCE: TimeDelta = TimeDelta::from_millis(10_000);

/// Receives on a socket until the program has ended, and records the pictures.
fn receive(codec: VideoCodec, socket: UdpSocket, record: &Path, program: &mut Running) -> DecodeSummary {
    let clock = Clock::of_day();
    let config =
        EndpointConfig { ssrc: 9, remote_ssrc: SSRC, ntp_epoch: clock.ntp_epoch(), ..EndpointConfig::default() };
    let receive = ReceiveConfig { playout_deadline: Some(PATIENCE), content: true, ..ReceiveConfig::default() };
    let endpoint = Endpoint::new(config, None, Some(receive), clock.now());
    // Destination of reports, until the sender is heard.
    let unused = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let peer = Peer::Follow(unused.local_addr().expect("an address"));
    let mut end = LiveEnd::new(socket, UdpConfig::default(), peer, endpoint).expect("a socket");
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    end.set_waker(Some(waker.clone()));
    let file = fs::File::create(record).expect("a file");
    let video = VideoReceive {
        decoder: decoder(codec).expect("looked for before"),
        on_damage: OnDamage::Show,
        record: Some((Box::new(std::io::BufWriter::new(file)), "30".parse().expect("a rate"))),
        quality: false,
    };
    let mut playing = ReceivingVideo::start(video, clock, waker).expect("a thread");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            program.wait();
            // Its last frames are played by then.
            std::thread::sleep(Duration::from_millis(PATIENCE.as_millis() as u64 + 1_000));
            stop.store(true, Ordering::Relaxed);
        });
        end.run(&clock, &RunUntil { at: None, stop: &stop, ended: None, bye: false, silence: None }, &mut playing)
            .expect("it runs");
    });
    assert_ne!(end.peer(), peer, "the sender was heard");
    playing.finish().expect("the decoder ends")
}

/// Pictures of a recording, each against its original.
fn check_received(name: &str, summary: &DecodeSummary, record: &Path, original: &Path) {
    let file = fs::File::open(record).expect("it was recorded");
    let mut reader = Y4mReader::new("recording", Unseekable(std::io::BufReader::new(file))).expect("Y4M");
    let originals = pictures(original);
    let mut picture = Picture::new(SIZE.0, SIZE.1).expect("a size");
    let (mut count, mut sum) = (0, 0.0);
    while reader.next_picture(&mut picture).expect("whole pictures") {
        // A late picture repeats the previous one: each is compared with its neighbours too.
        let near = originals.iter().skip(count as usize).take(3);
        let best = near.map(|o| PlaneErrors::between(o, &picture).expect("one size").psnr().y).fold(0.0, f64::max);
        sum += best;
        count += 1;
    }
    let psnr = sum / f64::from(count);
    println!("{name}: {} sent, {} intact, {count} recorded, PSNR {psnr:.1} dB", originals.len(), summary.intact);
    assert_eq!(originals.len() as u64, PICTURES);
    assert!((PICTURES - 2..=PICTURES).contains(&summary.intact), "{name}: {summary:?}");
    assert_eq!((summary.undecodable, summary.concealed, summary.overrun), (0, 0, 0), "{name}: {summary:?}");
    // Flat test pictures are decoded almost unchanged, but not all samples of all pictures.
    assert!((28.0..PSNR_CAP).contains(&psnr), "{name}: {psnr} dB over {count} pictures");
}

fn weir_plays_gstreamer(codec: VideoCodec, name: &str, elements: &[&str], encode: &str) {
    let all = [elements, &["videotestsrc", "udpsink", "tee"]].concat();
    if !has("gst-launch-1.0") || !has_elements(&all) || decoder(codec).is_none() {
        return;
    }
    let dir = folder(name);
    let (raw, record) = (dir.join("raw.yuv"), dir.join("received.y4m"));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let pipeline = format!(
        "videotestsrc is-live=true pattern=ball num-buffers={PICTURES} ! \
         video/x-raw,format=I420,width={},height={},framerate=30/1 ! tee name=t ! queue ! filesink location={} t. ! queue ! \
         {encode} pt=96 ssrc={SSRC} ! udpsink host=127.0.0.1 port={port} sync=true",
        SIZE.0,
        SIZE.1,
        raw.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec gst-launch-1.0 -q -e {}", shell(&pipeline))]);
    let mut gst = Running::start(&mut command);
    let summary = receive(codec, socket, &record, &mut gst);
    check_received(name, &summary, &record, &raw);
    let _ = fs::remove_dir_all(dir);
}

#[test]
fn weir_plays_h264_of_gstreamer() {
    let encode = "openh264enc bitrate=800000 gop-size=1000 ! rtph264pay config-interval=-1";
    weir_plays_gstreamer(VideoCodec::H264, "from-gst-h264", &["openh264enc", "rtph264pay"], encode);
}

#[test]
fn weir_plays_vp8_of_gstreamer() {
    let encode = "vp8enc deadline=1 target-bitrate=800000 error-resilient=1 ! rtpvp8pay picture-id-mode=2";
    weir_plays_gstreamer(VideoCodec::Vp8, "from-gst-vp8", &["vp8enc", "rtpvp8pay"], encode);
}

fn weir_plays_ffmpeg(codec: VideoCodec, name: &str, options: &[&str]) {
    if !has("ffmpeg") || decoder(codec).is_none() {
        return;
    }
    let encoders = Command::new("ffmpeg").args(["-hide_banner", "-encoders"]).output().expect("it is there").stdout;
    if !String::from_utf8_lossy(&encoders).contains(options[1]) {
        println!("skipped: ffmpeg has no {} here", options[1]);
        return;
    }
    let dir = folder(name);
    let (raw, record) = (dir.join("raw.yuv"), dir.join("received.y4m"));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let input = format!("testsrc2=size={}x{}:rate=30,format=yuv420p", SIZE.0, SIZE.1);
    let (count, ssrc) = (PICTURES.to_string(), SSRC.to_string());
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-loglevel", "error", "-y", "-re", "-f", "lavfi", "-i", &input, "-frames:v", &count]);
    command.args(options).args(["-b:v", "800k", "-f", "rtp", "-payload_type", "96", "-ssrc", &ssrc]);
    command.arg(format!("rtp://127.0.0.1:{port}?pkt_size=1200"));
    command.args(["-frames:v", &count, "-f", "rawvideo"]).arg(&raw);
    let mut ffmpeg = Running::start(&mut command);
    let summary = receive(codec, socket, &record, &mut ffmpeg);
    check_received(name, &summary, &record, &raw);
    let _ = fs::remove_dir_all(dir);
}

#[test]
fn weir_plays_h264_of_ffmpeg() {
    let options =
        ["-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-profile:v", "baseline", "-g", "1000"];
    weir_plays_ffmpeg(VideoCodec::H264, "from-ffmpeg-h264", &options);
}

#[test]
fn weir_plays_vp8_of_ffmpeg() {
    let options = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "1000"];
    weir_plays_ffmpeg(VideoCodec::Vp8, "from-ffmpeg-vp8", &options);
}
