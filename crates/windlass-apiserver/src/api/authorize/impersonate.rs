//! Speaking as somebody else: the headers `Impersonate-User`, `-Uid`, `-Group` and `-Extra-…`.
//!
//! There are ways of it, tried one after the other. In all but the last the verb of the request is part of what is allowed:
//! whoever may `impersonate-on:serviceaccount:list` pods and `impersonate:serviceaccount` an account may list pods as that
//! account, and nothing else. The last is the old one: whoever may `impersonate` somebody may do all that he may.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;

use super::attributes::{Attributes, Undetermined};
use super::{MASTERS, forbidden};
use crate::api::options::Query;
use crate::api::route::decoded;
use crate::api::server::{Request, Server};
use crate::api::user::User;
use crate::go::{quote, quoted};
use crate::kinds::names;
use crate::status::{Result, Status};

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From so many checks on, one of all of them is tried first.
const MANY: usize = 4;

/// A way to speak as somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A pod's account as the node that it runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

/// In which way each user spoke as somebody else the last time. It is tried first the next time: what a refusal tells is what
/// was missing there.
#[derive(Clone, Default)]
pub(in crate::api) struct Ways(Arc<BTreeMap<String, Mode>>);

/// How many users are remembered.
const WAYS_MAX: usize = 10_000;

impl Ways {
    fn keep(&mut self, user: &str, mode: Mode) {
        if self.0.get(user) == Some(&mode) {
            return;
        }
        let ways = Arc::make_mut(&mut self.0);
        if ways.len() >= WAYS_MAX {
            ways.clear();
        }
        ways.insert(user.to_owned(), mode);
    }
}

impl Server {
    /// Makes a request that of the user whom it speaks as, if it does and may.
    pub(in crate::api) fn impersonate(&mut self, request: &mut Request) -> Result<()> {
        // Nearly no request does.
        if !request.headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
            return Ok(());
        }
        let Some(wanted) = wanted(&mut request.headers)? else { return Ok(()) };
        let query = Query::parse(request.uri.query().unwrap_or_default());
        let path = decoded(request.uri.path());
        let attributes = match Attributes::of_request(&request.method, &path, &query) {
            Ok(attributes) => attributes,
            // It will not get far.
            Err(Undetermined) => return Ok(()),
        };
        let mut first = None;
        let last = self.ways.0.get(&request.user.name).copied();
        let others = MODES.into_iter().filter(|mode| Some(*mode) != last);
        for mode in last.into_iter().chain(others).filter(|mode| mode.fits(&wanted, &request.user)) {
            match self.try_mode(mode, &request.user, &wanted, &attributes) {
                Ok(user) => {
                    self.ways.keep(&request.user.name, mode);
                    request.user = Arc::new(user);
                    return Ok(());
                }
                Err(status) => first = first.or(Some(status)),
            }
        }
        Err(first.expect("the old way fits everybody"))
    }

    fn try_mode(&self, mode: Mode, by: &User, wanted: &User, attributes: &Attributes<'_>) -> Result<User> {
        if let Some(name) = mode.name() {
            let on = format!("impersonate-on:{name}:{}", attributes.verb);
            self.demand(by, &Attributes { verb: on.into(), asked: attributes.asked.clone() })?;
        }
        let mut user = wanted.clone();
        self.demand(by, &mode.of_name(wanted, &mut user))?;
        if !wanted.uid.is_empty() {
            self.demand(by, &Attributes::resource(mode.verb(), GROUP, "uids").named(&*wanted.uid))?;
        }
        self.check_groups(mode, by, &wanted.groups)?;
        self.check_extra(mode, by, &wanted.extra)?;
        let has = |user: &User, group: &str| user.groups.iter().any(|own| own == group);
        let (known, unknown) = ("system:authenticated", "system:unauthenticated");
        if user.name == "system:anonymous" {
            if !has(&user, unknown) {
                user.groups.push(unknown.to_owned());
            }
        } else if !has(&user, unknown) && !has(&user, known) {
            user.groups.push(known.to_owned());
        }
        Ok(user)
    }

    fn check_groups(&self, mode: Mode, by: &User, groups: &[String]) -> Result<()> {
        let asked = || Attributes::resource(mode.verb(), mode.group(), "groups");
        if mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(forbidden(by, &asked(), why));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(forbidden(by, &asked().named(MASTERS), why));
            }
            if groups.len() >= MANY && self.decide(by, &asked().named("*")).is_allowed() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.demand(by, &asked().named(&**group)))
    }

    fn check_extra(&self, mode: Mode, by: &User, extra: &BTreeMap<String, Vec<String>>) -> Result<()> {
        let asked = || Attributes::resource(mode.verb(), GROUP, "userextras");
        if mode != Mode::Legacy {
            if let Some(why) = extra.iter().find_map(|(key, values)| extra_fault(key, values)) {
                return Err(forbidden(by, &asked(), &why));
            }
            let is_many = extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_many && self.decide(by, &asked().below("*").named("*")).is_allowed() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            values.iter().try_for_each(|value| self.demand(by, &asked().below(&**key).named(&**value)))?;
        }
        Ok(())
    }
}

