//! Whether an object already is what our server-side apply would leave.
//!
//! The server notes what each manager of an object applied, as a set of fields (`managedFields`). That set tells how the
//! server sees the object, so no schema is needed: which lists are merged by key, which are replaced as one value. It
//! also tells what we applied before, so a field that left the plan is a difference too.
//!
//! ```text
//! desired ─┐
//! live    ─┼─► differences ─► none: an apply would change nothing, so none is sent
//! our set ─┘                └► some: their paths and values, for the log and for people
//! ```

mod fields;
mod list;
mod path;

use std::fmt;

use serde_json::{Map, Value};

use fields::{Fields, Node};

/// What would change if `desired` were applied by force to `live`, whose fields `owned` were applied by us before, as
/// `fieldsV1` of our manager's Apply entry has them; `None` where we never applied. Nothing, if this is empty.
///
/// A field of `desired` that is null is no field: see [`without_nulls`].
///
/// # Guarantees
/// Where nothing differs, an apply would leave the object as it is. The other way round holds only as far as the server
/// keeps values as they are sent: a quantity `1000m` that it stores as `1` differs each time. Whoever applies should
/// remember what differed when an apply changed nothing, and see the same as done.
///
/// # Caveats
/// An object that we applied as `{}`, and others have filled since with just what is desired now, is seen as applied by
/// us: its entry in the set looks like that of a value that is replaced as one.
pub fn differences(desired: &Value, live: &Value, owned: Option<&Value>) -> Vec<Difference> {
    let mut walk = Walk { path: String::new(), found: Vec::new() };
    if let Value::Object(desired) = desired {
        walk.object(desired, Some(live), owned.and_then(Node::of));
    }
    walk.found
}

/// Takes the nulls out of all objects in a value. In Rust `None` says that there is no opinion on a field; to the server
/// a null is one: it empties a string, is refused where a custom resource has another type, and counts as applied.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// One thing that an apply would change.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, as `spec.template.spec.containers[name=app].image`.
    pub path: String,
    /// What.
    pub change: Change,
}

/// What an apply would change at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The field gets another value, or its first.
    Set {
        /// What is there.
        from: Option<Value>,
        /// What should be.
        to: Value,
    },
    /// The field has its value, and we would begin to be an owner of it.
    Own,
    /// We applied it before and no longer do. The server removes it, unless somebody else owns it as well.
    Leave,
    /// The items of a list are there, in another order.
    Reorder,
}

impl Difference {
    /// The same without values, for objects that hold secrets.
    #[must_use]
    pub fn redacted(self) -> Difference {
        let hide = || Value::from("(hidden)");
        let change = match self.change {
            Change::Set { from, .. } => Change::Set { from: from.map(|_| hide()), to: hide() },
            other => other,
        };
        Difference { path: self.path, change }
    }
}

/// One line: `spec.replicas: 3 → 5`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        match &self.change {
            Change::Set { from: Some(from), to } => write!(f, "{} → {}", Short(from), Short(to)),
            Change::Set { from: None, to } => write!(f, "added {}", Short(to)),
            Change::Own => f.write_str("ours from now on"),
            Change::Leave => f.write_str("removed"),
            Change::Reorder => f.write_str("reordered"),
        }
    }
}

/// A value that leaves room for others on its line.
struct Short<'a>(&'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARACTERS_MAX: usize = 80;
        let text = self.0.to_string();
        match text.char_indices().nth(CHARACTERS_MAX) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// The way through an object, and what was found on it.
struct Walk {
    path: String,
    found: Vec<Difference>,
}

impl Walk {
    /// Goes one step down, and comes back.
    fn within(&mut self, step: impl FnOnce(&mut String), visit: impl FnOnce(&mut Walk)) {
        let here = self.path.len();
        step(&mut self.path);
        visit(self);
        self.path.truncate(here);
    }

    fn note(&mut self, change: Change) {
        self.found.push(Difference { path: self.path.clone(), change });
    }

    fn note_set(&mut self, desired: &Value, live: Option<&Value>) {
        self.note(Change::Set { from: live.cloned(), to: desired.clone() });
    }

    fn value(&mut self, desired: &Value, live: Option<&Value>, owned: Option<Node<'_>>) {
        match (owned.map(Node::fields), desired) {
            (None, Value::Object(members)) if !is_empty(desired) && live.is_some_and(Value::is_object) => {
                self.object(members, live, None);
            }
            (None, _) if live.is_some_and(|live| equal(desired, live)) => self.note(Change::Own),
            (Some(Fields::Whole), _) if self.is_whole(desired, live) => {}
            (Some(Fields::Members), Value::Object(members)) => self.object(members, live, owned),
            (Some(Fields::Keyed(entries)), Value::Array(items)) => self.keyed_list(items, live, entries),
            (Some(Fields::Set(entries)), Value::Array(items)) => self.set_list(items, live, &entries),
            _ => self.note_set(desired, live),
        }
    }

    /// Whether a value that we own as a whole is there.
    fn is_whole(&self, desired: &Value, live: Option<&Value>) -> bool {
        if is_empty(desired) && path::is_shared_map(&self.path) {
            return true;
        }
        match live {
            Some(live) => equal(desired, live),
            // We own it, so the server took it and then left it out: it stores no empty values of built-in kinds. But
            // an object that has just been emptied is left out of a custom resource at first, and then put in.
            None => is_empty(desired) && !desired.is_object(),
        }
    }

    fn object(&mut self, desired: &Map<String, Value>, live: Option<&Value>, owned: Option<Node<'_>>) {
        for (name, value) in desired {
            if value.is_null() || path::is_identity(&self.path, name) {
                continue;
            }
            let live = live.and_then(|live| live.get(name)).filter(|live| !live.is_null());
            let owned = owned.and_then(|owned| owned.member(name));
            self.within(|path| path::push_field(path, name), |walk| walk.value(value, live, owned));
        }
        for name in owned.into_iter().flat_map(Node::members) {
            if desired.get(name).is_none_or(Value::is_null) {
                self.within(|path| path::push_field(path, name), |walk| walk.note(Change::Leave));
            }
        }
    }
}

/// Whether two values are the same to the server: numbers by their value, and a null is no field.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Two integers are compared as such: a double does not hold all of them.
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let fields =
                |members: &Map<String, Value>| members.values().filter(|value| !value.is_null()).count();
            let is_in_b = |(name, value): (&String, &Value)| {
                value.is_null() || b.get(name).is_some_and(|other| equal(value, other))
            };
            fields(a) == fields(b) && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

/// Whether a value is the empty one of its type.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(Value::is_null),
    }
}

#[cfg(test)]
mod tests;
