//! Label selectors: what they are made of, what they match, how they are written.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::Error;
use super::names::{label_key_faults, label_value_faults};
use super::parse::parse;

/// Where a selector looks labels up.
pub trait Labels {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

/// Pairs sorted by key.
impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label(&self, key: &str) -> Option<&str> {
        let at = self.binary_search_by(|(candidate, _)| candidate.as_ref().cmp(key)).ok()?;
        Some(self[at].1.as_ref())
    }
}

/// `metadata.labels` of a typed object.
impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// `metadata.labels` as it stands in an object.
impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// How a [`Requirement`] relates a key to its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key=value`
    Equals,
    /// `key==value`
    DoubleEquals,
    /// `key!=value`
    NotEquals,
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How key and values relate.
    pub operator: Operator,
    /// The values, sorted when they come from text.
    pub values: Vec<String>,
}

/// A selector: all requirements must hold.
///
/// ```
/// use std::collections::BTreeMap;
/// use windlass_core::select::LabelSelector;
///
/// let selector = LabelSelector::parse("app=web,tier in (front,back),!canary")?;
/// let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "front".to_owned())]);
/// assert!(selector.matches(&labels));
/// # Ok::<(), windlass_core::select::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// The selector that matches every object.
    pub fn everything() -> LabelSelector {
        LabelSelector::default()
    }

    /// The selector that matches no object: what an absent `LabelSelector` stands for.
    pub fn nothing() -> LabelSelector {
        LabelSelector { requirements: Vec::new(), nothing: true }
    }

    /// Reads `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<LabelSelector, Error> {
        parse(text).map(LabelSelector::of)
    }

    /// Reads a `LabelSelector` object (`matchLabels`, `matchExpressions`); `None` and `null` match nothing.
    pub fn from_object(object: Option<&Value>) -> Result<LabelSelector, Error> {
        let Some(object) = object.filter(|object| !object.is_null()) else {
            return Ok(LabelSelector::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            requirements.push(Requirement::new(key, Operator::Equals, values)?);
        }
        for expression in object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let operator = match text(expression, "operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(Error(format!("{other:?} is not a valid label selector operator"))),
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(Requirement::new(text(expression, "key"), operator, values)?);
        }
        Ok(LabelSelector::of(requirements))
    }

    /// The selector of a plain map of labels, as Services and ReplicationControllers have it. It is not validated.
    pub fn from_set(labels: &Map<String, Value>) -> LabelSelector {
        let requirement = |(key, value): (&String, &Value)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: vec![value.as_str().unwrap_or_default().to_owned()],
        };
        LabelSelector::of(labels.iter().map(requirement).collect())
    }

    fn of(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements, nothing: false }
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The one value that the selector demands of a label, if it does so: lets an index answer.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Whether an object with these labels is selected.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    /// A requirement whose key and values are valid.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Requirement, Error> {
        let mut faults = Vec::new();
        let key_faults = label_key_faults(key);
        if !key_faults.is_empty() {
            faults.push(format!("key: Invalid value: {key:?}: {}", key_faults.join("; ")));
        }
        let count = match operator {
            Operator::In | Operator::NotIn => {
                values.is_empty().then_some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
                (values.len() != 1).then_some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist => {
                (!values.is_empty()).then_some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan => {
                (values.len() != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
        };
        if let Some(fault) = count {
            faults.push(format!("values: Invalid value: {}: {fault}", Value::from(values.clone())));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let fault = "for 'Gt', 'Lt' operators, the value must be an integer";
                faults.push(format!("values[{i}]: Invalid value: {value:?}: {fault}"));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let value_faults = label_value_faults(value);
            if !value_faults.is_empty() {
                faults.push(format!(
                    "values[{i}][{key}]: Invalid value: {value:?}: {}",
                    value_faults.join("; ")
                ));
            }
        }
        match faults.as_slice() {
            [] => Ok(Requirement { key: key.to_owned(), operator, values }),
            [one] => Err(Error(one.clone())),
            many => Err(Error(format!("[{}]", many.join(", ")))),
        }
    }

    fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        let label = labels.label(&self.key);
        let listed = || label.is_some_and(|label| self.values.iter().any(|value| value == label));
        let compared = |holds: fn(i64, i64) -> bool| match (label.map(str::parse), self.values.first()) {
            (Some(Ok(label)), Some(value)) => value.parse().is_ok_and(|value| holds(label, value)),
            _ => false,
        };
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => listed(),
            Operator::NotIn | Operator::NotEquals => !listed(),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compared(|label, value| label > value),
            Operator::LessThan => compared(|label, value| label < value),
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The canonical text, which [`LabelSelector::parse`] reads back.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.operator {
            Operator::Exists => return f.write_str(&self.key),
            Operator::DoesNotExist => return write!(f, "!{}", self.key),
            Operator::Equals => ("=", ""),
            Operator::DoubleEquals => ("==", ""),
            Operator::NotEquals => ("!=", ""),
            Operator::In => (" in (", ")"),
            Operator::NotIn => (" notin (", ")"),
            Operator::GreaterThan => (">", ""),
            Operator::LessThan => ("<", ""),
        };
        let mut values = self.values.iter().map(String::as_str).collect::<Vec<_>>();
        values.sort_unstable();
        write!(f, "{}{before}{}{after}", self.key, values.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_become_selectors() {
        let object = json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "DoesNotExist"},
            ],
        });
        let selector = LabelSelector::from_object(Some(&object)).unwrap();
        assert_eq!(selector.to_string(), "a=1,b=2,c in (x,y),!d");
        assert!(selector.matches([("a", "1"), ("b", "2"), ("c", "x")].as_slice()));
        assert!(!selector.matches([("a", "1"), ("b", "2"), ("c", "x"), ("d", "")].as_slice()));
    }

    #[test]
    fn an_absent_selector_matches_nothing_and_an_empty_one_everything() {
        assert!(!LabelSelector::from_object(None).unwrap().matches(&Map::new()));
        assert!(LabelSelector::from_object(Some(&json!({}))).unwrap().matches(&Map::new()));
    }

    #[test]
    fn unknown_operators_are_refused() {
        let object = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        let error = LabelSelector::from_object(Some(&object)).unwrap_err();
        assert_eq!(error.0, "\"Near\" is not a valid label selector operator");
    }

    #[test]
    fn an_exact_value_is_found_only_where_the_selector_demands_one() {
        let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
        let exact = ["a", "b", "c", "d", "e"].map(|key| selector.exact(key));
        assert_eq!(exact, [Some("1"), Some("2"), None, None, None]);
    }
}
