//! Versions, read as the real server reads them. The library has rules and words of its own, and counts what says how
//! something was built when it compares two versions.

use super::library;
use super::value::{Fault, Result, Val};

/// `semver` and `isSemver`.
pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let (text, normalize) = match args {
        [Val::Text(text)] => (text, false),
        [Val::Text(text), Val::Bool(normalize)] => (text, *normalize),
        _ => return None,
    };
    let version = || if normalize { parse(&normalized(text)?) } else { parse(text) };
    match name {
        "semver" => Some(match version() {
            Ok(version) => library::call(None, "semver", None, &[Val::text(version)]),
            Err(why) => Err(Fault::Other(why)),
        }),
        "isSemver" => Some(Ok(Val::Bool(version().is_ok()))),
        _ => None,
    }
}

type Parsed = std::result::Result<String, String>;

/// The text with three numbers that have no zeros before them.
fn normalized(text: &str) -> Parsed {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in parts.iter_mut().filter(|part| part.len() > 1) {
        let rest = part.trim_start_matches('0');
        let zero = if rest.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
        *part = format!("{zero}{rest}");
    }
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3.max(parts.len()), "0".to_owned());
    Ok(parts.join("."))
}

/// The version without what says how it was built.
fn parse(text: &str) -> Parsed {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    number("major", major)?;
    number("minor", minor)?;
    let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
    let (patch, release) = rest.split_once('-').map_or((rest, None), |(patch, rest)| (patch, Some(rest)));
    number("patch", patch)?;
    for part in release.into_iter().flat_map(|release| release.split('.')) {
        match part {
            "" => return Err("Prerelease is empty".to_owned()),
            _ if is_number(part) && has_leading_zeros(part) => {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {part:?}"));
            }
            _ if is_number(part) => fits(part)?,
            _ if is_name(part) => {}
            _ => return Err(format!("Invalid character(s) found in prerelease {part:?}")),
        }
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        match part {
            "" => return Err("Build meta data is empty".to_owned()),
            _ if is_name(part) => {}
            _ => return Err(format!("Invalid character(s) found in build meta data {part:?}")),
        }
    }
    let release = release.map(|release| format!("-{release}")).unwrap_or_default();
    Ok(format!("{major}.{minor}.{patch}{release}"))
}

fn number(name: &str, text: &str) -> std::result::Result<(), String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {name} number {text:?}"));
    }
    if has_leading_zeros(text) {
        let name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    fits(text)
}

fn fits(text: &str) -> std::result::Result<(), String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse::<u64>().map(|_| ()).map_err(|_| format!("strconv.ParseUint: parsing {text:?}: {why}"))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_real_server_reads_them() {
        let strict = |text: &str| parse(text).unwrap_or_else(|why| why);
        assert_eq!(strict("1.2.3-rc.1+x.y"), "1.2.3-rc.1");
        assert_eq!(strict(""), "Version string empty");
        assert_eq!(strict("1.2"), "No Major.Minor.Patch elements found");
        assert_eq!(strict("v1.2.3"), "Invalid character(s) found in major number \"v1\"");
        assert_eq!(strict("1.02.3"), "Minor number must not contain leading zeroes \"02\"");
        assert_eq!(strict("1.2."), "strconv.ParseUint: parsing \"\": invalid syntax");
        assert_eq!(strict("1.2.3-"), "Prerelease is empty");
        assert_eq!(strict("1.2.3-01"), "Numeric PreRelease version must not contain leading zeroes \"01\"");
        let lenient = |text: &str| normalized(text).and_then(|text| parse(&text)).unwrap_or_else(|why| why);
        assert_eq!(lenient("v01.2"), "1.2.0");
        assert_eq!(lenient("1.0-rc"), "short version cannot contain PreRelease/Build meta data");
        assert_eq!(lenient("V1"), "Invalid character(s) found in major number \"0V1\"");
    }
}
