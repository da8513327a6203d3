//! Sequences from a seed: random objects, random requests.
//!
//! A generator makes the steps of one sequence from a stream of random numbers that is its own, so the same seed
//! gives the same sequences, whatever other generators do.

mod kinds;
mod mutate;
mod negotiate;
mod write;

use crate::rng::Rng;
use crate::sequence::{Sequence, Step};

/// Makes the steps of a sequence.
type Generator = fn(&mut Rng) -> Vec<Step>;

/// Rule, how many sequences, and what makes them.
const GENERATORS: &[(&str, usize, Generator)] = &[
    ("discovery.version", 10, negotiate::version),
    ("discovery.legacy", 10, negotiate::legacy),
    ("discovery.aggregated", 12, negotiate::aggregated),
    ("discovery.etag", 10, negotiate::etag),
    ("discovery.group", 20, negotiate::group),
    ("openapi.index", 10, negotiate::openapi_index),
    ("openapi.document", 12, negotiate::openapi_document),
    ("health.probes", 10, negotiate::health),
    ("errors.path", 30, negotiate::unknown_path),
    ("errors.method", 20, negotiate::method),
    ("negotiate.accept", 40, negotiate::accept),
    ("negotiate.body", 40, negotiate::body),
    ("negotiate.protobuf", 80, negotiate::protobuf),
    ("negotiate.pretty", 15, negotiate::pretty),
    ("identity.users", 12, negotiate::identity),
    ("create.basic", 60, write::create),
    ("create.errors", 30, write::create_errors),
    ("create.generate-name", 12, write::generate_name),
    ("create.server-fields", 20, write::server_fields),
    ("create.limits", 6, write::limits),
    ("defaults.core", 90, write::defaults_core),
    ("defaults.workloads", 90, write::defaults_workloads),
    ("defaults.others", 70, write::defaults_others),
    ("values.canonical", 60, write::canonical),
    ("validate.fields", 60, write::unknown_fields),
    ("validate.values", 60, write::wrong_values),
    ("immutable.fields", 60, write::immutable),
    ("update.conflict", 20, write::conflict),
    ("update.unconditional", 30, write::unconditional),
    ("update.mismatch", 15, write::mismatch),
    ("update.create", 20, write::create_on_update),
    ("update.no-op", 40, write::no_op),
    ("update.generation", 30, write::generation),
    ("subresource.status", 30, write::status),
    ("subresource.scale", 20, write::scale),
    ("write.dry-run", 30, write::dry_run),
    ("write.manager", 20, write::manager),
    ("delete.basic", 25, write::delete),
    ("delete.preconditions", 15, write::preconditions),
    ("delete.finalizers", 25, write::finalizers),
    ("delete.propagation", 20, write::propagation),
    ("delete.collection", 15, write::collection),
    ("namespaces.life", 15, write::namespaces),
    ("events.views", 15, write::events),
];

/// All generated sequences of a seed; `percent` of the usual number of each, and at least one.
pub fn all(seed: u64, percent: usize) -> Vec<Sequence> {
    let mut out = Vec::new();
    for &(rule, count, generator) in GENERATORS {
        let count = if percent == 0 { 0 } else { (count * percent).div_ceil(100) };
        for index in 0..count {
            let steps = generator(&mut Rng::part(seed, rule, index));
            out.push(Sequence { rule: rule.into(), name: format!("{seed}-{index}"), generated: true, steps });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_sequences_again() {
        let text = |seed| serde_json::to_string(&all(seed, 20)).unwrap();
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn every_rule_of_a_generator_is_a_rule() {
        let rules = crate::rules::all();
        for (rule, ..) in GENERATORS {
            assert!(rules.contains_key(*rule), "{rule}");
        }
    }
}
