//! Whom a request for a certificate is about, and what a node may ask for, in the words of kube-controller-manager.

use std::collections::BTreeSet;

use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509CertificationRequest, X509Name};

/// What a request says of whoever wants the certificate.
#[derive(Default)]
struct Subject {
    /// The last of its common names.
    common_name: String,
    organizations: Vec<String>,
    /// How many names it has besides, of each sort.
    dns: usize,
    ips: usize,
    emails: usize,
    uris: usize,
}

/// Of whom nothing is known, nothing is signed.
const UNREADABLE: &str = "the request cannot be read";

/// What is wrong with a request of a node for a certificate by which it is known to the API server.
pub(super) fn client_fault(request: &str, usages: &[String]) -> Option<String> {
    let Some(subject) = read(request) else { return Some(UNREADABLE.to_owned()) };
    let fault = match () {
        () if !subject.is_of_nodes() => "subject organization is not system:nodes",
        () if subject.dns > 0 => "DNS subjectAltNames are not allowed",
        () if subject.emails > 0 => "Email subjectAltNames are not allowed",
        () if subject.ips > 0 => "IP subjectAltNames are not allowed",
        () if subject.uris > 0 => "URI subjectAltNames are not allowed",
        () if !subject.is_a_node() => "subject common name does not begin with system:node:",
        () => return usages_fault(usages, "client auth"),
    };
    Some(fault.to_owned())
}

/// What is wrong with a request of a node for the certificate that it serves with.
pub(super) fn serving_fault(request: &str, usages: &[String]) -> Option<String> {
    let Some(subject) = read(request) else { return Some(UNREADABLE.to_owned()) };
    let fault = match () {
        () if !subject.is_of_nodes() => "subject organization is not system:nodes",
        () if subject.dns + subject.ips == 0 => "DNS or IP subjectAltName is required",
        () if subject.emails > 0 => "Email subjectAltNames are not allowed",
        () if subject.uris > 0 => "URI subjectAltNames are not allowed",
        () => {
            let name = "subject common name does not begin with system:node:";
            return usages_fault(usages, "server auth").or((!subject.is_a_node()).then(|| name.to_owned()));
        }
    };
    Some(fault.to_owned())
}

/// The key of a certificate may be one that only signs.
fn usages_fault(usages: &[String], purpose: &str) -> Option<String> {
    let usages: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let all = BTreeSet::from([purpose, "digital signature", "key encipherment"]);
    let matches = usages == all || usages == BTreeSet::from([purpose, "digital signature"]);
    let wanted = || all.iter().copied().collect::<Vec<_>>().join(" ");
    (!matches).then(|| format!("usages did not match [{}]", wanted()))
}

impl Subject {
    fn is_of_nodes(&self) -> bool {
        self.organizations == ["system:nodes"]
    }

    fn is_a_node(&self) -> bool {
        self.common_name.starts_with("system:node:")
    }
}

fn read(request: &str) -> Option<Subject> {
    let (_, pem) = parse_x509_pem(request.as_bytes()).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let name: &X509Name<'_> = &request.certification_request_info.subject;
    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().unwrap_or("").to_owned();
    let mut subject = Subject {
        common_name: name.iter_common_name().last().map(text).unwrap_or_default(),
        organizations: name.iter_organization().map(text).collect(),
        ..Subject::default()
    };
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(_) => subject.dns += 1,
                GeneralName::IPAddress(_) => subject.ips += 1,
                GeneralName::RFC822Name(_) => subject.emails += 1,
                GeneralName::URI(_) => subject.uris += 1,
                _ => {}
            }
        }
    }
    Some(subject)
}
