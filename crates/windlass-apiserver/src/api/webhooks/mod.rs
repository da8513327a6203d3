//! Admission webhooks: programs that are asked before something is written, may change it, and may refuse it.
//!
//! ```text
//! write ─► built-in admission ─► mutating hooks, one after the other ─► validation ─► validating hooks, side by side ─► store
//!                                      └────────────── Step::Call ──────────────┘
//!                                        the front asks; the request begins anew with the answers
//! ```
//!
//! A request that needs an answer is given up before it has written anything, and begun anew when the answer is there: with
//! the same time, the same random numbers and all answers so far, so that it comes to the same place. An answer counts for
//! exactly the question that was asked: if the object was changed by somebody else meanwhile, the question is another one, and
//! is asked again.
//!
//! A hook whose rules name another version of the resource sees the object in that version (`shown`): where a webhook
//! converts it, that one is asked first, in the same way.

mod hook;
mod patched;
mod question;
mod write;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::create::uid;
use super::matching::Match;
use super::policies::Applied;
use super::registry::Resource;
use super::server::{Call, Server};
use super::shown::Seen;
use crate::status::{Result, Status};
use crate::store::Kind;

pub(super) use hook::Client;
pub use hook::Service;
pub(super) use question::Answered;
pub use question::{Consulted, Failure, Place, Question, Reply, Review};
pub use write::Operation;
pub(super) use write::Write;

use hook::Hook;
use patched::apply;

