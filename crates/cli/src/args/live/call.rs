//! Arguments of `weir live call`.

use crate::args::OutputArgs;
use crate::output::Failure;
use clap::{Subcommand, ValueHint};
use std::path::PathBuf;
use weir_cc::wrappers::MAP_SUFFIX;
use weir_cc::{DEFAULT_CONTROLLER, Limits, Registry, Spec, Transport};
use weir_lab::scenario::{InputError, suggest};
use weir_live::call::{CallConfig, FrameModel, announced};
use weir_live::srtp::Suite;
use weir_media::utility::Preference;
use weir_media::{FrameRate, Layering, MediaError};
use weir_units::{DataRate, DataSize, TimeDelta};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir live call loopback --duration 10s
  weir live call loopback --size 1920x1080 --max-rate 4mbps --quality --duration 10s
  weir live call loopback --clip sports --record received.y4m --duration 5s
  weir live call loopback --streams audio,camera --prefer sharpness --max-rate 200kbps --duration 10s
  ffmpeg -f v4l2 -i /dev/video0 -pix_fmt yuv420p -f yuv4mpegpipe - | weir live call loopback --clip -
  weir live call loopback --streams audio,camera:2,screen --start-rate 2mbps --fixed-playout --playout-delay 150ms --duration 20s
  weir live call listen --signal tls:0.0.0.0:5060 --record received.y4m     # prints its fingerprint
  weir live call connect --signal tls:192.0.2.7:5060 --fingerprint AB:CD:... --clip hand-held --duration 30s
  weir live call listen --signal tls:0.0.0.0:5060 --token \"$TOKEN\"
  weir live call listen --streams audio,camera:2,screen
  weir live call connect --streams audio,camera:2,screen --start-rate 2mbps --duration 30s
  weir live call listen --signal tls:0.0.0.0:5060 --path wlan0 --path eth0
  weir live call connect --signal tls:192.0.2.7:5060 --fingerprint AB:CD:... --path 10.0.0.2 --path 10.1.0.2
  weir live call connect --signal tls:192.0.2.7:5060 --fingerprint AB:CD:... --path wlan0 --path wwan0 --ice --stun 192.0.2.9:3478
  weir live call connect --signal tls:192.0.2.7:5060 --fingerprint AB:CD:... --ice --turn 192.0.2.9:3478 --turn-key KEY.txt
  weir live call loopback --controller scream --ecn --json
  weir live call listen --map https://map.example:6580 --map-key KEY.txt --map-route '_p~iF~ps|U_ulLnnqC' --map-speed 80
  weir live call connect --controller sluice+map --duration 30s
  weir live call listen --path wlan0 --path eth0 --map wlan0.csv --map eth0.csv
  weir live call loopback --transport dccp --ccid 3 --duration 10s
  weir live call listen --no-srtp
  weir live call connect --transport dccp --ccid 3 --no-srtp --duration 30s";

