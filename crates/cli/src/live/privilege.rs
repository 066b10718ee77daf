//! The privilege that namespaces need.

use crate::output::{Failure, remark};
use crate::session::USER_NAMESPACE;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use weir_live::netns::{Namespace, SetupError};

/// A program that namespaces need cannot be started.
fn not_started(program: &str, e: &std::io::Error) -> Failure {
    let path = std::env::var("PATH").unwrap_or_default();
    Failure::Work(format!(
        "cannot start `{program}`: {e}. It is looked for in PATH, which is \"{path}\"; Debian has it in the package util-linux"
    ))
}

/// Makes sure that namespaces can be made: where the process lacks the privilege and the kernel lets users have
/// namespaces of their own, it starts itself again in one.
pub(crate) fn with_privilege(quiet: bool) -> Result<(), Failure> {
    let lacking = match Namespace::new("probe") {
        Ok(_) => return Ok(()),
        Err(e @ SetupError::Privilege { .. }) => e,
        Err(e) => return Err(Failure::work(e)),
    };
    let unshare = || {
        let mut c = Command::new("unshare");
        c.args(["--user", "--map-root-user", "--"]);
        c
    };
    let mut probe = unshare();
    probe.arg("true").stderr(Stdio::null());
    match probe.status() {
        _ if std::env::var_os(USER_NAMESPACE).is_some() => return Err(Failure::work(lacking)),
        // A lack of the program is none of privilege.
        Err(e) => return Err(not_started("unshare", &e)),
        Ok(status) if !status.success() => return Err(Failure::work(lacking)),
        Ok(_) => {}
    }
    if !quiet {
        remark("without privilege: working in a user namespace of its own, without real-time scheduling");
    }
    let exe = std::env::current_exe().map_err(Failure::work)?;
    // Returns only if it fails.
    let failed = unshare().arg(exe).args(std::env::args_os().skip(1)).env(USER_NAMESPACE, "1").exec();
    Err(Failure::work(format!("{lacking}; and unshare: {failed}")))
}
