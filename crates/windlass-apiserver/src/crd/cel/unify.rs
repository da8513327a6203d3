//! Whether a type can stand for another, and what that says of types that are not known yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::Ty;

/// What has been found out of types that were not known.
#[derive(Default)]
pub(super) struct Known {
    of: BTreeMap<u32, Ty>,
    /// What stood there before, to go back when an attempt fails.
    undo: Vec<(u32, Option<Ty>)>,
    fresh: u32,
}

impl Known {
    /// A type that nothing is known of.
    pub(super) fn fresh(&mut self) -> Ty {
        self.fresh += 1;
        Ty::Param(self.fresh - 1)
    }

    /// Whether `a` can stand where `b` is wanted. What that tells is kept only if it can.
    pub(super) fn fits(&mut self, a: &Ty, b: &Ty) -> bool {
        self.attempt(|known| known.assign(a, b))
    }

    /// The same for lists of arguments.
    pub(super) fn all_fit(&mut self, a: &[Ty], b: &[Ty]) -> bool {
        self.attempt(|known| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| known.assign(a, b)))
    }

    fn attempt(&mut self, what: impl FnOnce(&mut Known) -> bool) -> bool {
        self.undo.clear();
        let fits = what(self);
        if !fits {
            while let Some((param, before)) = self.undo.pop() {
                match before {
                    Some(before) => drop(self.of.insert(param, before)),
                    None => drop(self.of.remove(&param)),
                }
            }
        }
        fits
    }

    fn learn(&mut self, param: u32, ty: Ty) {
        let before = self.of.insert(param, ty);
        self.undo.push((param, before));
    }

    fn assign(&mut self, a: &Ty, b: &Ty) -> bool {
        if let Ty::Param(param) = b {
            let (valid, had) = self.substitutes(a, b, *param);
            if valid {
                return true;
            }
            if had {
                return false;
            }
        }
        if let Ty::Param(param) = a {
            return self.substitutes(b, a, *param).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Ty::Null, other) | (other, Ty::Null) => other.is_nullable(),
            (Ty::Type(_), _) => matches!(b, Ty::Type(_)),
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => self.assign(a, b),
            (Ty::Map(key, value), Ty::Map(other_key, other)) => {
                self.assign(key, other_key) && self.assign(value, other)
            }
            _ => a.same(b),
        }
    }

    /// Whether `b`, the parameter, can stand for `a`, and whether something was known of it before.
    fn substitutes(&mut self, a: &Ty, b: &Ty, param: u32) -> (bool, bool) {
        if a.same(b) {
            return (true, true);
        }
        if let Some(known) = self.of.get(&param).cloned() {
            if a.same(&known) {
                return (true, true);
            }
            if !self.assign(a, &known) {
                return (false, true);
            }
            let general = more_general(a, &known);
            if !self.occurs(b, &general) {
                self.learn(param, general);
            }
            return (true, true);
        }
        if self.occurs(b, a) {
            return (false, false);
        }
        self.learn(param, a.clone());
        (true, false)
    }

    /// Whether a parameter is part of a type.
    fn occurs(&self, param: &Ty, within: &Ty) -> bool {
        if param.same(within) {
            return true;
        }
        match within {
            Ty::Param(number) => self.of.get(number).is_some_and(|known| self.occurs(param, known)),
            Ty::List(inner) | Ty::Optional(inner) | Ty::Type(Some(inner)) => self.occurs(param, inner),
            Ty::Map(key, value) => self.occurs(param, key) || self.occurs(param, value),
            _ => false,
        }
    }

    /// A type with all that is known put in. What is not known stays, or becomes `dyn`.
    pub(super) fn resolve(&self, ty: &Ty, unknown_is_dyn: bool) -> Ty {
        let inner = |ty: &Arc<Ty>| Arc::new(self.resolve(ty, unknown_is_dyn));
        match ty {
            Ty::Param(number) => match self.of.get(number) {
                Some(known) => self.resolve(known, unknown_is_dyn),
                None if unknown_is_dyn => Ty::Dyn,
                None => ty.clone(),
            },
            Ty::List(element) => Ty::List(inner(element)),
            Ty::Optional(value) => Ty::Optional(inner(value)),
            Ty::Type(Some(of)) => Ty::Type(Some(inner(of))),
            Ty::Map(key, value) => Ty::Map(inner(key), inner(value)),
            other => other.clone(),
        }
    }
}

/// A type with its letters replaced.
pub(super) fn instantiate(ty: &Ty, by: &BTreeMap<u32, Ty>) -> Ty {
    let inner = |ty: &Arc<Ty>| Arc::new(instantiate(ty, by));
    match ty {
        Ty::Param(number) => by.get(number).unwrap_or(ty).clone(),
        Ty::List(element) => Ty::List(inner(element)),
        Ty::Optional(value) => Ty::Optional(inner(value)),
        Ty::Type(Some(of)) => Ty::Type(Some(inner(of))),
        Ty::Map(key, value) => Ty::Map(inner(key), inner(value)),
        other => other.clone(),
    }
}

/// Of two types that fit, the one that says less.
pub(super) fn more_general(a: &Ty, b: &Ty) -> Ty {
    if says_less_or_same(a, b) { a.clone() } else { b.clone() }
}

fn says_less_or_same(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Dyn | Ty::Param(_), _) => true,
        (_, Ty::Dyn | Ty::Param(_)) => false,
        (Ty::Type(_), Ty::Type(_)) => true,
        (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => says_less_or_same(a, b),
        (Ty::Map(key, value), Ty::Map(other_key, other)) => {
            says_less_or_same(key, other_key) && says_less_or_same(value, other)
        }
        _ => a.same(b),
    }
}
