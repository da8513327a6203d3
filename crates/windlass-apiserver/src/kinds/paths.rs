//! File paths as fields hold them.

use serde_json::json;

use crate::field::{Errors, Path};

/// What is said of the mode of a file that is none.
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// A path does not step out of where it is: none of its parts is `..`.
pub(crate) fn no_backsteps(value: &str, path: &Path<'_>, errors: &mut Errors) {
    if has_backsteps(value) {
        errors.invalid(path, &json!(value), "must not contain '..'");
    }
}

/// Whether a part of a path is `..`.
pub(crate) fn has_backsteps(value: &str) -> bool {
    value.split('/').any(|part| part == "..")
}

/// A path leads downwards from where it begins.
pub(crate) fn descending(value: &str, path: &Path<'_>, errors: &mut Errors) {
    if value.starts_with('/') {
        errors.invalid(path, &json!(value), "must be a relative path");
    }
    no_backsteps(value, path, errors);
}

/// A path leads downwards, and is not one of those that a volume keeps for itself.
pub(crate) fn free(value: &str, path: &Path<'_>, errors: &mut Errors) {
    descending(value, path, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.invalid(path, &json!(value), "must not start with '..'");
    }
}

/// The bits of a file's mode.
pub(crate) fn mode(value: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = value.filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(path, &json!(mode), FILE_MODE);
    }
}
