//! Groups of the Kubernetes project ask for a sign of approval: an annotation, and the condition that tells of it.

use serde_json::Value;

use super::cel;
use crate::field::{Errors, Path};
use crate::go;
use crate::json::str_at;

const ANNOTATION: &str = "api-approved.kubernetes.io";

#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

impl Approval {
    /// What the annotation of this definition says.
    fn of(crd: &Value) -> Self {
        match annotation(crd) {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if is_address(text) => Self::Approved,
            _ => Self::Invalid,
        }
    }

    /// What is said of it.
    fn message(&self, annotation: &str) -> String {
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        let must = format!("protected groups must have approval annotation {ANNOTATION:?}");
        match self {
            Self::Missing => format!("{must}, {see}"),
            Self::Bypassed => format!("not approved: {}", go::quote(annotation)),
            Self::Approved => format!("approved in {annotation}"),
            Self::Invalid => {
                format!("{must} with either a URL or a reason starting with \"unapproved\", {see}")
            }
        }
    }
}

fn annotation(crd: &Value) -> &str {
    str_at(crd, &["metadata", "annotations", ANNOTATION])
}

/// Whether it is a URL that has a scheme and a host.
fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    !scheme.contains(['/', '?']) && !host.is_empty() && cel::is_request_uri(text)
}

fn is_protected(crd: &Value) -> bool {
    let group = str_at(crd, &["spec", "group"]);
    ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")))
}

/// Refuses a definition in such a group that says nothing of its approval. What an `old` one said may stay.
pub(super) fn validate(crd: &Value, old: Option<&Value>, errors: &mut Errors) {
    let approval = Approval::of(crd);
    if !is_protected(crd) || old.is_some_and(|old| Approval::of(old) == approval) {
        return;
    }
    let path = Path::Root.child("metadata");
    let path = path.child("annotations");
    let path = path.key(ANNOTATION);
    let value = annotation(crd);
    match approval {
        Approval::Missing => errors.required(&path, &approval.message(value)),
        Approval::Invalid => errors.invalid(&path, &value.into(), &approval.message(value)),
        Approval::Bypassed | Approval::Approved => {}
    }
}

/// Status, reason and message of the condition `KubernetesAPIApprovalPolicyConformant`, in such a group.
pub(super) fn condition(crd: &Value) -> Option<(bool, &'static str, String)> {
    let approval = is_protected(crd).then(|| Approval::of(crd))?;
    let message = approval.message(annotation(crd));
    Some(match approval {
        Approval::Missing => (false, "MissingAnnotation", message),
        Approval::Bypassed => (false, "UnapprovedAnnotation", message),
        Approval::Approved => (true, "ApprovedAnnotation", message),
        Approval::Invalid => (false, "InvalidAnnotation", message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_an_address_with_a_host() {
        for text in ["https://x", "https://x/y?z", "ftp://me@x:1/", "a+b://h"] {
            assert!(is_address(text), "{text}");
        }
        for text in
            ["", "x", "https://", "https:///x", "https://me@/x", "://x", "https://x:y", "/a://b", "x:/y"]
        {
            assert!(!is_address(text), "{text}");
        }
    }
}
