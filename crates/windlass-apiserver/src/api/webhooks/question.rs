//! What a hook is asked, and what it says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::hook::Service;
use crate::codec::{self, Format, ParseError};
use crate::json::str_at;
use crate::status::{Cause, Details, Status};

/// A question to a webhook. Whoever asks it sends [`Question::body`] to its place within its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Who is asked: the names of a configuration and of a hook in it.
    pub hook: String,
    /// Where.
    pub place: Place,
    /// The certificates that the hook is known by, in PEM.
    pub authority: String,
    /// How long it has to answer.
    pub timeout_seconds: u64,
    /// What about.
    pub review: Review,
    pub(in crate::api) version: &'static str,
    pub(in crate::api) request: Value,
}

/// What a webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// Whether something may be written.
    Admission,
    /// What objects are in another version.
    Conversion,
}

impl Review {
    fn kind(self) -> &'static str {
        match self {
            Review::Admission => "AdmissionReview",
            Review::Conversion => "ConversionReview",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Review::Admission => "admission.k8s.io",
            Review::Conversion => "apiextensions.k8s.io",
        }
    }
}

/// Where a hook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a URL.
    Url(String),
    /// Behind a Service: the address of one of its pods, or why there is none.
    Service(Service, Result<(String, u16), String>),
}

/// What came of a question.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The body of an answer, or why there is none.
    pub body: Result<Bytes, Failure>,
    /// How long it took.
    pub took: SignedDuration,
}

/// Why there is no answer, or none that can be read.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// The code of the answer, if it was the wrong one; else that of a service that is not there.
    pub code: u16,
}

impl Failure {
    /// A service that is not there.
    pub fn new(why: impl Into<String>) -> Failure {
        Failure { why: why.into(), code: 503 }
    }

    /// The same, within something else that failed.
    pub(super) fn within(&self, what: &str) -> Failure {
        Failure { why: format!("{what}: {}", self.why), code: self.code }
    }
}

/// A hook that was asked, for those who count.
#[derive(Clone, Debug)]
pub struct Consulted {
    /// Its name.
    pub name: String,
    /// `admit`, where it may change something, or `validating`.
    pub step: &'static str,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'static str,
    /// 200, or the code of the refusal or of the failure.
    pub code: u16,
    /// Why the request was refused, if it was: by the hook, because it failed, or because we did.
    pub rejection: Option<&'static str>,
    /// Whether it failed, and the request went on.
    pub failed_open: bool,
    /// How long it took.
    pub took: SignedDuration,
}

/// A question that was answered.
pub(in crate::api) struct Answered {
    pub question: Question,
    pub reply: Reply,
}

impl Question {
    /// The review to send.
    pub fn body(&self) -> Bytes {
        let review = json!({
            "kind": self.review.kind(), "apiVersion": self.api_version(), "request": self.request
        });
        review.to_string().into()
    }

    fn api_version(&self) -> String {
        format!("{}/{}", self.review.group(), self.version)
    }

    /// The review in an answer.
    pub(in crate::api) fn review_of(&self, body: &[u8]) -> Result<Value, String> {
        let review: Value = match serde_json::from_slice(body) {
            Ok(review @ Value::Object(_)) => review,
            // Upstream reads it as YAML, in which any text is a string.
            _ => return Err(NO_OBJECT.to_owned()),
        };
        let other = if self.version == "v1" { "v1beta1" } else { "v1" };
        let kind = self.review.kind();
        if str_at(&review, &["kind"]) == kind
            && str_at(&review, &["apiVersion"]) == format!("{}/{other}", self.review.group())
        {
            let (from, to) = (other, self.version);
            return Err(format!("converting ({from}.{kind}) to ({to}.{kind}): unknown conversion"));
        }
        Ok(review)
    }

    /// The answer to exactly this question. Another pod of the same Service may have given it.
    pub(super) fn answer<'a>(&self, answered: &'a [Answered]) -> Option<&'a Answered> {
        let same = |one: &&Answered| one.question.hook == self.hook && one.question.request == self.request;
        answered.iter().rev().find(same)
    }
}

/// What a hook says.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub allowed: bool,
    pub warnings: Vec<String>,
    /// A JSON patch.
    pub patch: Option<Value>,
    status: Value,
}

/// What is said of an answer that is no object.
const NO_OBJECT: &str = "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type \
                         struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                         \"json:\\\"kind,omitempty\\\"\" }";

