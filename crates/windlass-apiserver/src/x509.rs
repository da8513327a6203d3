//! Who a certificate speaks of, and who a request for one: the subject's common name is the user, its organisations are the
//! groups.
//!
//! This reads the one shape that each of them has, and gives up on anything else: of certificates, only those that our own
//! authority has signed get here.

mod curve;
mod pem;
pub(crate) mod request;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0] EXPLICIT`: the version of a certificate.
const VERSION: u8 = 0xa0;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// 1.3.6.1.4.1.57683.2
const UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];
/// UTF8String, PrintableString, IA5String: the text types whose bytes are UTF-8.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// Whom a subject names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The last of its common names; empty where it has none.
    pub common_name: String,
    pub organizations: Vec<String>,
    /// The uids that it tells; more than one, or an empty one, is a mistake.
    pub uids: Vec<String>,
}

/// The subject of a certificate in DER.
pub(crate) fn of_certificate(certificate: &[u8]) -> Option<Subject> {
    let (_, certificate) = expect(certificate, SEQUENCE)?;
    let (_, mut rest) = expect(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    subject(rest)
}

/// The subject of a request for a certificate, in DER.
pub(crate) fn of_request(request: &[u8]) -> Option<Subject> {
    let (_, request) = expect(request, SEQUENCE)?;
    let (_, rest) = expect(request, SEQUENCE)?;
    // The version.
    subject(element(rest)?.2)
}

fn subject(name: &[u8]) -> Option<Subject> {
    let (_, mut subject) = expect(name, SEQUENCE)?;
    let mut found = Subject::default();
    while !subject.is_empty() {
        let (after, mut attributes) = expect(subject, SET)?;
        while !attributes.is_empty() {
            let (next, attribute) = expect(attributes, SEQUENCE)?;
            let (value, identifier) = expect(attribute, OBJECT_IDENTIFIER)?;
            let (tag, text, _) = element(value)?;
            let text = std::str::from_utf8(text).ok().filter(|_| TEXTS.contains(&tag));
            match (identifier, text) {
                (COMMON_NAME, Some(text)) => found.common_name = text.to_owned(),
                (ORGANIZATION, Some(text)) => found.organizations.push(text.to_owned()),
                (UID, Some(text)) => found.uids.push(text.to_owned()),
                // What is no text is no uid.
                (UID, None) => found.uids.push(String::new()),
                _ => {}
            }
            attributes = next;
        }
        subject = after;
    }
    Some(found)
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
        let named = of_certificate(&der).unwrap();
        assert_eq!(
            (named.common_name.as_str(), named.organizations),
            ("mia ☸", vec!["system:masters".to_owned()])
        );
    }

    #[test]
    fn a_request_names_whom_it_is_for() {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "team");
        params.distinguished_name.push(DnType::CommonName, "amy");
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        let named = of_request(request.der()).unwrap();
        assert_eq!((named.common_name.as_str(), named.organizations), ("amy", vec!["team".to_owned()]));
    }

    #[test]
    fn cut_or_changed_anywhere_it_is_read_without_a_panic() {
        let der = certificate(&[(DnType::CommonName, "mia")]);
        for end in 0..der.len() {
            assert_eq!(of_certificate(&der[..end]), None, "cut at {end}");
        }
        for at in 0..der.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[at] = byte;
                let _ = (of_certificate(&changed), of_request(&changed));
            }
        }
    }

    #[test]
    fn a_subject_may_tell_its_uid() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let told = of_certificate(&certificate(&[(DnType::CommonName, "bob"), (uid(), "u-1")])).unwrap();
        assert_eq!((told.common_name.as_str(), told.uids.as_slice()), ("bob", &["u-1".to_owned()][..]));
        let silent = of_certificate(&certificate(&[(DnType::CommonName, "bob")])).unwrap();
        assert!(silent.uids.is_empty());
    }
}
