//! The programs that call: how each is started, what it is given, and what it reports afterwards.

#[expect(dead_code, reason = "shared with tests of pages")]
#[path = "../../../coverage/tests/page/browser.rs"]
mod browser;
#[path = "firefox.rs"]
mod firefox;

use browser::Browser;
use firefox::Firefox;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_media::VideoCodec;
use weir_peer::server::RunningServer;

/// Field trials of Chromium's with which it offers RFC 8888's feedback (libwebrtc, `pc/congestion_control_integrationtest.cc`).
const CCFB_TRIAL: &str = "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";
/// And those with which it sends FlexFEC-03 (libwebrtc, `media/engine/webrtc_video_engine.cc`).
const FEC_TRIAL: &str = "--force-fieldtrials=WebRTC-FlexFEC-03-Advertised/Enabled/WebRTC-FlexFEC-03/Enabled/";
const CAMERA: [&str; 2] = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
/// Role of browsers in a call.
const SCRIPT: &str = include_str!("browser_peer.js");
const AIORTC: &str = "aiortc==1.16.0";

/// A caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    Chromium,
    Firefox,
    GStreamer,
    Aiortc,
    Pion,
}

impl Peer {
    pub(crate) const ALL: [Self; 5] = [Self::Chromium, Self::Firefox, Self::GStreamer, Self::Aiortc, Self::Pion];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
            Self::GStreamer => "gstreamer",
            Self::Aiortc => "aiortc",
            Self::Pion => "pion",
        }
    }
}

/// How lost packets are replaced, where the peer can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Repair {
    /// As the peer has it: by retransmission, and by what else it offers.
    #[default]
    Usual,
    /// As usual, and the peer sends repair packets, which it does not by itself.
    Asked,
    /// By retransmission alone.
    Nack,
    /// By repair packets alone.
    Fec,
    /// As usual, but without FlexFEC-03.
    UlpFec,
    /// By ULPFEC alone.
    UlpFecAlone,
    /// Not at all.
    None,
}

impl Repair {
    /// Whether what is lost may be requested.
    pub(crate) const fn has_nack(self) -> bool {
        !matches!(self, Self::Fec | Self::UlpFecAlone | Self::None)
    }
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) peer: Peer,
    /// By `/whep`; otherwise it receives, by `/whip`.
    pub(crate) weir_sends: bool,
    pub(crate) codec: VideoCodec,
    /// Whether the peer is made to offer RFC 8888's feedback, where it does not by itself.
    pub(crate) ccfb: bool,
    pub(crate) repair: Repair,
    /// Time connected, s.
    pub(crate) seconds: u32,
}

/// A peer's report of its call.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(crate) struct Said {
    pub(crate) offer: String,
    pub(crate) answer: String,
    pub(crate) state: String,
    pub(crate) error: Option<String>,
    /// Decoded, or coded, by its direction.
    pub(crate) frames: u64,
    /// Received, or sent.
    pub(crate) packets: u64,
    /// Retransmitted packets received, or sent, if it counts them.
    pub(crate) retransmissions: Option<u64>,
    /// Repair packets received, if it counts them.
    pub(crate) fec: Option<u64>,
    /// Its other counts.
    pub(crate) more: serde_json::Value,
}

const fn short(codec: VideoCodec) -> &'static str {
    if matches!(codec, VideoCodec::H264) { "h264" } else { "vp8" }
}

/// Pictures' size in all calls.
pub(crate) const SIZE: (u32, u32) = (320, 180);

/// Input of a peer.
fn told(job: &Job, service: &RunningServer) -> String {
    json!({
        "service": format!("http://{}", service.address),
        "token": service.token,
        "way": if job.weir_sends { "whep" } else { "whip" },
        "codec": short(job.codec),
        "feedback": if job.ccfb { "ccfb" } else { "twcc" },
        "nack": job.repair.has_nack(),
        "flexfec": !matches!(job.repair, Repair::UlpFec | Repair::UlpFecAlone),
        "fec": !matches!(job.repair, Repair::Nack | Repair::None),
        "seconds": job.seconds,
        "size": SIZE,
    })
    .to_string()
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/interop"))
}

/// Where what peers need is kept.
fn tools() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("interop")
}

/// Runs to its end, for so long at most; its output, or the last line of its errors.
async fn output(command: &Command, patience: Duration) -> Result<String, String> {
    let limit = patience.as_secs().to_string();
    let mut bounded = Command::new("timeout");
    bounded.args(["-k", "2", &limit]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        bounded.current_dir(folder);
    }
    let out = tokio::task::spawn_blocking(move || bounded.output()).await.map_err(|e| e.to_string())?;
    let out = out.map_err(|e| e.to_string())?;
    match out.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        Some(124) => Err(format!("it has not ended within {limit} s")),
        _ => Err(String::from_utf8_lossy(&out.stderr).lines().last().unwrap_or("it failed without a word").to_owned()),
    }
}

