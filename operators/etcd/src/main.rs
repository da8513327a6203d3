//! The program: see `etcd-operator --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    etcd_operator::operator().main()
}
