//! Warnings that several kinds share. Each function adds what it has to say to `out`.

use std::net::IpAddr;

use serde_json::Value;

use super::check::{quantity, sloppy_ip};
use super::names;
use super::tree::{at, list, text};
use crate::field::Path;

/// What is to be said of a label of nodes that is no longer in use.
pub(crate) fn node_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

/// A term of a node selector; values are looked at where nothing else checks them.
pub(crate) fn node_selector_term(term: &Value, values: bool, path: &Path<'_>, out: &mut Vec<String>) {
    let path = path.child("matchExpressions");
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.index(index);
        let key = text(expression, "key");
        if let Some(message) = node_label(key) {
            out.push(format!("{}: {key} is {message}", path.child("key")));
        }
        if !values {
            continue;
        }
        let path = path.child("values");
        for (index, value) in list(expression, "values").iter().filter_map(Value::as_str).enumerate() {
            for fault in names::label_value(value) {
                out.push(format!("{}: {value} is invalid, {fault}", path.index(index)));
            }
        }
    }
}

/// An amount of bytes that is none: half of one, for example.
pub(crate) fn fractional(amounts: Option<&Value>, name: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let Some(amount) = amounts.and_then(|amounts| amounts.get(name)) else { return };
    if quantity(amount).and_then(|amount| amount.as_milli()).is_some_and(|milli| milli % 1000 != 0) {
        let shown = amount.as_str().unwrap_or_default();
        out.push(format!(
            "{}: fractional byte value {shown:?} is invalid, must be an integer",
            path.key(name)
        ));
    }
}

/// The spec of a claim, also of those in templates.
pub(crate) fn claim_spec(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let resources = path.child("resources");
    for field in ["requests", "limits"] {
        fractional(at(spec, &["resources", field]), "storage", &resources.child(field), out);
    }
}

/// An address that is written in an unusual way.
pub(crate) fn ip(value: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let Some(address) = sloppy_ip(value) else { return };
    match value.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_none() => {
            if six.to_string() != value {
                out.push(format!(
                    "{path}: IPv6 address {value:?} should be in RFC 5952 canonical format ({:?})",
                    six.to_string()
                ));
            }
        }
        Ok(IpAddr::V4(_)) => {}
        _ => out.push(format!(
            "{path}: non-standard IP address {value:?} is invalid: use {:?}",
            address.to_string()
        )),
    }
}

/// A range of addresses that is written in an unusual way.
pub(crate) fn cidr(value: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let Some((head, length)) = value.split_once('/') else { return };
    let (Some(address), Ok(length)) = (sloppy_ip(head), length.parse::<u32>()) else { return };
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let Some(host) = bits.checked_sub(length) else { return };
    let before = out.len();
    let network = format!("{}/{length}", network(address, host));
    if network != format!("{address}/{length}") {
        out.push(format!(
            "{path}: CIDR value {value:?} is ambiguous in this context (should be {network:?} or {:?}?)",
            format!("{address}/{bits}")
        ));
    }
    match head.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_none() => {
            if out.len() == before && network != value {
                out.push(format!(
                    "{path}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format ({network:?})"
                ));
            }
        }
        Ok(IpAddr::V4(_)) => {}
        _ => out.push(format!("{path}: non-standard CIDR value {value:?} is invalid: use {network:?}")),
    }
}

/// The address without its last bits.
fn network(address: IpAddr, host: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(host).unwrap_or(0);
            IpAddr::V4((u32::from(four) & mask).into())
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(host).unwrap_or(0);
            IpAddr::V6((u128::from(six) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(warn: impl Fn(&Path<'_>, &mut Vec<String>)) -> Vec<String> {
        let mut out = Vec::new();
        warn(&Path::Root.child("f"), &mut out);
        out
    }

    #[test]
    fn addresses_in_their_usual_form_are_not_warned_of() {
        for good in ["1.2.3.4", "::1", "2001:db8::1", "nonsense"] {
            assert_eq!(said(|path, out| ip(good, path, out)), [""; 0], "{good}");
        }
        let of = |value: &str| said(|path, out| ip(value, path, out));
        assert_eq!(of("01.2.3.4"), ["f: non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\""]);
        assert_eq!(
            of("::ffff:1.2.3.4"),
            ["f: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""]
        );
        assert_eq!(
            of("::0001"),
            ["f: IPv6 address \"::0001\" should be in RFC 5952 canonical format (\"::1\")"]
        );
    }

    #[test]
    fn ranges_with_bits_of_a_host_are_ambiguous() {
        let of = |value: &str| said(|path, out| cidr(value, path, out));
        assert_eq!(of("10.0.0.0/24"), [""; 0]);
        assert_eq!(
            of("10.0.0.1/24"),
            ["f: CIDR value \"10.0.0.1/24\" is ambiguous in this context (should be \"10.0.0.0/24\" or \
                 \"10.0.0.1/32\"?)"]
        );
        assert_eq!(of("::/0"), [""; 0]);
        assert_eq!(
            of("2001:DB8::/32"),
            [
                "f: IPv6 CIDR value \"2001:DB8::/32\" should be in RFC 5952 canonical format (\"2001:db8::/32\")"
            ]
        );
    }
}