impl Mode {
    fn name(self) -> Option<&'static str> {
        match self {
            Mode::AssociatedNode => Some("associated-node"),
            Mode::ArbitraryNode => Some("arbitrary-node"),
            Mode::ServiceAccount => Some("serviceaccount"),
            Mode::UserInfo => Some("user-info"),
            Mode::Legacy => None,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "impersonate:associated-node",
            Mode::ArbitraryNode => "impersonate:arbitrary-node",
            Mode::ServiceAccount => "impersonate:serviceaccount",
            Mode::UserInfo => "impersonate:user-info",
            Mode::Legacy => "impersonate",
        }
    }

    /// The API group of users and groups, which are no objects.
    fn group(self) -> &'static str {
        if self == Mode::Legacy { "" } else { GROUP }
    }

    /// Whether somebody can be spoken as in this way.
    fn fits(self, wanted: &User, by: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = account_name(&wanted.name);
        match self {
            Mode::AssociatedNode => {
                let runs_on = by.extra.get(NODE_NAME).filter(|_| account_name(&by.name).is_some());
                let runs_on = runs_on.and_then(|values| (values.len() == 1).then(|| values[0].as_str()));
                only_name && node.is_some() && runs_on == node
            }
            Mode::ArbitraryNode => only_name && node.is_some(),
            Mode::ServiceAccount => only_name && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }

    /// What has to be allowed for a name. Accounts and nodes have the groups that they have.
    fn of_name<'a>(self, wanted: &'a User, user: &mut User) -> Attributes<'a> {
        let asked = |resource| Attributes::resource(self.verb(), self.group(), resource);
        if let Some((namespace, name)) = account_name(&wanted.name) {
            if wanted.groups.is_empty() {
                let all = "system:serviceaccounts";
                user.groups = vec![all.to_owned(), format!("{all}:{namespace}")];
            }
            return asked("serviceaccounts").named(name).within(namespace);
        }
        match node_name(&wanted.name).filter(|_| self != Mode::Legacy) {
            Some(name) => {
                user.groups = vec!["system:nodes".to_owned()];
                let any = self == Mode::AssociatedNode;
                asked("nodes").named(if any { "*" } else { name })
            }
            None => asked("users").named(&*wanted.name),
        }
    }
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| names::dns_subdomain(name).is_empty())
}

/// Namespace and name of a service account.
fn account_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty())
        .then_some((namespace, name))
}

fn extra_fault(key: &str, values: &[String]) -> Option<String> {
    const INVALID: &str = "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: ";
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let Some((host, path)) = key.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        let form = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return Some(format!("{INVALID}{}: {form}", quote(key)));
    };
    if let Some(fault) = names::dns_subdomain(host).first() {
        return Some(format!("{INVALID}{}: {fault}", quote(host)));
    }
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !path.chars().all(is_path) {
        let form = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        return Some(format!("{INVALID}{}: {form}", quote(path)));
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Whom a request wants to speak as. The headers are taken out: nobody behind this is to know.
fn wanted(headers: &mut HeaderMap) -> Result<Option<User>> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut user = User { name: first("impersonate-user"), uid: first("impersonate-uid"), ..User::default() };
    user.groups = headers.get_all("impersonate-group").iter().map(text).collect();
    let mut has_extra = false;
    for (name, value) in &*headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            has_extra = true;
            user.extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    if user.name.is_empty() {
        if user.uid.is_empty() && user.groups.is_empty() && !has_extra {
            return Ok(None);
        }
        let message = format!("requested {} without impersonating a user name", go_syntax(&user));
        return Err(Status::bad_request(message));
    }
    let is_taken = |name: &str| {
        matches!(name, "impersonate-user" | "impersonate-uid" | "impersonate-group")
            || name.starts_with(EXTRA)
    };
    let taken: Vec<_> = headers.keys().filter(|name| is_taken(name.as_str())).cloned().collect();
    taken.into_iter().for_each(|name| drop(headers.remove(name)));
    Ok(Some(user))
}

/// A key without its escapes; as it is, where they are wrong.
fn unescaped(key: &str) -> String {
    let digits = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    match key.split('%').skip(1).all(digits) {
        true => percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned(),
        false => key.to_owned(),
    }
}

/// The user as Go prints it with `%#v`.
fn go_syntax(user: &User) -> String {
    let list = |texts: &[String]| {
        let all = quoted(texts).replace("\" \"", "\", \"");
        format!("[]string{{{}}}", &all[1..all.len() - 1])
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let all: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
            format!("map[string][]string{{{}}}", all.join(", "))
        }
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}
