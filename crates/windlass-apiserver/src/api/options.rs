//! Query parameters of a request.

use std::borrow::Cow;

use crate::status::{Result, Status};

/// The decoded query: names and values in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Decodes a query string.
    pub fn parse(query: &'a str) -> Query<'a> {
        let pairs = query.split('&').filter(|pair| is_sound(pair));
        Query(pairs.flat_map(|pair| form_urlencoded::parse(pair.as_bytes())).collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_ref()).collect()
    }

    /// A parameter's value, empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a boolean parameter is on. As in Kubernetes, anything but `0`, `false` and absence is true.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false"))
    }

    /// An integer parameter.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
                use std::num::IntErrorKind::{NegOverflow, PosOverflow};
                let large = matches!(error.kind(), PosOverflow | NegOverflow);
                let why = if large { "value out of range" } else { "invalid syntax" };
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }
}

/// Whether Go would keep the pair: not if it holds a semicolon or a percent sign without two digits behind it.
fn is_sound(pair: &str) -> bool {
    let digits = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    !pair.contains(';') && pair.split('%').skip(1).all(digits)
}

/// What to do about fields that are unknown or stand twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so in a `Warning` header.
    Warn,
    /// Refuse the request.
    Strict,
}

/// The options of create, update and patch.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Run everything but the storage.
    pub dry_run: bool,
    /// Who owns the fields that this write sets.
    pub manager: String,
    /// Unknown and duplicate fields.
    pub validation: FieldValidation,
    /// Server-side apply: take fields from their owners.
    pub force: Option<bool>,
}

impl WriteOptions {
    /// The options of a write that the server does itself.
    pub fn of_manager(manager: &str) -> WriteOptions {
        let validation = FieldValidation::Ignore;
        WriteOptions { dry_run: false, manager: manager.to_owned(), validation, force: None }
    }

    /// Reads and checks the options; `kind` is the options' kind in error messages.
    pub fn parse(query: &Query<'_>, user_agent: &str, kind: &str) -> Result<WriteOptions> {
        let mut errors = crate::field::Errors::default();
        let root = crate::field::Path::Root;
        let dry_run = dry_run(&query.all("dryRun"), &mut errors);
        let manager = query.text("fieldManager");
        let manager_path = root.child("fieldManager");
        if manager.len() > MANAGER_MAX {
            errors.too_long(&manager_path, MANAGER_MAX);
        }
        if let Some(bad) = manager.chars().find(|c| !is_print(*c)) {
            let detail = format!("should only contain printable characters, found {bad:?}");
            errors.invalid(&manager_path, &manager.into(), &detail);
        }
        let validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.not_supported(
                    &root.child("fieldValidation"),
                    &other.into(),
                    &["", "Ignore", "Strict", "Warn"],
                );
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", kind, "", errors));
        }
        let manager = if manager.is_empty() { default_manager(user_agent) } else { manager.to_owned() };
        let force = query.get("force").map(|_| query.flag("force"));
        Ok(WriteOptions { dry_run, manager, validation, force })
    }
}

const MANAGER_MAX: usize = 128;

fn is_print(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

/// `dryRun=All` is the only value there is.
pub fn dry_run(values: &[&str], errors: &mut crate::field::Errors) -> bool {
    let path = crate::field::Path::Root.child("dryRun");
    for value in values.iter().filter(|value| **value != "All") {
        errors.not_supported(&path, &(*value).into(), &["All"]);
    }
    !values.is_empty()
}

/// The part of the user agent before the first slash, as kube-apiserver names managers that do not name themselves.
fn default_manager(user_agent: &str) -> String {
    let name: String =
        user_agent.split('/').next().unwrap_or_default().chars().filter(|c| is_print(*c)).collect();
    match name.len() {
        0 => "unknown".to_owned(),
        n if n > MANAGER_MAX => name.chars().take(MANAGER_MAX).collect(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_flags_follow_kubernetes() {
        let query = Query::parse("labelSelector=a%3Db&watch=1&follow=false&limit=5");
        assert_eq!(query.text("labelSelector"), "a=b");
        assert!(query.flag("watch") && !query.flag("follow") && !query.flag("absent"));
        assert_eq!(query.int("limit").unwrap(), Some(5));
    }

    #[test]
    fn an_unnamed_manager_is_named_after_its_user_agent() {
        let options =
            WriteOptions::parse(&Query::parse(""), "kubectl/v1.36 (linux)", "CreateOptions").unwrap();
        assert_eq!(options.manager, "kubectl");
        assert_eq!(options.validation, FieldValidation::Warn);
    }

    #[test]
    fn bad_options_name_the_field() {
        let status = WriteOptions::parse(&Query::parse("dryRun=Some&fieldValidation=x"), "", "PatchOptions")
            .unwrap_err();
        let fields: Vec<_> = status.details.unwrap().causes.into_iter().map(|c| c.field).collect();
        assert_eq!(fields, ["dryRun", "fieldValidation"]);
    }
}
