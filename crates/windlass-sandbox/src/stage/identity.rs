//! Who a program is and what it may do.

use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::error::Failure;
use crate::spec::{Capabilities, User};

/// Gives up what the program may not do and becomes its user.
///
/// `mapped` says that ids need no change: a user namespace shows them already.
pub(super) fn assume(
    user: &User,
    capabilities: &Capabilities,
    no_new_privileges: bool,
    mapped: bool,
) -> Result<(), Failure> {
    let step = |step: &'static str| move |error: nix::Error| Failure::step(step)(error.into());
    bound(allowed(capabilities)).map_err(Failure::step("give up capabilities"))?;
    if !mapped {
        let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups).map_err(step("set the groups"))?;
        setgid(Gid::from_raw(user.gid)).map_err(step("set the group id"))?;
        setuid(Uid::from_raw(user.uid)).map_err(step("set the user id"))?;
    }
    if no_new_privileges {
        rustix::thread::set_no_new_privs(true)
            .map_err(|e| Failure::step("forbid new privileges")(e.into()))?;
    }
    Ok(())
}

/// Shows this process the ids it asked for, in a user namespace that maps them to the only ones an
/// ordinary user has.
pub(super) fn map(user: &User) -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| Failure::step("make a user namespace")(e.into()))?;
    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(Failure::step(format!("write {file}")))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} 0 1", user.uid))?;
    write("gid_map", format!("{} 0 1", user.gid))
}

/// Takes all but these from what the program can ever have.
fn bound(allowed: CapabilitySet) -> io::Result<()> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if allowed.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The first number that this kernel does not know.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What container runtimes leave to root. Making device files is not among it: a file of the
/// machine's disk would be the machine's disk.
const DEFAULT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::SETFCAP);

fn allowed(capabilities: &Capabilities) -> CapabilitySet {
    let named = |names: &[String]| {
        names.iter().fold(CapabilitySet::empty(), |set, name| {
            let name = name.to_ascii_uppercase();
            let name = name.strip_prefix("CAP_").unwrap_or(&name);
            // A name that this program does not know gives nothing.
            set | if name == "ALL" {
                CapabilitySet::all()
            } else {
                CapabilitySet::from_name(name).unwrap_or(CapabilitySet::empty())
            }
        })
    };
    DEFAULT.difference(named(&capabilities.drop)) | named(&capabilities.add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(add: &[&str], drop: &[&str]) -> CapabilitySet {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        allowed(&Capabilities { add: own(add), drop: own(drop) })
    }

    #[test]
    fn names_are_taken_as_kubernetes_writes_them() {
        assert_eq!(set(&[], &[]), DEFAULT);
        assert_eq!(set(&["NET_BIND_SERVICE"], &["ALL"]), CapabilitySet::NET_BIND_SERVICE);
        assert_eq!(set(&["CAP_SYS_ADMIN"], &[]), DEFAULT | CapabilitySet::SYS_ADMIN);
        assert!(!set(&[], &["net_raw"]).contains(CapabilitySet::NET_RAW));
        assert!(set(&["ALL"], &[]).contains(CapabilitySet::SYS_BOOT));
    }
}
