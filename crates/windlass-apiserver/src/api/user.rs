//! Who asks.

use std::collections::BTreeMap;

/// Somebody who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// What tells apart those who have the name one after the other; empty where nobody knows.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known of it.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of all users who are known.
const KNOWN: &str = "system:authenticated";

impl User {
    /// The administrator: what in-process clients are.
    pub fn admin() -> User {
        User::new("admin", ["system:masters"])
    }

    /// A user of this name who is in these groups, and in that of all users who are known.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> User {
        let mut groups: Vec<String> = groups.into_iter().map(str::to_owned).collect();
        if !groups.iter().any(|group| group == KNOWN) {
            groups.push(KNOWN.to_owned());
        }
        User { name: name.to_owned(), groups, ..User::default() }
    }

    /// Whoever does not say who he is.
    pub fn anonymous() -> User {
        let groups = vec!["system:unauthenticated".into()];
        User { name: "system:anonymous".into(), groups, ..User::default() }
    }

    /// A service account.
    pub fn account(namespace: &str, name: &str) -> User {
        let all = "system:serviceaccounts";
        User::new(&format!("system:serviceaccount:{namespace}:{name}"), [all, &format!("{all}:{namespace}")])
    }

    /// The same without one of its groups.
    #[must_use]
    pub(super) fn without(mut self, group: &str) -> User {
        self.groups.retain(|own| own != group);
        self
    }
}