#[derive(Subcommand, Debug)]
pub(crate) enum CallCommand {
    /// Both ends in this process, over the loopback device
    Loopback(Box<LoopbackArgs>),
    /// Wait for another process, here or elsewhere, and accept its call
    Listen(Box<PartyArgs>),
    /// Call a process that listens
    Connect(Box<PartyArgs>),
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodecName {
    /// H.264
    H264,
    /// VP8
    Vp8,
    /// VP9
    Vp9,
    /// A model whose frames have sizes and no content
    Model,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransportName {
    /// Plain datagrams
    Udp,
    /// DCCP over UDP
    Dccp,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PartyArgs {
    /// How descriptions, which contain the SRTP keys, are exchanged: tls:HOST:PORT between machines, tcp:HOST:PORT
    /// within one, or file:PREFIX for PREFIX.offer and PREFIX.answer
    #[arg(long, value_name = "WAY", default_value = "tcp:127.0.0.1:5060")]
    pub(crate) signal: String,
    /// With tls: when connecting: the SHA-256 fingerprint that the listener has printed
    #[arg(long, value_name = "SHA256")]
    pub(crate) fingerprint: Option<String>,
    /// With tls: when listening: the PEM file of the certificate and its key, made on first use; weir/call-identity.pem
    /// in the user's configuration folder if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) identity: Option<PathBuf>,
    /// With tls: or tcp: the secret that callers present: of a listener, offers without it are refused; 16 letters and digits
    /// or more
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Allow keys or media to cross a network unprotected: plain TCP to other machines, any certificate, media without
    /// SRTP
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Direction of pictures: connecting ends send and listening ones receive if absent
    #[arg(long, value_name = "DIRECTION", value_enum)]
    pub(crate) direction: Option<MediaDirection>,
    /// Address to receive media at; that of the signalling connection if absent
    #[arg(long, value_name = "IP", conflicts_with = "path")]
    pub(crate) address: Option<std::net::IpAddr>,
    /// UDP port; any if absent
    #[arg(long, value_name = "PORT", default_value = "0")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) paths: PathArgs,
    #[command(flatten)]
    pub(crate) ice: IceArgs,
    #[command(flatten)]
    pub(crate) media: MediaArgs,
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct IceArgs {
    /// Find the call's paths by ICE, through NATs, if the other end takes part too: each --path is an agent, paths follow the
    /// addresses that answer, and are added and removed as interfaces come and go
    #[arg(long)]
    pub(crate) ice: bool,
    /// With --ice: a STUN server that says how this end's addresses are seen from outside; up to four
    #[arg(long, value_name = "HOST:PORT", requires = "ice")]
    pub(crate) stun: Vec<String>,
    /// With --ice, in a build with the feature turn: a TURN server, reached by UDP, that lends each path an address and passes datagrams on, for ends that cannot
    /// reach each other otherwise; it is asked as a STUN server too. Up to two
    #[arg(long, value_name = "HOST:PORT", requires = "ice", requires = "turn_key")]
    pub(crate) turn: Vec<String>,
    /// With --turn: the file with USER:PASSWORD in its first line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "turn")]
    pub(crate) turn_key: Option<PathBuf>,
    /// With --turn: use and name addresses of relays alone, so that the other end sees none of this one's. An end that calls
    /// must have been lent one
    #[arg(long, requires = "turn")]
    pub(crate) ice_relay_only: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PathArgs {
    /// Where a path begins: an address of this machine, or an interface. Given several times, media take all of them
    /// (multipath RTP): path N joins both ends' N-th, and an end with fewer uses its first again. The connecting end has
    /// to give it once at least. An address may appear during the call. With =CLASS, when it carries media this end sends:
    /// =preferred, =normal (as without), =metered or =backup, as in --path wlan0 --path wwan0=backup
    #[arg(long, value_name = "IP|INTERFACE[=CLASS]")]
    pub(crate) path: Vec<String>,
    /// With several paths: the media rate that suffices. Paths of a worse class carry media only while those of better ones
    /// have less; without it all but backups carry media together
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) sufficient_rate: Option<DataRate>,
    /// With several paths: what chooses the path of each packet sent (see `weir show schedulers`)
    #[arg(long, value_name = "NAME", default_value = "earliest")]
    pub(crate) scheduler: String,
    /// With several paths: which of them share one flow's rate: none, always, detected or correlated
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(crate) coupling: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StreamsArgs {
    /// Several streams under one controller: audio, camera, camera:N for N encodings of half the size each (simulcast),
    /// screen, separated by commas. An end that listens accepts these of the offered ones
    #[arg(long, value_name = "LIST")]
    pub(crate) streams: Option<String>,
    /// The content of the shared screen of --streams: a built-in clip, in the size of --size
    #[arg(long, value_name = "NAME", default_value = "hand-held")]
    pub(crate) screen_clip: String,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MediaDirection {
    /// This end sends
    Send,
    /// This end receives
    Receive,
    /// Both
    Both,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LoopbackArgs {
    #[command(flatten)]
    pub(crate) media: MediaArgs,
    /// Compare the pictures with the originals as they are shown (PSNR)
    #[arg(long)]
    pub(crate) quality: bool,
    /// The last that the call gives up where its rate is short: motion (pictures become smaller first), sharpness (there are fewer of them
    /// first) or sound (of --streams audio,camera). Without it all pictures are coded at their size, whatever the quantiser
    #[arg(long, value_name = "WHAT", value_parser = preference)]
    pub(crate) prefer: Option<Preference>,
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MediaArgs {
    /// The controller (see `weir show controllers`); sluice, or over DCCP that of the CCID, if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// The carrier of the packets; that of the controller if absent. There is no SRTP over DCCP
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) transport: Option<TransportName>,
    /// DCCP's congestion control: 2, 3, 4, 5 or 248
    #[arg(long, value_name = "N", default_value = "2")]
    pub(crate) ccid: u8,
    /// The codec, or a model of one that sends frames without content
    #[arg(long, value_name = "NAME", value_enum, default_value = "h264")]
    pub(crate) codec: CodecName,
    /// The material: talking-head, hand-held, sports, a Y4M file, or - for Y4M on standard input as it arrives
    #[arg(long, value_name = "NAME|FILE|-", default_value = "talking-head", value_hint = ValueHint::FilePath)]
    pub(crate) clip: String,
    /// Size of the pictures of a built-in clip
    #[arg(long, value_name = "WxH", default_value = "640x480")]
    pub(crate) size: String,
    /// Frames a second of a built-in clip or a model
    #[arg(long, alias = "rate", value_name = "N", default_value = "30", value_parser = crate::values::frame_rate)]
    pub(crate) fps: FrameRate,
    /// Threads of the encoder
    #[arg(long, alias = "threads", value_name = "N", default_value = "1")]
    pub(crate) encoder_threads: u32,
    /// Frames between unrequested key frames; none if absent
    #[arg(long, value_name = "N")]
    pub(crate) key_interval: Option<u32>,
    /// Spatial and temporal layers of the encoder, L1T1 to L3T3 as the codec has them (webrtc-svc); upper ones are
    /// dropped while the stream's share is too small for them
    #[arg(long, value_name = "MODE", default_value = "L1T1")]
    pub(crate) layers: String,
    /// Maximum time from capture to playout, 1 ms to 10 s; key frames need it most, and later frames are discarded
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = crate::values::seconds)]
    pub(crate) playout_delay: f64,
    /// Show all pictures at the maximum time after their capture, rather than as soon as their jitter allows
    #[arg(long)]
    pub(crate) fixed_playout: bool,
    /// Write the pictures received to a Y4M file, which is no link; pictures larger than 1280x720 and --size are not recorded
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// End the recording before it is larger than this; it also ends where less than 256 MiB would be free
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = super::dccp::size, requires = "record")]
    pub(crate) record_limit: DataSize,
    /// End the call after this time (30s, 5min); Ctrl-C ends it if absent
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) duration: Option<f64>,
    /// End the call if nothing of it is received for this long; 0 waits indefinitely
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::values::seconds_from_zero)]
    pub(crate) timeout: f64,
    /// Media rate at the beginning, between the bounds; 500kbps, or the bound next to it, if absent
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) start_rate: Option<DataRate>,
    /// Minimum media rate
    #[arg(long, value_name = "RATE", default_value = "50kbps", value_parser = crate::values::bit_rate)]
    pub(crate) min_rate: DataRate,
    /// Maximum media rate
    #[arg(long, value_name = "RATE", default_value = "5000kbps", value_parser = crate::values::bit_rate)]
    pub(crate) max_rate: DataRate,
    #[command(flatten)]
    pub(crate) map: MapArgs,
    /// Mark packets as able to carry congestion marks (ECN, ECT(0))
    #[arg(long)]
    pub(crate) ecn: bool,
    /// Send in the clear, without SRTP
    #[arg(long)]
    pub(crate) no_srtp: bool,
    /// IPv6 instead of IPv4
    #[arg(long)]
    pub(crate) v6: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MapArgs {
    /// The capacity that a map of network coverage expects on the way to this end, which receives media: announced in RTCP to the
    /// sending end, whose controller follows it as NAME+map. A coverage service (http://HOST:PORT or https://HOST:PORT), or a file
    /// with the columns time_s, low_kbps, median_kbps and confidence, from the begin of the call on. In a call over several paths
    /// (--path) one for each, in their order
    #[arg(long, value_name = "URL|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) map: Vec<String>,
    /// With --map URL: the way that this end takes from the begin of the call on, as an encoded polyline
    #[arg(long, value_name = "POLYLINE", requires = "map")]
    pub(crate) map_route: Option<String>,
    /// With --map URL: the speed on it in km/h
    #[arg(long, value_name = "KM/H", default_value = "50")]
    pub(crate) map_speed: f64,
    /// With --map URL: the file with the service's key
    #[arg(long, value_name = "FILE", requires = "map", value_hint = ValueHint::FilePath)]
    pub(crate) map_key: Option<PathBuf>,
    /// With --map https: the file with the certificate of the service or its authority (PEM)
    #[arg(long, value_name = "FILE", requires = "map", value_hint = ValueHint::FilePath)]
    pub(crate) map_cert: Option<PathBuf>,
}

