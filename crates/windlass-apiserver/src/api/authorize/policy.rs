//! Roles and bindings, kept so that a decision looks only at the bindings of its user.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::attributes::Attributes;
use super::rule::Rule;
use crate::api::user::User;
use crate::go::{aggregate, quote};
use crate::store::Object;

type Map<V> = BTreeMap<String, V>;

/// All roles and bindings of a server.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    cluster_roles: Map<Arc<[Rule]>>,
    /// By namespace and name, with a slash between them.
    roles: Map<Arc<[Rule]>>,
    cluster_bindings: Bindings,
    /// By namespace.
    bindings: Map<Bindings>,
}

/// The bindings of one namespace, or of the cluster.
#[derive(Clone, Debug, Default)]
struct Bindings {
    by_name: ByName,
    /// The bindings of each user.
    users: Map<ByName>,
    /// The bindings of each group.
    groups: Map<ByName>,
}

type ByName = BTreeMap<Arc<str>, Arc<Binding>>;

/// A role for some subjects.
#[derive(Debug)]
struct Binding {
    namespace: String,
    name: Arc<str>,
    role: Reference,
    subjects: Vec<Subject>,
}

/// A role by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Who is bound.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// What is read of a role.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleBody {
    rules: Option<Vec<Rule>>,
}

/// What is read of a binding.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BindingBody {
    role_ref: Reference,
    subjects: Option<Vec<Subject>>,
}

/// What is decided.
#[derive(Debug)]
pub enum Verdict<'a> {
    /// It is allowed by this.
    Allowed(Grant<'a>),
    /// Nothing allows it. Some roles could not be found.
    NoOpinion(Vec<String>),
}

/// What allows something.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    binding: &'a Binding,
    subject: &'a Subject,
}

/// The four kinds of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// ClusterRoles.
    ClusterRole,
    /// Roles.
    Role,
    /// ClusterRoleBindings.
    ClusterRoleBinding,
    /// RoleBindings.
    RoleBinding,
}

impl Policy {
    /// Takes a role or binding in, in place of one that has its name.
    pub fn put(&mut self, part: Part, object: &Object) {
        // What is stored has been read before.
        let rules = || {
            let body: RoleBody = serde_json::from_slice(object.body()).unwrap_or_default();
            Arc::from(body.rules.unwrap_or_default())
        };
        match part {
            Part::ClusterRole => {
                self.cluster_roles.insert(object.key().to_owned(), rules());
            }
            Part::Role => {
                self.roles.insert(object.key().to_owned(), rules());
            }
            Part::ClusterRoleBinding | Part::RoleBinding => {
                let body: BindingBody = serde_json::from_slice(object.body()).unwrap_or_default();
                let binding = Binding {
                    namespace: object.namespace().to_owned(),
                    name: object.name().into(),
                    role: body.role_ref,
                    subjects: body.subjects.unwrap_or_default(),
                };
                match part {
                    Part::RoleBinding => self.bindings.entry(binding.namespace.clone()).or_default(),
                    _ => &mut self.cluster_bindings,
                }
                .put(binding);
            }
        }
    }

    /// Forgets a role or binding.
    pub fn remove(&mut self, part: Part, object: &Object) {
        match part {
            Part::ClusterRole => drop(self.cluster_roles.remove(object.key())),
            Part::Role => drop(self.roles.remove(object.key())),
            Part::ClusterRoleBinding => self.cluster_bindings.remove(object.name()),
            Part::RoleBinding => {
                if let Some(bindings) = self.bindings.get_mut(object.namespace()) {
                    bindings.remove(object.name());
                    if bindings.by_name.is_empty() {
                        self.bindings.remove(object.namespace());
                    }
                }
            }
        }
    }

    /// Whether a user may do something.
    pub fn decide<'a>(&'a self, user: &User, attributes: &Attributes<'_>) -> Verdict<'a> {
        let mut missing = Vec::new();
        for binding in self.bound(user, attributes.namespace()) {
            match self.rules(&binding.role, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    let subject = binding.subjects.iter().find(|subject| binding.is_for(subject, user));
                    let subject = subject.expect("the index is made of the subjects");
                    return Verdict::Allowed(Grant { binding, subject });
                }
                Ok(_) => {}
                Err(why) => missing.push(why.to_string()),
            }
        }
        Verdict::NoOpinion(missing)
    }

    /// All rules of a user in a namespace, and why some could not be found.
    pub fn rules_of<'a>(&'a self, user: &User, namespace: &str) -> (Vec<&'a Rule>, Vec<Missing<'a>>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for binding in self.bound(user, namespace) {
            match self.rules(&binding.role, &binding.namespace) {
                Ok(more) => rules.extend(more),
                Err(why) => missing.push(why),
            }
        }
        (rules, missing)
    }

    /// The rules of a role that a binding in this namespace (in none, for the cluster's) refers to.
    ///
    /// # Errors
    /// When there is no such role.
    pub fn rules<'a>(&'a self, role: &'a Reference, namespace: &str) -> Result<&'a [Rule], Missing<'a>> {
        let found = match role.kind.as_str() {
            "Role" => self.roles.get(&format!("{namespace}/{}", role.name)),
            "ClusterRole" => self.cluster_roles.get(&role.name),
            _ => None,
        };
        found.map(|rules| &**rules).ok_or(Missing(role))
    }

    /// The bindings of a user, the cluster's first, in the order of their names.
    fn bound<'a>(&'a self, user: &User, namespace: &str) -> Vec<&'a Binding> {
        let mut bound = Vec::new();
        self.cluster_bindings.of(user, &mut bound);
        if let Some(local) = self.bindings.get(namespace) {
            local.of(user, &mut bound);
        }
        bound
    }
}

