//! The program: see `foobar-operator --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    foobar_operator::operator().main()
}