/// Bounds of media rates.
const LEAST_RATE: DataRate = DataRate::from_kbps(1);
const MOST_RATE: DataRate = DataRate::from_mbps(10_000);
/// The media rate at the beginning of a call that states none, in so far as its bounds allow it.
const START_RATE: DataRate = DataRate::from_kbps(500);

/// The entry of the controller of a call in real time, which may get a forecast from the other end.
pub(crate) fn live_controller<'r>(registry: &'r Registry, name: &str, is_told: bool) -> Result<&'r Spec, InputError> {
    let spec = suggest::find(registry, "--controller", name)?;
    if spec.foresees && !(is_told && name.ends_with(MAP_SUFFIX)) {
        let instead = name.strip_suffix(MAP_SUFFIX).unwrap_or(DEFAULT_CONTROLLER);
        let what = format!("{name}: this call gets no forecast of capacity; name {instead}");
        return Err(InputError::whole("--controller", what));
    }
    Ok(spec)
}

/// The media rate at the beginning, as given or usual. Errors: it is outside of the bounds.
pub(crate) fn start_rate(given: Option<DataRate>, limits: Limits) -> Result<DataRate, InputError> {
    let Some(rate) = given else { return Ok(limits.clamp(START_RATE)) };
    if limits.clamp(rate) != rate {
        let (min, max) = (limits.floor, limits.ceiling);
        let what = format!("{rate}: expected {min} to {max}, the bounds by --min-rate and --max-rate");
        return Err(InputError::whole("--start-rate", what));
    }
    Ok(rate)
}

