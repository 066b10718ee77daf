//! Network namespaces that leave nothing behind.
//!
//! A namespace here has no name and no file: a thread holds it, and the kernel removes it, including devices and
//! routes, when the last thread, socket or process in it is gone. So nothing is left after a crash or SIGKILL either.
//! Threads and processes started from the holding thread are in its namespace; sockets stay in the one in which they
//! were opened.

use nix::sched::{CloneFlags, unshare};
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Why a namespace or a device could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The process lacks a privilege.
    #[error(
        "{what}: not permitted ({source}). This needs CAP_SYS_ADMIN and CAP_NET_ADMIN: run it as root, or, where the \
         kernel lets users have namespaces of their own, as `unshare --user --map-root-user weir ...`"
    )]
    Privilege {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// There is no TUN driver.
    #[error(
        "cannot open /dev/net/tun ({source}): load the kernel's `tun` module (`modprobe tun`); in a container, hand the \
         device in (`docker run --device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN ...`)"
    )]
    NoTun {
        /// The system's error.
        source: io::Error,
    },
    /// A program is missing.
    #[error("cannot start `{program}`: {source}{hint}")]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
        /// The Debian package that has it, as an addition to the message.
        hint: String,
    },
    /// A TCP congestion control that the kernel lacks, or denies to this process; with the remedy.
    #[error("{0}")]
    Congestion(String),
    /// Anything else that the system refused.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl SetupError {
    pub(crate) fn new(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            Self::Privilege { what, source }
        } else {
            Self::System { what, source }
        }
    }

    /// Whether more privilege, perhaps in a user namespace, would help.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::Privilege { .. })
    }
}

/// The Debian package of a program that testbeds use.
fn package(program: &str) -> Option<&'static str> {
    match program {
        "iperf3" => Some("iperf3"),
        "setpriv" | "unshare" | "nsenter" => Some("util-linux"),
        "ip" | "ss" => Some("iproute2"),
        _ => None,
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, held by its own thread. Dropping it ends the thread, and with it the processes started here.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    tid: i32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// A new namespace that contains only a loopback device; `name` is for messages.
    ///
    /// Errors: the privilege that is missing.
    pub fn new(name: &str) -> Result<Self, SetupError> {
        let (jobs, inbox) = channel::<Job>();
        let (made, answer) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("netns {name}"))
            .spawn(move || {
                let done = unshare(CloneFlags::CLONE_NEWNET).map(|()| nix::unistd::gettid().as_raw());
                let failed = done.is_err();
                // The receiver of the answer exists.
                let _ = made.send(done);
                if failed {
                    return;
                }
                while let Ok(job) = inbox.recv() {
                    job();
                }
            })
            .map_err(|e| SetupError::new("cannot start a thread", e))?;
        let what = "cannot make a network namespace";
        let gone = || SetupError::new(what, io::Error::other("its thread has ended"));
        let tid = answer.recv().map_err(|_| gone())?.map_err(|e| SetupError::new(what, e.into()))?;
        let namespace = Self { name: name.to_owned(), tid, jobs: Some(jobs), thread: Some(thread) };
        // Programs that connect to themselves need a loopback; without `ip` they have none.
        if let Ok(mut ip) = Self::command("ip") {
            ip.args(["link", "set", "lo", "up"]).stderr(Stdio::null());
            if let Ok(mut ip) = namespace.start(ip) {
                let _ = ip.wait();
            }
        }
        Ok(namespace)
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure in the namespace, on its thread, and waits for it. Threads started there are in the namespace
    /// too.
    ///
    /// Errors: `job` has panicked, now or in an earlier call.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, SetupError> {
        let (done, answer) = channel();
        let job = move || {
            let _ = done.send(job());
        };
        let gone = || SetupError::new(format!("namespace {}", self.name), io::Error::other("its thread has ended"));
        self.jobs.as_ref().and_then(|j| j.send(Box::new(job)).ok()).ok_or_else(gone)?;
        answer.recv().map_err(|_| gone())
    }

    /// The namespace as a file, while it lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/task/{}/ns/net", std::process::id(), self.tid)
    }

    /// The command that enters it from another shell.
    pub fn enter(&self) -> String {
        format!("nsenter --net={}", self.path())
    }

    /// A program to be started by [`Self::start`]: give it arguments, environment and files as usual.
    ///
    /// It and the processes that it starts are killed when the namespace or this process ends for any reason: it runs
    /// in its own process namespace, whose first process is tied to the thread that holds the network namespace.
    ///
    /// Errors: the program, or one that is needed to start it, is not there.
    pub fn command(program: &str) -> Result<Command, SetupError> {
        for needed in [program, "setpriv", "unshare"] {
            if !is_program(needed) {
                let package = package(needed).map_or(String::new(), |p| format!(" (Debian package: {p})"));
                let hint = format!("{package}{}", path_hint());
                let source = io::ErrorKind::NotFound.into();
                return Err(SetupError::Program { program: needed.to_owned(), source, hint });
            }
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--kill-child=KILL", "--", program]);
        Ok(command)
    }

    /// Starts a [`Self::command`] in the namespace. Errors: the system refused.
    pub fn start(&self, mut command: Command) -> Result<Process, SetupError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = self.run(move || command.spawn())?;
        // Refused where no program of that name in PATH may be executed: no privilege of ours would help.
        let failed = |source| SetupError::Program { program, source, hint: path_hint() };
        Ok(Process { child: child.map_err(failed)? })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has already printed its message.
            let _ = thread.join();
        }
    }
}

