//! The arguments of somebody else's program, of which only some mean anything to us.

use std::collections::BTreeMap;

/// Flags by their names, without the dashes; each with what was given, in order.
#[derive(Debug, Default)]
pub struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Reads `--name=value`, `--name value` and `--name`. Nothing is refused: a suite may pass any flag of the program that we
    /// stand in for.
    pub fn parse(arguments: &[String]) -> Flags {
        let mut flags = Flags::default();
        let mut arguments = arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix('-') else { continue };
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (flag, arguments.next_if(|next| !next.starts_with('-')).cloned().unwrap_or_default()),
            };
            flags.0.entry(name.to_owned()).or_default().push(value);
        }
        flags
    }

    /// The last value of a flag; `None` where it was not given, or is empty.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All values of a flag that is a list: several times, or with commas, or both.
    pub fn list(&self, name: &str) -> Vec<&str> {
        let values = self.0.get(name).into_iter().flatten();
        values.flat_map(|value| value.split(',')).filter(|value| !value.is_empty()).collect()
    }

    /// Answers `--help` and `--version`, if they were given.
    pub fn answers(&self, help: &str, version: impl std::fmt::Display) -> bool {
        if self.has("help") || self.has("h") {
            print!("{help}");
            return true;
        }
        if self.has("version") {
            println!("{version}");
            return true;
        }
        false
    }

    /// Whether a flag was given at all.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Flags {
        Flags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn every_way_to_write_a_flag_is_read() {
        let flags =
            parse("--secure-port=1234 --bind-address 127.0.0.1 --allow-privileged -v=2 --cert-dir= word");
        assert_eq!(flags.last("secure-port"), Some("1234"));
        assert_eq!(flags.last("bind-address"), Some("127.0.0.1"));
        assert_eq!(flags.last("v"), Some("2"));
        assert!(flags.has("allow-privileged"));
        assert_eq!(flags.last("allow-privileged"), None);
        assert_eq!(flags.last("cert-dir"), None, "as if it were not given");
        assert!(!flags.has("word"));
    }

    #[test]
    fn a_flag_may_come_more_than_once() {
        let flags =
            parse("--feature-gates=A=true --feature-gates=B=false,C=true --secure-port=1 --secure-port=2");
        assert_eq!(flags.list("feature-gates"), ["A=true", "B=false", "C=true"]);
        assert_eq!(flags.last("secure-port"), Some("2"));
    }
}
