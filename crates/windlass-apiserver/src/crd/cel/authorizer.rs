//! `authorizer`: what an expression can find out of who may do what.
//!
//! The values are questions that are put together step by step, and hold no more than what is asked:
//! `authorizer.group('').resource('pods').namespace('a').check('get')`. Whoever evaluates the expression decides.

use std::fmt;

use super::value::{Fault, Result, Val};
use crate::kinds::names;

/// Decides what may be done.
pub(crate) trait Authorizer {
    /// Whether it may be done, and why.
    fn decide(&self, who: &Who, asked: &Asked, verb: &str) -> (bool, String);
}

/// Who wants to do something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Who {
    /// The user of the request.
    Requester,
    /// A service account.
    Account {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What is to be done something with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    /// A path that is no resource.
    Path(String),
    /// A resource.
    Resource(Box<Part>),
}

/// A resource, or a part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// The subresource, if any.
    pub subresource: String,
    /// The namespace, if any.
    pub namespace: String,
    /// The name, if any.
    pub name: String,
}

/// How far a question has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check {
    Authorizer(Who),
    Group(Who, String),
    Asked(Who, Asked),
    Decision { allowed: bool, reason: String },
}

impl Check {
    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Check::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Check::Group(..) => "kubernetes.authorization.GroupCheck",
            Check::Asked(_, Asked::Path(_)) => "kubernetes.authorization.PathCheck",
            Check::Asked(_, Asked::Resource(_)) => "kubernetes.authorization.ResourceCheck",
            Check::Decision { .. } => "kubernetes.authorization.Decision",
        }
    }

    /// Goes on with a question, or looks at what came of it.
    pub(super) fn call<'a>(
        &self,
        authorizer: Option<&dyn Authorizer>,
        name: &str,
        args: &[Val<'a>],
    ) -> Result<Val<'a>> {
        let args: Vec<&str> = args
            .iter()
            .map(|arg| match arg {
                Val::Text(text) => Ok(&**text),
                _ => Err(Fault::NoOverload),
            })
            .collect::<Result<_>>()?;
        let empty = |text: &str| text.trim().is_empty();
        Ok(match (self, name, args.as_slice()) {
            (Check::Authorizer(_), "path", [path]) if empty(path) => {
                return Err(Fault::other("path must not be empty"));
            }
            (Check::Authorizer(who), "path", [path]) => {
                Check::Asked(who.clone(), Asked::Path((*path).to_owned())).into()
            }
            (Check::Authorizer(who), "group", [group]) => {
                Check::Group(who.clone(), (*group).to_owned()).into()
            }
            (Check::Authorizer(_), "serviceAccount", [namespace, name]) => account(namespace, name)?,
            (Check::Group(..), "resource", [resource]) if empty(resource) => {
                return Err(Fault::other("resource must not be empty"));
            }
            (Check::Group(who, group), "resource", [resource]) => {
                let part = Part { group: group.clone(), resource: (*resource).to_owned(), ..Part::default() };
                Check::Asked(who.clone(), Asked::Resource(part.into())).into()
            }
            (Check::Asked(who, Asked::Resource(part)), _, [value])
                if matches!(name, "subresource" | "namespace" | "name") =>
            {
                let mut part = part.clone();
                let place = match name {
                    "subresource" => &mut part.subresource,
                    "namespace" => &mut part.namespace,
                    _ => &mut part.name,
                };
                *place = (*value).to_owned();
                Check::Asked(who.clone(), Asked::Resource(part)).into()
            }
            // Nobody who decides by roles looks at selectors.
            (Check::Asked(_, Asked::Resource(_)), "fieldSelector" | "labelSelector", [_]) => {
                self.clone().into()
            }
            (Check::Asked(who, asked), "check", [verb]) => {
                let authorizer = authorizer.ok_or(Fault::NoOverload)?;
                let (allowed, reason) = authorizer.decide(who, asked, verb);
                Check::Decision { allowed, reason }.into()
            }
            (Check::Decision { allowed, .. }, "allowed", []) => Val::Bool(*allowed),
            (Check::Decision { reason, .. }, "reason", []) => Val::text(reason),
            (Check::Decision { .. }, "errored", []) => Val::Bool(false),
            (Check::Decision { .. }, "error", []) => Val::text(""),
            _ => return Err(Fault::NoOverload),
        })
    }
}

fn account<'a>(namespace: &str, name: &str) -> Result<Val<'a>> {
    if !names::dns_subdomain(name).is_empty() {
        return Err(Fault::other("Invalid service account name"));
    }
    if !names::dns_label(namespace).is_empty() {
        return Err(Fault::other("Invalid service account namespace"));
    }
    let who = Who::Account { namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(Check::Authorizer(who).into())
}

impl From<Check> for Val<'_> {
    fn from(check: Check) -> Self {
        Val::Check(check.into())
    }
}

impl fmt::Debug for dyn Authorizer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("authorizer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Only(&'static str);

    impl Authorizer for Only {
        fn decide(&self, who: &Who, asked: &Asked, verb: &str) -> (bool, String) {
            let told = format!("{who:?} {asked:?} {verb}");
            (told.contains(self.0), told)
        }
    }

    #[test]
    fn a_question_holds_what_was_asked() {
        let authorizer = Only("Account { namespace: \"n\", name: \"sam\" }");
        let start = Check::Authorizer(Who::Requester);
        let step = |value: Val<'static>, name: &str, args: &[&str]| {
            let Val::Check(check) = value else { panic!("{value:?}") };
            let args: Vec<Val<'static>> = args.iter().map(Val::text).collect();
            check.call(Some(&authorizer), name, &args).unwrap()
        };
        let mut value = start.clone().into();
        for (name, args) in [
            ("serviceAccount", &["n", "sam"][..]),
            ("group", &["apps"]),
            ("resource", &["deployments"]),
            ("subresource", &["scale"]),
            ("namespace", &["n"]),
            ("name", &["x"]),
            ("check", &["update"]),
        ] {
            value = step(value, name, args);
        }
        assert!(matches!(step(value.clone(), "allowed", &[]), Val::Bool(true)));
        let Val::Text(reason) = step(value, "reason", &[]) else { panic!("a reason is text") };
        for part in ["apps", "deployments", "scale", "\"x\"", "update"] {
            assert!(reason.contains(part), "{part}: {}", &*reason);
        }
        assert_eq!(
            start.call(None, "path", &[Val::text(" ")]).unwrap_err(),
            Fault::other("path must not be empty")
        );
    }
}
