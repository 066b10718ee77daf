//! Common parts of calls between two processes, with one stream or several.

use crate::args::live::call::{IceArgs, MediaDirection, PartyArgs};
use crate::output::{Failure, remark};
use crate::session::Session;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weir_cc::Transport;
use weir_lab::scenario::InputError;
use weir_live::call::{CallConfig, IceOptions, Joined, Party, PartyMedia, PathAddress, PathUse};
use weir_live::ice::RelayServer;
use weir_live::sdp::{Agreement, Direction};
use weir_live::signal::{Identity, Listener, Refused, SignalError, Signalling, Token, Trust};
use weir_session::multipath::{MAX_PATHS, PathClass, PathPolicy};

/// Maximum refusals printed individually per second; the others are counted.
const MAX_LINES: u32 = 10;
/// Largest file of --turn-key, and longest user and password there, in bytes (RFC 8489, section 14.3: a user name has less than 509).
const MAX_KEY_FILE: u64 = 4_096;
const MAX_ACCOUNT: usize = 508;

pub(super) fn failure(e: weir_live::call::CallError) -> Failure {
    match e {
        weir_live::call::CallError::Signal(e) => signalling_failure(e),
        weir_live::call::CallError::DccpInTheClear => InputError::whole("--no-srtp", e.to_string()).into(),
        weir_live::call::CallError::PathsOverDccp => InputError::whole("--path", e.to_string()).into(),
        weir_live::call::CallError::NoRelay { .. } => InputError::whole("--turn", e.to_string()).into(),
        weir_live::call::CallError::NoInterface { .. } => InputError::whole("--path", e.to_string()).into(),
        e => Failure::work(e),
    }
}

/// Faults of the command line name their option; the rest is a failure of the work.
fn signalling_failure(e: SignalError) -> Failure {
    let option = match &e {
        SignalError::Stopped => return Failure::Interrupted,
        SignalError::Name(_) | SignalError::Plain(_) => "--signal",
        SignalError::Fingerprint(_) | SignalError::Unpinned(_) => "--fingerprint",
        SignalError::Token | SignalError::FileToken => "--token",
        SignalError::Identity(_) => "--identity",
        _ => return Failure::work(e),
    };
    InputError::whole(option, e.to_string()).into()
}

/// Direction of media; by default the connecting end sends.
pub(super) fn direction(args: &PartyArgs, listens: bool) -> Direction {
    match args.direction.unwrap_or(if listens { MediaDirection::Receive } else { MediaDirection::Send }) {
        MediaDirection::Send => Direction::Send,
        MediaDirection::Receive => Direction::Receive,
        MediaDirection::Both => Direction::SendReceive,
    }
}

pub(super) fn signalling(args: &PartyArgs) -> Result<Signalling, Failure> {
    Ok(args.signal.parse().map_err(|e: SignalError| InputError::whole("--signal", e.to_string()))?)
}

pub(super) fn trust(args: &PartyArgs) -> Result<Trust, Failure> {
    let parse =
        |text: &String| text.parse().map_err(|e: SignalError| InputError::whole("--fingerprint", e.to_string()));
    let fingerprint = args.fingerprint.as_ref().map(parse).transpose()?;
    Ok(Trust { fingerprint, insecure: args.insecure })
}

/// The secret of callers.
fn token(args: &PartyArgs) -> Result<Option<Token>, Failure> {
    let parse = |text: &String| text.parse().map_err(|e: SignalError| InputError::whole("--token", e.to_string()));
    Ok(args.token.as_ref().map(parse).transpose()?)
}

/// The file of the listener's identity.
fn identity_path(args: &PartyArgs) -> Result<PathBuf, Failure> {
    if let Some(path) = &args.identity {
        return Ok(path.clone());
    }
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let Some(folder) = folder else {
        let what = "absent, and neither XDG_CONFIG_HOME nor HOME is set: name a file for the certificate and its key";
        return Err(InputError::whole("--identity", what).into());
    };
    Ok(folder.join("weir").join("call-identity.pem"))
}

