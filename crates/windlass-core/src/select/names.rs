//! What a label key and a label value may be.

const NAME_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// What is wrong with a label key (`[prefix/]name`), in upstream's words; empty if nothing is.
pub fn label_key_faults(key: &str) -> Vec<String> {
    let name_fault = || {
        format!(
            "{NAME_WORDS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME_REGEX}')"
        )
    };
    let mut faults = Vec::new();
    let name = match *key.split('/').collect::<Vec<_>>() {
        [name] => name,
        [prefix, name] => {
            faults.extend(prefix_faults(prefix));
            name
        }
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {example}", name_fault())];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".into());
    } else if name.len() > LABEL_MAX {
        faults.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_name(name) {
        faults.push(format!("name part {}", name_fault()));
    }
    faults
}

/// What is wrong with a label value, in upstream's words; empty if nothing is.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push(format!("must be no more than {LABEL_MAX} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        let words = NAME_WORDS.strip_prefix("must ").unwrap_or(NAME_WORDS);
        faults.push(format!("a valid label must be an empty string or {words} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({NAME_REGEX})?')"));
    }
    faults
}

fn prefix_faults(prefix: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".into()];
    }
    if prefix.len() > SUBDOMAIN_MAX {
        faults.push(format!("prefix part must be no more than {SUBDOMAIN_MAX} bytes"));
    }
    if !is_subdomain(prefix) {
        faults.push(format!("prefix part {SUBDOMAIN}"));
    }
    faults
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    })
}
