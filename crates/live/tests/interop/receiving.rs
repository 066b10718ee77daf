//! Weir plays what other programs send.

use super::*;

/// From capture to playout. On a busy machine the other program sends late, and a frame received too late breaks those
/// that refer to it: this test judges the bytes, not their timing.
const PATIENCE: TimeDelta = TimeDelta::from_millis(10_000);

/// Receives on a socket until the program has ended, and records the pictures.
fn receive(codec: VideoCodec, socket: UdpSocket, record: &Path, program: &mut Running) -> DecodeSummary {
    let clock = Clock::of_day();
    let config = EndConfig { ssrc: 9, remote_ssrc: SSRC, ntp_epoch: clock.ntp_epoch(), ..EndConfig::default() };
    let incoming = IncomingConfig::new(StreamIdentity::of(SSRC), MediaKind::Video);
    let incoming = IncomingConfig { playout_deadline: Some(PATIENCE), content: true, ..incoming };
    let plan = EndPlan::new(config).receives(incoming).on(ReceivingPath::default());
    let endpoint = plan.make(clock.now()).expect("one stream");
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
        record: Some(weir_live::call::Recording::new(
            Box::new(std::io::BufWriter::new(file)),
            "30".parse().expect("a rate"),
        )),
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