fn path_class(name: &str) -> Result<PathClass, InputError> {
    PathClass::named(name).ok_or_else(|| {
        let known = PathClass::NAMES.map(|n| n.0).join(", ");
        InputError::whole("--path", format!("no class of paths is named {name:?}: {known}"))
    })
}

/// The addresses of servers; `option` names them in errors.
fn servers(option: &str, names: &[String], most: usize) -> Result<Vec<SocketAddr>, Failure> {
    if names.len() > most {
        let what = format!("given {} times: {most} servers at most", names.len());
        return Err(InputError::whole(option, what).into());
    }
    let resolve = |name: &String| {
        let found = name.to_socket_addrs().map(|mut all| all.next());
        let why = match found {
            Ok(Some(at)) => return Ok(at),
            Ok(None) => "it has no address".to_string(),
            Err(e) => e.to_string(),
        };
        Err(InputError::whole(option, format!("{name}: expected HOST:PORT of a server: {why}")).into())
    };
    names.iter().map(resolve).collect()
}

/// The user and the password at a TURN server, from the first line of a file.
fn account(text: &str) -> Option<(String, String)> {
    let (user, password) = text.lines().next()?.trim().split_once(':')?;
    let fits = |s: &str| !s.is_empty() && s.len() <= MAX_ACCOUNT;
    (fits(user) && fits(password)).then(|| (user.to_owned(), password.to_owned()))
}

/// The servers by which a call finds its paths; `None` without ICE.
fn ice_options(args: &IceArgs) -> Result<Option<IceOptions>, Failure> {
    if !args.ice {
        return Ok(None);
    }
    let mut stun = servers("--stun", &args.stun, 4)?;
    if !args.turn.is_empty() && !cfg!(feature = "turn") {
        let help =
            "cargo run --release --features turn -- live call ..., or cargo install --path crates/weir --features turn";
        return Err(InputError::whole("--turn", "this build lacks the feature turn").help(help).into());
    }
    let relays = servers("--turn", &args.turn, 2)?;
    let mut options = IceOptions { relay_only: args.ice_relay_only, ..IceOptions::default() };
    if let Some(file) = args.turn_key.as_ref().filter(|_| !relays.is_empty()) {
        let wrong = |what: String| InputError::whole("--turn-key", what);
        let text = weir_files::read_text(file, MAX_KEY_FILE).map_err(|e| wrong(e.to_string()))?;
        let expected = || wrong(format!("{}: expected USER:PASSWORD in the first line", file.display()));
        let (user, password) = account(&text).ok_or_else(expected)?;
        for address in relays {
            options.relays.push(RelayServer { address, user: user.clone(), password: password.clone() });
            if stun.len() < 4 && !stun.contains(&address) {
                stun.push(address);
            }
        }
    }
    Ok(Some(IceOptions { stun, ..options }))
}