/// Where programs are looked for, as an addition to a message.
fn path_hint() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("; programs are looked for in PATH, which is \"{path}\"")
}

/// Whether a program is there to be started.
pub fn is_program(program: &str) -> bool {
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).any(|d| d.join(program).is_file())
}

/// A program in a namespace; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
    /// Its status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
    /// Its standard output, if that is a pipe and has not been taken.
    pub fn take_stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }
    /// Its standard error, if that is a pipe and has not been taken.
    pub fn take_stderr(&mut self) -> Option<std::process::ChildStderr> {
        self.child.stderr.take()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A namespace, or a line that states why the test is skipped.
    pub(crate) fn namespace(name: &str) -> Option<Namespace> {
        match Namespace::new(name) {
            Ok(n) => Some(n),
            Err(e) => {
                println!("skipped: {e}");
                None
            }
        }
    }

    #[test]
    fn a_namespace_is_its_own_and_goes_with_its_thread() {
        let Some(n) = namespace("alone") else { return };
        let here = std::fs::read_link("/proc/thread-self/ns/net").expect("there");
        let there = n.run(|| std::fs::read_link("/proc/thread-self/ns/net")).expect("alive").expect("there");
        assert_ne!(here, there);
        assert_eq!(std::fs::read_link(n.path()).expect("there"), there);
        let inherited = n.run(|| std::thread::spawn(|| std::fs::read_link("/proc/thread-self/ns/net")).join());
        assert_eq!(inherited.expect("alive").expect("no panic").expect("there"), there);
        let path = n.path();
        drop(n);
        assert!(std::fs::read_link(path).is_err(), "its thread has ended");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of real time")]
    fn programs_and_their_children_die_with_the_namespace() {
        let Some(n) = namespace("programs") else { return };
        let mut sh = match Namespace::command("sh") {
            Ok(c) => c,
            Err(e) => return println!("skipped: {e}"),
        };
        // The pipe stays open as long as the shell or its background child lives.
        sh.args(["-c", "sleep 100 & echo begun; sleep 100"]).stdout(Stdio::piped());
        let mut process = n.start(sh).expect("started");
        let mut out = process.take_stdout().expect("a pipe");
        let mut line = [0; 6];
        out.read_exact(&mut line).expect("a line");
        assert_eq!(&line, b"begun\n");
        let began = std::time::Instant::now();
        drop(n);
        assert_eq!(out.read(&mut line).expect("an end"), 0);
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
        drop(process);
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let e = Namespace::command("no-such-program-here").expect_err("missing");
        assert!(e.to_string().contains("no-such-program-here"), "{e}");
        assert_eq!(package("iperf3"), Some("iperf3"));
    }

    #[test]
    fn missing_privilege_is_reported_with_the_remedy() {
        let e = SetupError::new("cannot make a network namespace", nix::Error::EPERM.into());
        assert!(e.is_privilege());
        let text = e.to_string();
        assert!(text.contains("CAP_SYS_ADMIN") && text.contains("unshare --user"), "{text}");
    }
}
