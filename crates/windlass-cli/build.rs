//! How the program is linked.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu")
        && knows_packed_relocations()
    {
        // 63,000 addresses depend on where the program is loaded. As a list they are 1.5 MB, all of which is read at
        // every start and stays mapped; packed they are 16 kB.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the C library here does: glibc since 2.36. An older one would refuse to start the program.
fn knows_packed_relocations() -> bool {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = said.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    version.is_some_and(|minor| minor >= 36)
}
