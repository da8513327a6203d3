//! Sequences from a seed: random objects, random requests.
//!
//! A generator makes the steps of one sequence from a stream of random numbers that is its own, so the same seed
//! gives the same sequences, whatever other generators do.

mod access;
mod admission;
mod applied;
mod apply;
mod approval;
mod builtin;
mod conversion;
mod custom;
mod gates;
mod handling;
mod kinds;
pub mod mutate;
mod negotiate;
mod patch;
mod read;
mod rules;
mod security;
mod spoil;
mod tables;
mod versions;
mod watch;
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
    ("health.probes", 25, negotiate::health),
    ("errors.path", 30, negotiate::unknown_path),
    ("errors.method", 20, negotiate::method),
    ("negotiate.accept", 40, negotiate::accept),
    ("negotiate.body", 40, negotiate::body),
    ("negotiate.protobuf", 80, negotiate::protobuf),
    ("negotiate.pretty", 15, negotiate::pretty),
    ("identity.users", 12, negotiate::identity),
    ("table.get", 40, read::table),
    ("table.printers", 60, read::printers),
    ("table.every", 180, tables::every),
    ("metadata.only", 20, read::metadata_only),
    ("list.basic", 20, read::list),
    ("list.continue", 30, read::pages),
    ("list.version", 15, read::versions),
    ("bytes.order", 40, read::bytes),
    ("select.label", 60, read::label_selectors),
    ("select.field", 40, read::field_selectors),
    ("bootstrap.objects", 20, read::bootstrap),
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
    ("patch.json", 50, patch::json),
    ("patch.merge", 40, patch::merge),
    ("patch.strategic", 60, patch::strategic),
    ("patch.type", 12, patch::types),
    ("patch.conflict", 12, patch::conflict),
    ("apply.create", 40, apply::create),
    ("apply.conflict", 50, apply::conflict),
    ("apply.remove", 40, apply::remove),
    ("apply.lists", 40, apply::lists),
    ("apply.custom", 100, applied::custom),
    ("managed.update", 40, apply::tracked),
    ("managed.patch", 12, apply::rewritten),
    ("watch.events", 40, watch::events),
    ("watch.initial", 15, watch::initial),
    ("watch.timeout", 10, watch::timeout),
    ("watch.bookmark", 8, watch::bookmark),
    ("watch.expired", 8, watch::expired),
    ("watch.selector", 25, watch::selector),
    ("watch.deleted", 15, watch::deleted),
    ("watch.list", 25, watch::list),
    ("table.watch", 12, watch::table),
    ("crd.life", 10, custom::life),
    ("crd.approval", 20, approval::asked),
    ("crd.structural", 40, custom::structural),
    ("crd.spoilt", 120, builtin::defined),
    ("crd.spoilt-updates", 40, builtin::redefined),
    ("crd.prune", 25, custom::prune),
    ("crd.default", 25, custom::defaults),
    ("crd.validate", 50, custom::validate),
    ("crd.cel", 30, custom::cel),
    ("crd.rules", 150, rules::checked),
    ("crd.evaluation", 100, rules::evaluated),
    ("crd.versions", 12, custom::versions),
    ("crd.versions-differ", 40, versions::differing),
    ("crd.conversion", 60, conversion::converted),
    ("crd.conversion-fails", 20, conversion::failed),
    ("crd.subresources", 20, custom::subresources),
    ("access.decide", 150, access::decide),
    ("access.told", 80, access::told),
    ("access.requests", 150, access::requests),
    ("access.escalate", 120, access::escalate),
    ("access.impersonate", 100, access::impersonate),
    ("access.tokens", 40, access::tokens),
    ("access.paths", 120, access::paths),
    ("access.signers", 40, access::signers),
    ("policy.evaluate", 120, admission::policies::evaluated),
    ("policy.told", 80, admission::policies::told),
    ("policy.match", 80, admission::policies::matched),
    ("policy.params", 60, admission::policies::parametrized),
    ("policy.custom-params", 12, admission::policies::of_custom_kinds),
    ("policy.refused", 60, admission::refused::policies),
    ("policy.bindings", 20, admission::refused::bindings),
    ("policy.rights", 50, admission::rights::written),
    ("policy.change", 80, admission::mutations::changed),
    ("policy.change-custom", 30, admission::custom::laid_over),
    ("policy.change-refused", 25, admission::mutations::refused),
    ("policy.parts", 40, admission::parts::parts),
    ("policy.versions", 40, admission::parts::versions),
    ("policy.connect", 40, admission::connect::judged),
    ("policy.connect-change", 30, admission::connect::changed),
    ("webhook.connect", 60, admission::connect::hooked),
    ("webhook.change", 80, admission::webhooks::changed),
    ("webhook.rename", 40, admission::webhooks::renamed),
    ("webhook.versions", 60, admission::versions::hooked),
    ("webhook.builtin", 80, admission::builtin::changed),
    ("webhook.custom", 80, admission::custom::changed),
    ("policy.conversion", 40, admission::versions::judged),
    ("webhook.parts", 60, admission::parts::hooked),
    ("webhook.answer", 80, admission::webhooks::answered),
    ("webhook.silent", 20, admission::webhooks::silent),
    ("webhook.want", 60, admission::webhooks::wanted),
    ("builtin.validation.create", 450, builtin::created),
    ("builtin.validation.update", 300, builtin::updated),
    ("builtin.validation.services", 80, builtin::allocated),
    ("gates.limits", 80, gates::limits),
    ("gates.quotas", 120, gates::quotas),
    ("gates.scopes", 60, gates::scopes),
    ("gates.said", 40, gates::said),
    ("gates.security", 120, security::pods),
    ("gates.levels", 40, security::levels),
    ("gates.priority", 40, gates::priority),
    ("gates.classes", 40, gates::classes),
    ("handling.evictions", 60, handling::evictions),
    ("handling.bindings", 40, handling::bindings),
    ("handling.sizes", 60, handling::sizes),
    ("handling.debuggers", 40, handling::debuggers),
    ("handling.tokens", 40, handling::tokens),
    ("handling.endings", 30, handling::endings),
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

    #[test]
    fn every_rule_has_enough_sequences_and_half_are_generated() {
        let hand_written = crate::rules::hand_written().unwrap();
        let generated = all(1, 100);
        assert!(generated.len() >= hand_written.len());
        assert!(generated.len() + hand_written.len() >= 2_000);
        for rule in crate::rules::all().keys() {
            let count = generated.iter().chain(&hand_written).filter(|s| s.rule == *rule).count();
            assert!(count >= crate::rules::LEAST, "{rule}: {count}");
        }
    }
}
