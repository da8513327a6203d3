//! The ground that operators are checked on.

use std::path::Path;

use windlass_conformance::operators::{Ours, Times, foobar, run_one};

#[test]
fn our_server_tells_who_asked_for_what() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("operators");
    let server = Ours::start(&folder.join("ours")).unwrap();
    let control = foobar::CHECKS.iter().find(|check| check.name == "control").unwrap();
    run_one(control, &server, Path::new("none"), &Times::short(), &folder).unwrap();
}
