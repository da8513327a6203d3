//! Who a certificate speaks of: its subject's common name is the user, its organisations are the groups.
//!
//! Only certificates that our own authority has signed get here, so this reads the one shape that a certificate has
//! and gives up on anything else.

use crate::api::User;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0] EXPLICIT`: the version of a certificate.
const VERSION: u8 = 0xa0;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// UTF8String, PrintableString, IA5String: the text types whose bytes are UTF-8.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The user that a certificate in DER names; `None` where it names none.
pub(super) fn user(certificate: &[u8]) -> Option<User> {
    let (_, certificate) = expect(certificate, SEQUENCE)?;
    let (_, mut rest) = expect(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (_, mut subject) = expect(rest, SEQUENCE)?;
    let mut user = User { name: String::new(), groups: Vec::new() };
    while !subject.is_empty() {
        let (after, mut attributes) = expect(subject, SET)?;
        while !attributes.is_empty() {
            let (next, attribute) = expect(attributes, SEQUENCE)?;
            let (value, identifier) = expect(attribute, OBJECT_IDENTIFIER)?;
            let (tag, text, _) = element(value)?;
            let text = std::str::from_utf8(text).ok().filter(|_| TEXTS.contains(&tag));
            match (identifier, text) {
                (COMMON_NAME, Some(text)) => user.name = text.to_owned(),
                (ORGANIZATION, Some(text)) => user.groups.push(text.to_owned()),
                _ => {}
            }
            attributes = next;
        }
        subject = after;
    }
    if user.name.is_empty() {
        return None;
    }
    user.groups.push("system:authenticated".to_owned());
    Some(user)
}

/// What follows an element, and its content, if it has this tag.
fn expect(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(der)?;
    (tag == wanted).then_some((rest, content))
}

/// The tag and the content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let digits = usize::from(first & 0x7f);
        if digits == 0 || digits > 4 {
            return None;
        }
        let (bytes, after) = rest.split_at_checked(digits)?;
        length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".into()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn common_name_and_organisation_become_user_and_group() {
        let der = certificate(&[(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "mia ☸")]);
        let user = user(&der).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("mia ☸", vec!["system:masters".into(), "system:authenticated".to_owned()])
        );
    }

    #[test]
    fn without_a_common_name_it_is_nobody() {
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "g")])), None);
    }

    #[test]
    fn cut_or_changed_anywhere_it_is_read_without_a_panic() {
        let der = certificate(&[(DnType::CommonName, "mia")]);
        for end in 0..der.len() {
            assert_eq!(user(&der[..end]), None, "cut at {end}");
        }
        for at in 0..der.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[at] = byte;
                let _ = user(&changed);
            }
        }
    }
}
