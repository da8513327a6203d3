//! Questions about permissions, asked as objects: they are answered, and not kept.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_core::select::{FieldSelector, LabelSelector};

use super::Authorization;
use super::attributes::Attributes;
use super::rule::Rule;
use crate::api::create::place;
use crate::api::object::meta_str;
use crate::api::options::WriteOptions;
use crate::api::response::Response;
use crate::api::server::{Call, Server};
use crate::api::user::User;
use crate::codec::scalar::time::{self, Precision};
use crate::field::{Errors, Path};
use crate::go::aggregate;
use crate::json::str_at;
use crate::kinds::tree::go_struct;
use crate::status::{Result, Status};

impl Server {
    /// A SubjectAccessReview, for whoever is asked about, in one namespace, or for the user who asks.
    pub(in crate::api) fn review_access(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let mut review = self.reviewed(call)?;
        let kind = call.target.resource.kind.to_string();
        let (is_own, is_local) = (kind == "SelfSubjectAccessReview", kind == "LocalSubjectAccessReview");
        let mut errors = Errors::default();
        validate(&review, is_own, is_local, &mut errors);
        if !errors.is_empty() {
            // Upstream the kind is not known at this place.
            return Err(Status::invalid(&call.target.resource.group, "", "", errors));
        }
        let spec = &review["spec"];
        let user = if is_own { call.request.user.clone() } else { Arc::new(subject(spec)) };
        let decision = self.decide(&user, &attributes(spec));
        let mut status = Map::new();
        status.insert("allowed".into(), decision.is_allowed().into());
        for (field, text) in [("reason", decision.reason()), ("evaluationError", selector_faults(spec))] {
            if !text.is_empty() {
                status.insert(field.into(), text.into());
            }
        }
        review["status"] = status.into();
        Ok(Response::tree(201, &call.output, &review))
    }

    /// A SelfSubjectRulesReview: all that the user may in a namespace.
    pub(in crate::api) fn review_rules(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let review = self.reviewed(call)?;
        let namespace = str_at(&review, &["spec", "namespace"]);
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let everything = [Rule::everything_with_resources(), Rule::everything_at_paths()];
        let (rules, missing) = match self.config.authorization {
            Authorization::AlwaysAllow => (everything.iter().collect(), Vec::new()),
            Authorization::Rbac => self.policy.policy.rules_of(&call.request.user, namespace),
        };
        let with_resources = rules.iter().filter(|rule| !rule.resources.is_empty()).map(|rule| {
            let mut told =
                json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                told["resourceNames"] = json!(rule.resource_names);
            }
            told
        });
        let at_paths = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
        let at_paths =
            at_paths.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        let mut answer = json!({
            "kind": review["kind"], "apiVersion": review["apiVersion"], "metadata": {}, "spec": {},
            "status": {
                "resourceRules": with_resources.collect::<Vec<_>>(),
                "nonResourceRules": at_paths.collect::<Vec<_>>(),
                "incomplete": false,
            },
        });
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            answer["status"]["evaluationError"] = json!(aggregate(&missing));
        }
        Ok(Response::tree(201, &call.output, &answer))
    }

    /// A SelfSubjectReview: who asks.
    pub(in crate::api) fn review_self(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let review = self.reviewed(call)?;
        let answer = json!({
            "kind": review["kind"], "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": time::format(call.now, Precision::Seconds)},
            "status": {"userInfo": call.request.user.told()},
        });
        Ok(Response::tree(201, &call.output, &answer))
    }

    /// What was sent.
    fn reviewed(&self, call: &mut Call<'_>) -> Result<Value> {
        let resource = call.target.resource.clone();
        let options = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let mut review = crate::api::decode::body(call, &resource, options.validation)?;
        place(&mut review, &resource, &call.target.namespace)?;
        self.own(call, &resource, &options, None, &mut review);
        Ok(review)
    }
}