/// This end's description: its streams and paths.
pub(super) fn described(args: &PartyArgs, call: CallConfig, media: Vec<PartyMedia>) -> Result<Party, Failure> {
    let (mut paths, mut policies) = (Vec::new(), Vec::new());
    for text in &args.paths.path {
        let (text, class) = text.rsplit_once('=').map_or((&text[..], None), |(text, class)| (text, Some(class)));
        let path: PathAddress = text.parse().map_err(|what| InputError::whole("--path", what))?;
        // With ICE a further interface may appear in mid-call.
        if !args.ice.ice || paths.is_empty() {
            path.resolve().map_err(failure)?;
        }
        policies.push(PathPolicy::of(class.map_or(Ok(PathClass::default()), path_class)?));
        if paths.contains(&path) {
            return Err(InputError::whole("--path", format!("{path} is given twice: each path has its own")).into());
        }
        paths.push(path);
    }
    if paths.len() > MAX_PATHS {
        let what = format!("given {} times: a call has {MAX_PATHS} paths at most", paths.len());
        return Err(InputError::whole("--path", what).into());
    }
    if !paths.is_empty() && matches!(call.transport, Some(Transport::Dccp { .. })) {
        return Err(InputError::whole("--path", "a call over DCCP has one path: use --transport udp").into());
    }
    let uses = PathUse {
        scheduler: args.paths.scheduler.clone(),
        coupling: args.paths.coupling.clone(),
        policies,
        sufficient_rate: args.paths.sufficient_rate,
        ..PathUse::default()
    };
    uses.check().map_err(|e| InputError::whole("--scheduler, --coupling", e.to_string()))?;
    if args.ice.ice && matches!(call.transport, Some(Transport::Dccp { .. })) {
        return Err(InputError::whole("--ice", "a call over DCCP is at one address: use --transport udp").into());
    }
    let ice = ice_options(&args.ice)?;
    let offers_paths = !paths.is_empty();
    let mut paths = paths.into_iter();
    Ok(Party {
        first_path: paths.next().or(args.address.map(PathAddress::Ip)),
        port: args.port,
        further_paths: paths.collect(),
        offers_paths,
        ice,
        token: token(args)?,
        ..Party::new(CallConfig { paths: uses, ..call }, media, trust(args)?)
    })
}

/// The other end's addresses.
pub(super) fn remotes(a: &Agreement) -> String {
    a.paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Agrees on a call with the other end.
pub(super) fn join(session: &Session, args: &PartyArgs, party: &Party, listens: bool) -> Result<Joined, Failure> {
    let by = signalling(args)?;
    if party.token.is_some() && matches!(by, Signalling::File(_)) {
        return Err(InputError::whole("--token", SignalError::FileToken.to_string()).into());
    }
    let quiet = args.output.quiet;
    if args.insecure && !quiet {
        remark("--insecure: keys and media may cross the network unprotected");
    }
    if !listens {
        if !quiet {
            remark(&format!("calling {}", args.signal));
        }
        return party.connect(&by, &session.stop).map_err(failure);
    }
    let identity = match &by {
        Signalling::Tls(_) => Some(Identity::load_or_generate(&identity_path(args)?).map_err(signalling_failure)?),
        _ => None,
    };
    let fingerprint = identity.as_ref().map(Identity::fingerprint);
    let listener = Listener::bind(&by, identity, &party.trust).map_err(signalling_failure)?;
    let mut listener = listener.with_token(party.token.clone()).map_err(signalling_failure)?;
    if !quiet {
        let at = listener.local_addr().map_or_else(|| args.signal.clone(), |at| at.to_string());
        let print = fingerprint.map_or(String::new(), |f| format!("\n  --fingerprint {f}"));
        remark(&format!("waiting at {at}{print}"));
    }
    let mut log = RefusalLog { quiet, ..RefusalLog::default() };
    let joined = party.await_call(&mut listener, &session.stop, &mut |r| log.add(r)).map_err(failure);
    log.finish();
    joined
}

/// A line for each refused connection, within a limit.
#[derive(Default)]
struct RefusalLog {
    quiet: bool,
    since: Option<Instant>,
    lines: u32,
    omitted: u64,
}

impl RefusalLog {
    #[expect(clippy::disallowed_methods, reason = "lines a second of a person's terminal")]
    fn add(&mut self, refused: &Refused) {
        let now = Instant::now();
        if self.since.is_none_or(|s| now - s >= Duration::from_secs(1)) {
            self.finish();
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines >= MAX_LINES || self.quiet {
            self.omitted += 1;
            return;
        }
        self.lines += 1;
        remark(&format!("refused {}", refused.why));
    }

    fn finish(&mut self) {
        let omitted = std::mem::take(&mut self.omitted);
        if omitted > 0 && !self.quiet {
            remark(&format!("refused {omitted} more"));
        }
    }
}