impl Bindings {
    fn put(&mut self, binding: Binding) {
        self.remove(&binding.name);
        let binding = Arc::new(binding);
        let own = || (binding.name.clone(), binding.clone());
        for subject in &binding.subjects {
            match binding.key(subject) {
                Some(Key::User(user)) => self.users.entry(user).or_default().extend([own()]),
                Some(Key::Group(group)) => self.groups.entry(group).or_default().extend([own()]),
                None => {}
            }
        }
        self.by_name.extend([own()]);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.by_name.remove(name) else { return };
        for subject in &binding.subjects {
            let (map, key) = match binding.key(subject) {
                Some(Key::User(user)) => (&mut self.users, user),
                Some(Key::Group(group)) => (&mut self.groups, group),
                None => continue,
            };
            if let Some(names) = map.get_mut(&key) {
                names.remove(name);
                if names.is_empty() {
                    map.remove(&key);
                }
            }
        }
    }

    /// Adds those of a user, in the order of their names.
    fn of<'a>(&'a self, user: &User, all: &mut Vec<&'a Binding>) {
        let from = all.len();
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        for found in self.users.get(&user.name).into_iter().chain(groups) {
            all.extend(found.values().map(|binding| &**binding));
        }
        all[from..].sort_unstable_by_key(|binding| &*binding.name);
        all.dedup_by(|one, other| std::ptr::eq(*one, *other));
    }
}

/// What a subject is found by.
enum Key {
    User(String),
    Group(String),
}

impl Binding {
    fn key(&self, subject: &Subject) -> Option<Key> {
        match subject.kind.as_str() {
            "User" => Some(Key::User(subject.name.clone())),
            "Group" => Some(Key::Group(subject.name.clone())),
            "ServiceAccount" => {
                let namespace = self.namespace_of(subject);
                let name = &subject.name;
                (!namespace.is_empty())
                    .then(|| Key::User(format!("system:serviceaccount:{namespace}:{name}")))
            }
            _ => None,
        }
    }

    fn is_for(&self, subject: &Subject, user: &User) -> bool {
        match self.key(subject) {
            Some(Key::User(name)) => name == user.name,
            Some(Key::Group(name)) => user.groups.contains(&name),
            None => false,
        }
    }

    /// The namespace of a service account: that of the binding, unless the subject says another.
    fn namespace_of<'a>(&'a self, subject: &'a Subject) -> &'a str {
        if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace }
    }
}

/// A role that is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing<'a>(pub &'a Reference);

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing(Reference { kind, name }) = self;
        match kind.as_str() {
            "Role" | "ClusterRole" => {
                let kind = kind.to_ascii_lowercase();
                write!(f, "{kind}.rbac.authorization.k8s.io {} not found", quote(name))
            }
            kind => write!(f, "unsupported role reference kind: {}", quote(kind)),
        }
    }
}

impl Verdict<'_> {
    /// Whether it is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Verdict::Allowed(_))
    }

    /// Why, as a SubjectAccessReview tells it.
    pub fn reason(&self) -> String {
        match self {
            Verdict::Allowed(grant) => format!("RBAC: allowed by {grant}"),
            Verdict::NoOpinion(missing) if missing.is_empty() => String::new(),
            Verdict::NoOpinion(missing) => format!("RBAC: {}", aggregate(missing)),
        }
    }
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { binding, subject } = self;
        let (kind, name) = match binding.namespace.as_str() {
            "" => ("ClusterRoleBinding", binding.name.to_string()),
            namespace => ("RoleBinding", format!("{}/{namespace}", binding.name)),
        };
        let who = match subject.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", subject.name, binding.namespace_of(subject)),
            _ => subject.name.clone(),
        };
        let Reference { kind: role_kind, name: role } = &binding.role;
        let (name, role, who) = (quote(&name), quote(role), quote(&who));
        write!(f, "{kind} {name} of {role_kind} {role} to {} {who}", subject.kind)
    }
}