impl User {
    /// As reviews and webhooks tell it.
    pub(in crate::api) fn told(&self) -> Value {
        let mut told = Map::new();
        told.insert("username".into(), json!(self.name));
        if !self.uid.is_empty() {
            told.insert("uid".into(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            told.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            told.insert("extra".into(), json!(self.extra));
        }
        told.into()
    }
}

/// Who is asked about.
fn subject(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: str_at(spec, &["user"]).to_owned(),
        uid: str_at(spec, &["uid"]).to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

/// What is asked.
fn attributes(spec: &Value) -> Attributes<'_> {
    let of = |place: &'static str, field: &str| spec[place][field].as_str().unwrap_or_default();
    if !is_given(&spec["resourceAttributes"]) {
        let of = |field: &str| of("nonResourceAttributes", field);
        return Attributes::path(of("verb"), of("path"));
    }
    let of = |field: &str| of("resourceAttributes", field);
    Attributes::resource(of("verb"), of("group"), of("resource"))
        .below(of("subresource"))
        .named(of("name"))
        .within(of("namespace"))
}

fn is_given(value: &Value) -> bool {
    !value.is_null()
}

fn validate(review: &Value, is_own: bool, is_local: bool, errors: &mut Errors) {
    let (spec, at) = (&review["spec"], Path::Root.child("spec"));
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let path_told = || go_struct(path, &[("Path", "path"), ("Verb", "verb")]);
    match (is_given(resource), is_given(path)) {
        (true, true) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.invalid(&at.child("nonResourceAttributes"), &path_told(), detail);
        }
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid(&at.child("resourceAttributes"), &Value::Null, detail);
        }
        _ => {}
    }
    let has_groups = spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
    if !is_own && str_at(spec, &["user"]).is_empty() && !has_groups {
        errors.invalid(&at.child("user"), &json!(""), "at least one of user or group must be specified");
    }
    let of_resource = at.child("resourceAttributes");
    for field in ["fieldSelector", "labelSelector"] {
        validate_selector(&resource[field], &of_resource.child(field), errors);
    }
    let meta = review["metadata"].as_object();
    let is_expected = |field: &str| field == "managedFields" || is_local && field == "namespace";
    if meta.is_some_and(|meta| meta.iter().any(|(field, value)| !is_expected(field) && is_given(value))) {
        let detail = if is_local { "must be empty except for namespace" } else { "must be empty" };
        errors.invalid(&Path::Root.child("metadata"), &review["metadata"], detail);
    }
    if !is_local {
        return;
    }
    let namespace = str_at(resource, &["namespace"]);
    if is_given(resource) && namespace != meta_str(review, "namespace") {
        errors.invalid(&of_resource.child("namespace"), &json!(namespace), "must match metadata.namespace");
    }
    if is_given(path) {
        let detail = "disallowed on this kind of request";
        errors.invalid(&at.child("nonResourceAttributes"), &path_told(), detail);
    }
}

fn validate_selector(selector: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !is_given(selector) {
        return;
    }
    let raw = str_at(selector, &["rawSelector"]);
    let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => {
            let detail = "may not specified at the same time as requirements";
            errors.invalid(&at.child("rawSelector"), &json!(raw), detail);
        }
        (true, true) => {
            let detail = format!("when {at} is specified, requirements or rawSelector is required");
            errors.required(&at.child("requirements"), &detail);
        }
        _ => {}
    }
    let at = at.child("requirements");
    for (index, requirement) in requirements.iter().enumerate() {
        let at = at.index(index);
        let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
        match str_at(requirement, &["operator"]) {
            "In" | "NotIn" if !has_values => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&at.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if has_values => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&at.child("values"), detail);
            }
            _ => {}
        }
        if str_at(requirement, &["key"]).is_empty() {
            errors.required(&at.child("key"), "must be specified");
        }
    }
}

/// What of the selectors could not be read. No rule looks at them.
fn selector_faults(spec: &Value) -> String {
    let raw = |field: &str| str_at(spec, &["resourceAttributes", field, "rawSelector"]);
    let mut faults = Vec::new();
    let unread = [
        ("fieldSelector", FieldSelector::parse(raw("fieldSelector")).is_err()),
        ("labelSelector", LabelSelector::parse(raw("labelSelector")).is_err()),
    ];
    for (field, is_unread) in unread {
        if is_unread {
            faults.push(format!("spec.resourceAttributes.{field} ignored due to parse error"));
        }
    }
    faults.join("; ")
}
