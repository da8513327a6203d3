//! Whether the process is well, and whether it is ready: named checks, told as Kubernetes' own components tell them.

use std::fmt;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// The checks of one question: `/healthz` or `/readyz`. Clones are the same checks.
#[derive(Clone)]
pub struct Checks(Arc<RwLock<Vec<Check>>>);

#[derive(Clone)]
struct Check {
    name: String,
    ask: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether all is well.
    pub passed: bool,
    /// A line for each check.
    pub text: String,
}

impl Checks {
    /// One check that always passes: who answers, lives.
    pub fn new() -> Checks {
        let checks = Checks(Arc::default());
        checks.add("ping", || Ok(()));
        checks
    }

    /// Adds a check. It is asked whenever somebody asks, and must not wait; an `Err` says what is wrong. A check that
    /// panics has failed. One of the same name is replaced.
    pub fn add(&self, name: &str, ask: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        checks.retain(|check| check.name != name);
        checks.push(Check { name: name.to_owned(), ask: Arc::new(ask) });
    }

    /// Asks all checks but those that are excluded. `question` is the name of it all, for the last line.
    pub fn report(&self, question: &str, excluded: &[&str]) -> Report {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        let mut passed = true;
        for check in &checks {
            let name = &check.name;
            let line = if excluded.contains(&&**name) {
                format!("[+]{name} excluded: ok")
            } else {
                match check.ask() {
                    Ok(()) => format!("[+]{name} ok"),
                    Err(why) => {
                        passed = false;
                        format!("[-]{name} failed: {why}")
                    }
                }
            };
            text.push_str(&line);
            text.push('\n');
        }
        let unknown: Vec<_> =
            excluded.iter().filter(|name| !checks.iter().any(|check| check.name == **name)).collect();
        if !unknown.is_empty() {
            let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {unknown:?}");
        }
        let _ = writeln!(text, "{question} check {}", if passed { "passed" } else { "failed" });
        Report { passed, text }
    }

    /// Asks one check; `None` where there is none of this name.
    pub fn ask(&self, name: &str) -> Option<Result<(), String>> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        checks.iter().find(|check| check.name == name).map(Check::ask)
    }
}

impl Check {
    fn ask(&self) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| (self.ask)()))
            .unwrap_or_else(|_| Err("the check panicked".to_owned()))
    }
}

impl Default for Checks {
    fn default() -> Checks {
        Checks::new()
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(checks.iter().map(|check| &check.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_told_as_kubernetes_tells_them() {
        let checks = Checks::new();
        let report = checks.report("healthz", &[]);
        assert_eq!((report.passed, &*report.text), (true, "[+]ping ok\nhealthz check passed\n"));

        checks.add("informers", || Err("FooBar: forbidden".to_owned()));
        checks.add("broken", || panic!("oh no"));
        let report = checks.report("readyz", &["ping", "etcd"]);
        assert!(!report.passed);
        assert_eq!(
            report.text,
            "[+]ping excluded: ok\n\
             [-]informers failed: FooBar: forbidden\n\
             [-]broken failed: the check panicked\n\
             warn: some health checks cannot be excluded: no matches for [\"etcd\"]\n\
             readyz check failed\n"
        );
        assert!(checks.report("readyz", &["informers", "broken"]).passed);
        assert_eq!(checks.ask("informers"), Some(Err("FooBar: forbidden".to_owned())));
        assert_eq!(checks.ask("ping"), Some(Ok(())));
        assert_eq!(checks.ask("etcd"), None);

        checks.add("informers", || Ok(()));
        assert_eq!(checks.ask("informers"), Some(Ok(())), "replaced");
    }
}
