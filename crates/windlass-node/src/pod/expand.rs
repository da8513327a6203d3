//! `$(NAME)` in commands, arguments and environment variables.

/// Replaces each `$(NAME)` by what `value` has for it; a name that it does not have stays as it is written. `$$` is a
/// dollar sign, so that `$$(NAME)` is the text `$(NAME)`.
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.chars().next() {
            None => {
                out.push('$');
                return out;
            }
            Some('$') => {
                out.push('$');
                rest = &rest[1..];
            }
            Some('(') => match rest.find(')') {
                Some(end) => {
                    let name = &rest[1..end];
                    match value(name) {
                        Some(value) => out.push_str(&value),
                        None => out.push_str(&format!("$({name})")),
                    }
                    rest = &rest[end + 1..];
                }
                None => {
                    out.push_str("$(");
                    rest = &rest[1..];
                }
            },
            Some(other) => {
                out.push('$');
                out.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_expands_is_expanded() {
        let value = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "B" => Some("$(A)".to_owned()),
            "" => Some("empty".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("plain", "plain"),
            ("$(A)-$(B)", "1-$(A)"),
            ("$(C)", "$(C)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$()", "empty"),
            ("$(A)$(A)é$é", "11é$é"),
            ("$($(A))", "$($(A))"),
        ] {
            assert_eq!(expand(text, value), expected, "{text}");
        }
    }
}
