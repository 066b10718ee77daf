//! Other programs play what Weir sends.

use super::*;

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
    let config = EndConfig { ssrc: SSRC, ntp_epoch: clock.ntp_epoch(), ..EndConfig::default() };
    let outgoing = OutgoingConfig::new(StreamIdentity::of(SSRC), source, Demand::default());
    let plan = EndPlan::new(config).sends(outgoing).on(SendingPath::new(controller));
    let endpoint = plan.make(now).expect("one stream");
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
            self.frames = endpoint.stats().send_counters().frames;
            if self.frames >= PICTURES {
                endpoint.set_paused(true);
                self.ended.store(true, Ordering::Relaxed);
            }
        }
    }
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
        interfaces: None,
        ice: None,
    };
    let payloads = vec![(96, Payload::Video(codec, Some(fmtp)))];
    Description::of_stream(1, MediaSection::new(MediaKind::Video, transport, Direction::Send, payloads))
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