static MUTATING: LazyLock<Kind> =
    LazyLock::new(|| Kind::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations"));
static VALIDATING: LazyLock<Kind> =
    LazyLock::new(|| Kind::new("admissionregistration.k8s.io", "validatingwebhookconfigurations"));

/// Who has been asked in this round of admission, and who is to be asked once more in the next.
#[derive(Default)]
pub(super) struct Round {
    is_second: bool,
    has_changed: bool,
    asked: Vec<bool>,
    again: Vec<bool>,
    /// What policies did.
    applied: Applied,
    /// The object as the last hook left it.
    left: Option<Value>,
}

impl Round {
    /// Whether there is another round: a second one, if somebody changed something in the first.
    pub fn goes_on(&mut self) -> bool {
        let goes_on = self.has_changed && !self.is_second;
        self.is_second = true;
        goes_on
    }
}

impl Server {
    /// Whether anybody has to be asked about anything.
    pub(super) fn has_webhooks(&self) -> bool {
        !self.store.list(&MUTATING).is_empty() || !self.store.list(&VALIDATING).is_empty()
    }

    /// Whether policies or hooks look at what is written before it is stored.
    pub(super) fn is_looked_at(&self) -> bool {
        self.policies.judge() || !self.store.list(&VALIDATING).is_empty()
    }

    /// Lets policies, then mutating hooks change an object.
    pub(super) fn mutate(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        tree: &mut Value,
        round: &mut Round,
    ) -> Result<()> {
        if write.operation != Operation::Delete {
            let before = round.is_second.then_some(&round.applied);
            let applied = self.change(call, write, tree, before)?;
            round.has_changed |= applied.is_any();
            round.applied = applied;
        }
        let hooks = self.hooks(&MUTATING, call, write);
        let Round { is_second, has_changed, asked, again, left, .. } = round;
        asked.resize(hooks.len(), false);
        again.resize(hooks.len(), false);
        if *is_second && left.as_ref().is_some_and(|left| left != tree) {
            // Somebody else changed it since.
            again.clone_from(asked);
        }
        let mut seen = Seen::default();
        for (at, hook) in hooks.iter().enumerate() {
            if *is_second && !again[at] {
                continue;
            }
            let changed = self.ask_hook(call, write, hook, tree, &mut seen)?;
            if changed == Some(true) {
                // Who was asked before is asked once more, if it wants to be.
                *has_changed = true;
                (0..hooks.len()).filter(|other| *other != at).for_each(|other| again[other] |= asked[other]);
            }
            asked[at] |= changed.is_some() && hook.reinvoked;
        }
        let failed = |why: &str| Status::new(500, "", why.to_owned());
        self.turn_back(call, write, tree, &mut seen).map_err(|unshown| unshown.end(failed))?;
        *left = (!hooks.is_empty()).then(|| tree.clone());
        Ok(())
    }

    /// Asks one mutating hook, if it wants to be asked. Whether it changed anything.
    fn ask_hook(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        hook: &Hook,
        tree: &mut Value,
        seen: &mut Seen,
    ) -> Result<Option<bool>> {
        if !hook.selects(self, call, seen.write(write.of(tree)))? {
            return Ok(None);
        }
        let failed = |why: &str| Status::internal(&Status::internal(why).message);
        self.turn(call, write, tree, seen, hook.sees.as_ref()).map_err(|unshown| unshown.end(failed))?;
        let write = seen.write(write.of(tree));
        if !hook.wants(self, call, write)? {
            return Ok(None);
        }
        let question = self.question(call, write, hook)?;
        let Some(answer) = question.answer(call.answered) else {
            call.asking.push(question);
            return Err(Status::put_aside());
        };
        let verdict = hook.judge(&question, answer, "admit", write.operation, call)?;
        let Some(patch) = verdict.and_then(|verdict| verdict.patch) else { return Ok(Some(false)) };
        let (changed, differs) = apply(hook, write, &patch).inspect_err(|_| {
            // It said yes, but it could not be done.
            if let Some(last) = call.consulted.last_mut() {
                (last.code, last.rejection) = (0, Some("apiserver_internal_error"));
            }
        })?;
        seen.put(tree, changed);
        Ok(Some(differs))
    }

    /// Asks policies, then validating hooks, these all at once. The first one that refuses is told.
    pub(super) fn review(&self, call: &mut Call<'_>, write: Write<'_>) -> Result<()> {
        self.judge(call, write)?;
        let mut answers = Vec::new();
        let own = write;
        for hook in self.hooks(&VALIDATING, call, write) {
            if !hook.selects(self, call, own)? {
                continue;
            }
            let shown = hook.sees.as_ref().map(|other| self.show(call, own, other)).transpose();
            let shown = shown.map_err(|unshown| unshown.end(Status::internal))?;
            let write = shown.as_ref().map_or(own, |shown| shown.write(own));
            if !hook.wants(self, call, write)? {
                continue;
            }
            let question = self.question(call, write, &hook)?;
            match question.answer(call.answered) {
                Some(answer) => answers.push((hook, question, answer)),
                None => call.asking.push(question),
            }
        }
        if !call.asking.is_empty() {
            return Err(Status::put_aside());
        }
        let mut refusal = None;
        for (hook, question, answer) in answers {
            if let Err(status) = hook.judge(&question, answer, "validating", write.operation, call) {
                refusal = refusal.or(Some(status));
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// The hooks that a write may concern, in the order in which they are asked.
    fn hooks(&self, kind: &Kind, call: &Call<'_>, write: Write<'_>) -> Vec<Hook> {
        let configurations = self.store.list(kind);
        // What decides about hooks is not decided by hooks: nobody could undo a mistake.
        let is_exempt = write.resource.group == "admissionregistration.k8s.io";
        if configurations.is_empty() || is_exempt || !call.hooked {
            return Vec::new();
        }
        let concerned = |mut hook: Hook| match self.matched(&hook.rules, hook.is_exact, call, write) {
            Match::Not => None,
            Match::Asked => Some(hook),
            Match::In(other) => {
                hook.sees = Some(other);
                Some(hook)
            }
        };
        configurations.range(None, None).flat_map(|object| Hook::of(object)).filter_map(concerned).collect()
    }

    fn question(&self, call: &mut Call<'_>, write: Write<'_>, hook: &Hook) -> Result<Question> {
        if write.dry_run && !hook.has_dry_run {
            let message = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(Status::bad_request(message));
        }
        // Drawn whether it is needed or not: a request that begins anew draws the same numbers.
        let uid = uid(call.ids);
        let mut request = self.request(call, write);
        request["uid"] = json!(uid);
        Ok(Question {
            hook: hook.id.clone(),
            place: self.place(&hook.client),
            authority: hook.client.authority.clone(),
            timeout_seconds: hook.timeout_seconds,
            review: Review::Admission,
            version: hook.version,
            request,
        })
    }

    /// What a hook is told.
    pub(super) fn request(&self, call: &Call<'_>, write: Write<'_>) -> Value {
        let Write { operation, resource, shape, object, old, asked, dry_run } = write;
        let kind = |of: &Resource| json!({"group": of.group, "version": of.version, "kind": of.kind});
        let place = |of: &Resource| json!({"group": of.group, "version": of.version, "resource": of.plural});
        let (asked, asked_shape) = asked.unwrap_or((resource, shape));
        let mut request = json!({
            "kind": kind(shape), "resource": place(resource),
            "requestKind": kind(asked_shape), "requestResource": place(asked),
            "operation": operation.as_str(),
            "userInfo": call.request.user.told(),
            "object": object, "oldObject": old,
            "dryRun": dry_run,
            "options": options(call, operation, dry_run),
        });
        let subresource = call.target.subresource.as_str();
        let texts = [
            ("name", write.name(call)),
            ("namespace", write.namespace(call)),
            ("subResource", subresource),
            ("requestSubResource", subresource),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[key] = json!(text);
        }
        request
    }
}

/// The options of the request, as a hook reads them.
fn options(call: &Call<'_>, operation: Operation, dry_run: bool) -> Value {
    let Some(kind) = operation.options() else { return Value::Null };
    let mut options = Map::new();
    options.insert("kind".into(), json!(kind));
    options.insert("apiVersion".into(), json!("meta.k8s.io/v1"));
    if dry_run {
        options.insert("dryRun".into(), json!(["All"]));
    }
    for key in ["fieldManager", "fieldValidation"] {
        if let Some(value) = call.query.get(key).filter(|_| operation != Operation::Delete) {
            options.insert(key.into(), json!(value));
        }
    }
    options.into()
}
