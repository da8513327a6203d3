//! The rules that names, label keys and other short texts follow, with kube-apiserver's wording.
//!
//! Each rule returns what is wrong with a text, and nothing if all is well.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// A rule for a text.
pub type Rule = fn(&str) -> Vec<String>;

/// A DNS label of RFC 1123: `my-name`.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "characters");
    if !is_label(text) {
        faults.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            ),
        });
    }
    faults
}

/// A DNS subdomain of RFC 1123: `example.com`.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain_within(text, "characters")
}

fn subdomain_within(text: &str, unit: &str) -> Vec<String> {
    let mut faults = too_long(text, 253, unit);
    if !is_subdomain(text) {
        faults.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    faults
}

/// A DNS label of RFC 1035, which does not start with a digit.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "characters");
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        faults.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// Anything that can stand in a URL path, as RBAC names may be.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|c| text.contains(**c))
            .map(|c| format!("may not contain '{c}'"))
            .collect(),
    }
}

/// A wildcard host: `*.example.com`.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253, "characters");
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        faults.push(pattern(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
             consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    faults
}

/// A label key: a name with an optional DNS prefix, `example.com/my.name`.
pub fn label_key(text: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut faults = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(
                    subdomain_within(prefix, "bytes").iter().map(|fault| format!("prefix part {fault}")),
                );
            }
            *name
        }
        _ => {
            let fault = pattern(WORDS, KEY, EXAMPLES);
            let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {fault} {rest}")];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key(name) {
        faults.push(format!("name part {}", pattern(WORDS, KEY, EXAMPLES)));
    }
    faults
}

/// A label value: empty, or as the name part of a key.
pub fn label_value(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "bytes");
    if !text.is_empty() && !is_key(text) {
        faults.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({KEY})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A key of a config map or secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253, "characters");
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if text.is_empty() || !text.chars().all(allowed) {
        faults.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." | ".." => faults.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// The name of a container or service port.
pub fn port_name(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 15, "characters");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for (broken, fault) in [
        (
            text.is_empty() || !text.chars().all(allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!text.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen"),
    ] {
        if broken {
            faults.push(fault.to_owned());
        }
    }
    faults
}

/// A percentage: `50%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let words = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern(words, "[0-9]+%", &["1%", "93%"])]
}

/// The name of an HTTP header.
pub fn header(text: &str) -> Vec<String> {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A domain in which a search looks for names: some have underscores.
pub fn search_domain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253, "characters");
    let is_part = |part: &str| is_label(&part.strip_prefix('_').unwrap_or(part).replace('_', "-"));
    if !text.split('.').all(is_part) {
        faults.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character",
            "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    faults
}

/// The name of an environment variable.
pub fn env_name(text: &str) -> Vec<String> {
    let bad = text.chars().any(|c| !c.is_ascii() || c.is_ascii_control() || c == '=');
    let fault =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    if bad { vec![fault.to_owned()] } else { Vec::new() }
}

fn too_long(text: &str, max: usize, unit: &str) -> Vec<String> {
    if text.len() > max { vec![format!("must be no more than {max} {unit}")] } else { Vec::new() }
}

fn pattern(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples = examples.iter().map(|example| format!("'{example}', ")).collect::<Vec<_>>().join(" or ");
    format!("{words} (e.g. {examples}regex used for validation is '{pattern}')")
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!(bytes, [first, ..] if inner(*first))
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [first, ..] if first.is_ascii_alphanumeric())
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_accept_and_refuse() {
        let accept: &[(Rule, &[&str])] = &[
            (dns_label, &["a", "a-1", "1a"]),
            (dns_subdomain, &["a.b", "a-1.2"]),
            (dns_1035_label, &["a1"]),
            (path_segment, &["system:a:B", "x"]),
            (label_key, &["a", "a.b/c_D", "A.b"]),
            (label_value, &["", "a", "A_b.c-d"]),
            (config_key, &["a", ".b", "_"]),
            (port_name, &["a1-b"]),
            (percent, &["0%", "100%"]),
            (wildcard_subdomain, &["*.a.b"]),
        ];
        for (rule, texts) in accept {
            for text in *texts {
                assert_eq!(rule(text), Vec::<String>::new(), "{text}");
            }
        }
        let refuse: &[(Rule, &[&str])] = &[
            (dns_label, &["", "A", "a.b", "-a", "a-"]),
            (dns_subdomain, &["", "a..b", "a_b"]),
            (dns_1035_label, &["1a"]),
            (path_segment, &["a/b", ".", "a%b"]),
            (label_key, &["", "a/b/c", "/a", "a/", "-a"]),
            (label_value, &["a b", "-"]),
            (config_key, &["", "..", "..a", "a b"]),
            (port_name, &["", "1", "a--b", "-a", "abcdefghijklmnop"]),
            (percent, &["%", "1", "a%"]),
        ];
        for (rule, texts) in refuse {
            for text in *texts {
                assert!(!rule(text).is_empty(), "{text}");
            }
        }
    }
}