/// Where a text stops being base64.
fn offset(error: &base64::DecodeError) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(length) => *length,
        base64::DecodeError::InvalidPadding => 0,
    }
}

impl Verdict {
    /// Reads an answer; the error is what is wrong with it.
    pub fn read(body: &[u8], question: &Question, mutates: bool) -> Result<Verdict, Failure> {
        let failed = |why: String| Failure::new(why).within("failed to call webhook");
        let review = question.review_of(body).map_err(failed)?;
        let (kind, version) = (str_at(&review, &["kind"]), str_at(&review, &["apiVersion"]));
        let invalid = |why: String| Failure::new(why).within("received invalid webhook response");
        let Some(response) = review.get("response").filter(|response| response.is_object()) else {
            return Err(invalid("webhook response was absent".to_owned()));
        };
        let text = |key: &str| str_at(response, &[key]);
        // The first version said nothing of itself.
        if question.version == "v1" {
            let (want, have) = (str_at(&question.request, &["uid"]), text("uid"));
            if want != have {
                return Err(invalid(format!("expected response.uid={want:?}, got {have:?}")));
            }
            if (kind, version) != ("AdmissionReview", &question.api_version()) {
                let want = question.api_version();
                let got = if version.is_empty() { "/" } else { version };
                let why = format!(
                    "expected webhook response of {want}, Kind=AdmissionReview, got {got}, Kind={kind}"
                );
                return Err(invalid(why));
            }
        }
        let (patch, patch_type) = (text("patch"), text("patchType"));
        let bytes = STANDARD
            .decode(patch)
            .map_err(|error| failed(format!("illegal base64 data at input byte {}", offset(&error))))?;
        let fault = match (mutates, bytes.is_empty(), patch_type.is_empty()) {
            (false, false, _) => Some("validating webhook may not return response.patch"),
            (false, true, false) => Some("validating webhook may not return response.patchType"),
            (true, true, false) => Some("webhook returned response.patchType but not response.patch"),
            (true, false, true) if question.version == "v1" => {
                Some("webhook returned response.patch but not response.patchType")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(invalid(fault.to_owned()));
        }
        let patch = match bytes.is_empty() {
            true => Value::Null,
            false => {
                let undecodable = |error: ParseError| {
                    // A patch has no version and no kind to speak of.
                    let why = match error {
                        ParseError::Json(why) => why,
                        other => other.to_string(),
                    };
                    Failure::new(why).within("received undecodable patch in webhook response")
                };
                codec::parse(&bytes, Format::Json).map_err(undecodable)?.value
            }
        };
        // Nothing is changed by nothing, whatever its type.
        let patch = Some(patch).filter(|patch| patch.as_array().is_none_or(|steps| !steps.is_empty()));
        let patch = patch.filter(|patch| !patch.is_null());
        if patch.is_some() && !matches!(patch_type, "" | "JSONPatch") {
            return Err(Failure { why: format!("unsupported patch type {patch_type:?}"), code: 400 });
        }
        let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
        Ok(Verdict {
            allowed: response["allowed"] == true,
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            patch,
            status: response.get("status").cloned().unwrap_or_default(),
        })
    }

    /// The refusal of a hook, as a client reads it.
    pub fn refusal(&self, hook: &str) -> Status {
        let text = |key: &str| str_at(&self.status, &[key]);
        let denied = format!("admission webhook {hook:?} denied the request");
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("{denied} without explanation"),
            ("", why) | (why, _) => format!("{denied}: {why}"),
        };
        let code = self.status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
        let mut status = Status::new(code.max(400), text("reason").to_owned(), message);
        status.details = self.status.get("details").filter(|details| details.is_object()).map(|details| {
            let text = |key: &str| str_at(details, &[key]).to_owned();
            let causes =
                details.get("causes").and_then(Value::as_array).into_iter().flatten().map(|cause| Cause {
                    reason: str_at(cause, &["reason"]).to_owned(),
                    message: str_at(cause, &["message"]).to_owned(),
                    field: str_at(cause, &["field"]).to_owned(),
                });
            let seconds =
                details["retryAfterSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
            Box::new(Details {
                name: text("name"),
                group: text("group"),
                kind: text("kind"),
                uid: text("uid"),
                causes: causes.collect(),
                retry_after_seconds: seconds.unwrap_or(0),
            })
        });
        status
    }
}
