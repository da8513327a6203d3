//! Names of images, as people write them and as they are meant.

use std::fmt;

use thiserror::Error;

/// The name of an image with all that people leave out: `nginx` is `docker.io/library/nginx:latest`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Registry and path: `docker.io/library/nginx`.
    pub repository: String,
    /// The tag; empty where only a digest was given.
    pub tag: String,
    /// The digest, where one was given: `sha256:…`.
    pub digest: String,
}

/// Text that names no image.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("couldn't parse image name {name:?}: {why}")]
pub struct Invalid {
    /// The text.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl Reference {
    /// Reads a name, with the defaults that container runtimes have.
    pub fn parse(name: &str) -> Result<Reference, Invalid> {
        let invalid = |why: &str| Invalid { name: name.to_owned(), why: why.to_owned() };
        let malformed = || invalid("invalid reference format");
        let (rest, digest) = match name.split_once('@') {
            Some((rest, digest)) if is_digest(digest) => (rest, digest),
            Some(_) => return Err(malformed()),
            None => (name, ""),
        };
        // A colon after the last slash begins the tag; one before it, a port.
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (rest, ""),
        };
        if rest.len() > path.len() && !is_tag(tag) {
            return Err(malformed());
        }
        let (domain, path) = match path.split_once('/') {
            Some((domain, path)) if is_domain(domain) => (domain, path.to_owned()),
            _ => ("docker.io", path.to_owned()),
        };
        let domain = if domain == "index.docker.io" { "docker.io" } else { domain };
        let path =
            if domain == "docker.io" && !path.contains('/') { format!("library/{path}") } else { path };
        if !path.split('/').all(is_component) {
            let lower = path.to_ascii_lowercase();
            return Err(match lower != path && lower.split('/').all(is_component) {
                true => {
                    invalid(&format!("invalid reference format: repository name ({path}) must be lowercase"))
                }
                false => malformed(),
            });
        }
        let tag = if tag.is_empty() && digest.is_empty() { "latest" } else { tag };
        Ok(Reference {
            repository: format!("{domain}/{path}"),
            tag: tag.to_owned(),
            digest: digest.to_owned(),
        })
    }

    /// How well a name of the store means this image: `None` not at all, else the more the better. The name's tag may end
    /// with `*`.
    ///
    /// A digest asks for certain bytes. It is met by a name with the same digest and by nothing else.
    pub fn fit(&self, name: &str) -> Option<usize> {
        if let Some((repository, digest)) = name.split_once('@') {
            let same = !self.digest.is_empty() && self.repository == repository && self.digest == digest;
            return same.then_some(usize::MAX);
        }
        let (repository, tag) = name.rsplit_once(':')?;
        let fits = match tag.strip_suffix('*') {
            Some(start) => self.tag.starts_with(start).then_some(start.len()),
            None => (self.tag == tag).then_some(usize::MAX),
        };
        fits.filter(|_| self.digest.is_empty() && self.repository == repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if !self.tag.is_empty() {
            write!(f, ":{}", self.tag)?;
        }
        if !self.digest.is_empty() {
            write!(f, "@{}", self.digest)?;
        }
        Ok(())
    }
}

/// A registry is known by a dot, a port or a capital letter; anything else before a slash belongs to the path.
fn is_domain(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let looks_so =
        text.contains(['.', ':']) || text == "localhost" || text.bytes().any(|b| b.is_ascii_uppercase());
    looks_so && host.split('.').all(is_label) && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
}

/// Lower-case letters and digits with single separators between them: `.`, `_`, `__` or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators = text.split(|c: char| c.is_ascii() && is_word(c as u8)).filter(|part| !part.is_empty());
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| is_word(*byte)))
        && separators
            .into_iter()
            .all(|part| matches!(part, "." | "_" | "__") || part.bytes().all(|b| b == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        let is_algorithm = algorithm.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && algorithm.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-' | b'_'));
        is_algorithm && hex.len() >= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (written, meant) in [
            ("nginx", "docker.io/library/nginx:latest".to_owned()),
            ("nginx:1.7.9", "docker.io/library/nginx:1.7.9".to_owned()),
            ("bitnami/etcd:3.5", "docker.io/bitnami/etcd:3.5".to_owned()),
            ("index.docker.io/nginx", "docker.io/library/nginx:latest".to_owned()),
            ("quay.io/coreos/etcd:v3.5.1", "quay.io/coreos/etcd:v3.5.1".to_owned()),
            ("localhost/x", "localhost/x:latest".to_owned()),
            ("localhost:5000/a/b:c", "localhost:5000/a/b:c".to_owned()),
            (&format!("nginx@{digest}"), format!("docker.io/library/nginx@{digest}")),
            (&format!("nginx:1@{digest}"), format!("docker.io/library/nginx:1@{digest}")),
            ("a__b/c---d.e", "docker.io/a__b/c---d.e:latest".to_owned()),
        ] {
            assert_eq!(Reference::parse(written).unwrap().to_string(), meant, "{written}");
        }
    }

    #[test]
    fn what_names_no_image_is_refused() {
        for wrong in ["", ":x", "a b", "a..b", "a:", "a:-x", "a@sha256:1", "-a", "a/", "/a", "a//b", "é"] {
            let refused = Reference::parse(wrong).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!("couldn't parse image name {wrong:?}: invalid reference format")
            );
        }
        assert_eq!(
            Reference::parse("Nginx").unwrap_err().why,
            "invalid reference format: repository name (library/Nginx) must be lowercase"
        );
    }

    #[test]
    fn a_name_of_the_store_may_leave_the_tag_open_but_meets_no_digest() {
        let etcd = Reference::parse("quay.io/coreos/etcd:v3.5.12").unwrap();
        assert!(etcd.fit("quay.io/coreos/etcd:v3.5*") > etcd.fit("quay.io/coreos/etcd:v*"));
        assert!(etcd.fit("quay.io/coreos/etcd:v3.5.12") > etcd.fit("quay.io/coreos/etcd:v3.5*"));
        assert_eq!(etcd.fit("quay.io/coreos/etcd:v3.4*"), None);
        assert_eq!(etcd.fit("quay.io/coreos/etcd2:*"), None);
        let digest = format!("sha256:{}", "a".repeat(64));
        let exact = Reference::parse(&format!("nginx@{digest}")).unwrap();
        assert_eq!(exact.fit("docker.io/library/nginx:*"), None);
        assert!(exact.fit(&format!("docker.io/library/nginx@{digest}")).is_some());
    }
}
