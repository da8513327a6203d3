//! The operator as a process, driven by kubectl: on our server, with short times. `make conformance` runs the same checks
//! on a real kube-apiserver, with the times that users have.

use std::path::Path;

use windlass_conformance::operators::{Ours, Times, foobar, run_one};

/// Runs one check on a server of its own.
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("process").join(name);
    let server = Ours::start(&folder.join("server")).expect("a server");
    let check = foobar::CHECKS.iter().find(|check| check.name == name).expect("a check of this name");
    let program = Path::new(env!("CARGO_BIN_EXE_foobar-operator"));
    match run_one(check, &server, program, &Times::short(), &folder) {
        Ok(figures) => println!("{figures}"),
        Err(error) => panic!("{error:#}"),
    }
}

/// One test each, and none forgotten.
macro_rules! checks {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_check_is_a_test() {
            let names: Vec<&str> = foobar::CHECKS.iter().map(|check| check.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

checks!(control life role crash rest killed stopped ended refused manifests plan);
