//! Claims of volumes: their number and size, by class too.

use serde_json::Value;

use super::{number_of, one};
use crate::amounts::{Amounts, amount};
use crate::tree::at;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

pub(super) fn counts(name: &str) -> bool {
    let what = name.split_once(BY_CLASS).map_or(name, |(_, what)| what);
    name == "count/persistentvolumeclaims" || matches!(what, CLAIMS | STORAGE)
}

pub(super) fn usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([(CLAIMS.to_owned(), one()), (number_of("", CLAIMS), one())]);
    let class = class(claim);
    if !class.is_empty() {
        usage.insert(format!("{class}{BY_CLASS}{CLAIMS}"), one());
    }
    let of = |path: &[&str]| at(claim, path).and_then(amount);
    let asked = of(&["spec", "resources", "requests", "storage"]);
    let given = of(&["status", "allocatedResources", "storage"]);
    if let Some(asked) = asked {
        let most = given.filter(|given| *given > asked).unwrap_or(asked).whole();
        usage.insert(STORAGE.to_owned(), most.clone());
        if !class.is_empty() {
            usage.insert(format!("{class}{BY_CLASS}{STORAGE}"), most);
        }
    }
    usage
}

/// The class of a claim; the old way to name it comes first.
pub fn class(claim: &Value) -> &str {
    const OLD: &str = "volume.beta.kubernetes.io/storage-class";
    let named =
        at(claim, &["metadata", "annotations", OLD]).or_else(|| at(claim, &["spec", "storageClassName"]));
    named.and_then(Value::as_str).unwrap_or_default()
}