/// A Python with aiortc, in an environment of its own that is made once.
async fn python_with_aiortc() -> Result<PathBuf, String> {
    let venv = tools().join("aiortc");
    let own = venv.join("bin/python");
    let check = ["-c", "import aiortc"];
    let short = Duration::from_secs(60);
    if output(Command::new(&own).args(check), short).await.is_ok() {
        return Ok(own);
    }
    output(Command::new("python3").args(["-m", "venv"]).arg(&venv), short).await?;
    let install = ["-m", "pip", "install", "--quiet", AIORTC];
    output(Command::new(&own).args(install), Duration::from_secs(300)).await?;
    output(Command::new(&own).args(check), short).await.map(|_| own)
}

/// Pion's program, built by Go before there is no network.
async fn pion() -> Result<PathBuf, String> {
    let program = tools().join("pion");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(folder().join("pion"));
    output(&build, Duration::from_secs(600)).await.map(|_| program)
}

/// Requirements of a call by a peer, or why it cannot be had here.
pub(crate) async fn prepare(peer: Peer) -> Result<Command, String> {
    let script = |python: &Path, name: &str| {
        let mut command = Command::new(python);
        command.arg("-B").arg(folder().join(name));
        command
    };
    let short = Duration::from_secs(60);
    match peer {
        Peer::Chromium => Ok(Command::new("chromium")),
        Peer::Firefox => {
            let program = firefox::program().ok_or("there is no firefox")?;
            Ok(Command::new(program))
        }
        Peer::Aiortc => python_with_aiortc().await.map(|python| script(&python, "aiortc_peer.py")),
        Peer::Pion => pion().await.map(Command::new),
        Peer::GStreamer => {
            let python = Path::new("/usr/bin/python3");
            let check = "import gi; gi.require_version('GstWebRTC', '1.0'); from gi.repository import Gst; Gst.init(None); \
                         assert Gst.ElementFactory.find('webrtcbin') and Gst.ElementFactory.find('nicesrc')";
            let found = output(Command::new(python).args(["-c", check]), short).await;
            found.map_err(|e| {
                format!(
                    "{e} (Debian: gir1.2-gst-plugins-bad-1.0 gstreamer1.0-nice gstreamer1.0-plugins-bad python3-gi)"
                )
            })?;
            Ok(script(python, "gstreamer_peer.py"))
        }
    }
}

/// Calls; what the peer says.
pub(crate) async fn call(job: &Job, service: &RunningServer) -> Said {
    let failed = |error: String| Said { error: Some(error), ..Said::default() };
    let text = match job.peer {
        Peer::Chromium => by_chromium(job, service).await,
        Peer::Firefox => by_firefox(job, service).await,
        _ => match prepare(job.peer).await {
            Err(e) => Err(e),
            Ok(mut program) => {
                let patience = Duration::from_secs(40 + u64::from(job.seconds));
                output(program.arg(told(job, service)), patience).await
            }
        },
    };
    match text {
        Err(e) => failed(e),
        Ok(text) => {
            let line = text.lines().last().unwrap_or_default();
            serde_json::from_str(line).unwrap_or_else(|e| failed(format!("{e}: {line}")))
        }
    }
}

fn expression(job: &Job, service: &RunningServer) -> String {
    format!("({SCRIPT})({})", told(job, service))
}

async fn by_chromium(job: &Job, service: &RunningServer) -> Result<String, String> {
    let profile = tempfile::tempdir().map_err(|e| e.to_string())?;
    // There is one list of trials.
    let trial = if job.repair == Repair::Asked { Some(FEC_TRIAL) } else { job.ccfb.then_some(CCFB_TRIAL) };
    let switches: Vec<&str> = CAMERA.into_iter().chain(trial).collect();
    let mut browser = Browser::start(profile.path(), &switches).await.ok_or("there is no chromium")?;
    browser.open(&format!("http://{}/", service.address), 800, 600).await;
    browser.until("document.readyState === 'complete' && location.protocol === 'http:'").await;
    Ok(browser.eval(&expression(job, service)).await.as_str().unwrap_or_default().to_owned())
}

async fn by_firefox(job: &Job, service: &RunningServer) -> Result<String, String> {
    let profile = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut browser = Firefox::start(profile.path()).await?;
    browser.open(&format!("http://{}/", service.address)).await?;
    browser.eval(&expression(job, service)).await
}

/// A peer's version.
pub(crate) async fn version(peer: Peer) -> Result<String, String> {
    let ask = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    let last = |text: String| text.lines().last().unwrap_or_default().trim().to_owned();
    let command = match peer {
        Peer::Chromium => ask("chromium", &["--version"]),
        Peer::Firefox => ask(firefox::program().ok_or("there is no firefox")?, &["--version"]),
        Peer::GStreamer => ask("gst-inspect-1.0", &["--version"]),
        Peer::Aiortc => {
            let python = python_with_aiortc().await?;
            let mut command = Command::new(python);
            command.args(["-c", "import aiortc; print('aiortc', aiortc.__version__)"]);
            command
        }
        Peer::Pion => {
            let mut command = ask("go", &["list", "-m", "github.com/pion/webrtc/v4"]);
            command.current_dir(folder().join("pion"));
            command
        }
    };
    let text = output(&command, Duration::from_secs(60)).await?;
    // The tool's own version comes first, and where it comes from last.
    Ok(if peer == Peer::GStreamer { text.lines().nth(1).unwrap_or_default().to_owned() } else { last(text) })
}
