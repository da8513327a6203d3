//! The order of versions, and what to use instead of a deprecated one.

use std::cmp::Reverse;

use super::Version;

/// Kubernetes' order of versions: GA over beta over alpha, higher over lower, then names.
pub fn version_order(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let name = Reverse(version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0, name) };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else { return (0, 0, 0, name) };
    let tail = &rest[digits..];
    let stage = |class: u8, text: &str| text.parse().map(|minor| (class, major, minor, name.clone())).ok();
    match tail {
        "" => (3, major, 0, name),
        _ if tail.starts_with("beta") => stage(2, &tail[4..]).unwrap_or((0, 0, 0, name)),
        _ if tail.starts_with("alpha") => stage(1, &tail[5..]).unwrap_or((0, 0, 0, name)),
        _ => (0, 0, 0, name),
    }
}

/// Adds to the server's own words about a deprecated version which newer one to use, if one is served.
pub(super) fn recommend(versions: &mut [Version]) {
    let mut current: Vec<String> = versions
        .iter()
        .filter(|version| version.served && version.deprecation.is_none())
        .map(|version| version.name.clone())
        .collect();
    current.sort_by_key(|name| Reverse(version_order(name)));
    for version in versions {
        let own = format!("{}/{} {} is deprecated", version.group, version.name, version.names.kind);
        let newer = current.iter().find(|name| version_order(name) > version_order(&version.name));
        if let (Some(warning), Some(newer)) = (&mut version.deprecation, newer)
            && *warning == own
        {
            warning.push_str(&format!("; use {}/{newer} {}", version.group, version.names.kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_kubernetes_sorts_them() {
        let mut versions = vec!["v1beta1", "foo", "v2", "v1", "v11alpha2", "v10", "v1beta2", "v12alpha1"];
        versions.sort_by_key(|version| Reverse(version_order(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v12alpha1", "v11alpha2", "foo"]);
    }
}