impl MediaArgs {
    pub(crate) fn config(&self, registry: &Registry) -> Result<CallConfig, Failure> {
        let wrong = |option: &str, what: String| Err(InputError::whole(option, what).into());
        let transport = self.transport.map(|t| match t {
            TransportName::Udp => Transport::Udp,
            TransportName::Dccp => Transport::Dccp { ccid: self.ccid },
        });
        let controller = match (&self.controller, transport) {
            (Some(name), _) => name.clone(),
            (None, None | Some(Transport::Udp)) => DEFAULT_CONTROLLER.into(),
            (None, Some(over)) => match registry.specs().find(|s| s.transport == over) {
                Some(spec) => spec.name.clone(),
                None => {
                    let what = format!("{}: no controller is for it; name one by --controller", self.ccid);
                    return wrong("--ccid", what);
                }
            },
        };
        live_controller(registry, &controller, true)?;
        if !(0.001..=10.0).contains(&self.playout_delay) {
            return wrong("--playout-delay", format!("{} s: expected 1ms to 10s", self.playout_delay));
        }
        if self.min_rate < LEAST_RATE || self.min_rate > self.max_rate || self.max_rate > MOST_RATE {
            let (min, max) = (self.min_rate, self.max_rate);
            let what = format!("{min} to {max}: expected 1kbps to 10gbps, the least below the most");
            return wrong("--min-rate, --max-rate", what);
        }
        if let Some(s) = self.duration.filter(|s| !(0.0..=1e6).contains(s)) {
            return wrong("--duration", format!("{s}: expected seconds, 0 to 1000000"));
        }
        if !(0.0..=1e6).contains(&self.timeout) {
            return wrong("--timeout", format!("{}: expected seconds, 0 to 1000000", self.timeout));
        }
        Ok(CallConfig {
            silence: (self.timeout > 0.0).then(|| TimeDelta::from_secs_f64(self.timeout)),
            transport: transport.or_else(|| registry.get(&controller).map(|s| s.transport)),
            announced: announced(registry, &controller),
            capacity_vectors: !self.map.map.is_empty() || controller.ends_with(MAP_SUFFIX),
            controller,
            limits: self.limits(),
            start_rate: start_rate(self.start_rate, self.limits())?,
            model: FrameModel::Perfect,
            frame_rate: self.fps.as_f64(),
            playout_deadline: TimeDelta::from_secs_f64(self.playout_delay),
            adaptive_playout: !self.fixed_playout,
            ecn: self.ecn,
            srtp: (!self.no_srtp).then(Suite::default),
            v6: self.v6,
            ..CallConfig::default()
        })
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { floor: self.min_rate, ceiling: self.max_rate }
    }

    pub(crate) fn layering(&self) -> Result<Layering, Failure> {
        Ok(self.layers.parse().map_err(|e: MediaError| InputError::whole("--layers", e.to_string()))?)
    }

    pub(crate) fn duration(&self) -> Option<TimeDelta> {
        self.duration.map(TimeDelta::from_secs_f64)
    }
}

/// A preference: the last that a call gives up.
fn preference(text: &str) -> Result<Preference, String> {
    Preference::by_name(text).ok_or_else(|| format!("one of {}", Preference::ALL.map(Preference::name).join(", ")))
}
