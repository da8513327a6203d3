//! The administrator's kubeconfig.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::credentials::Credentials;

/// A kubeconfig for the administrator of the server at `url`: by certificate in the context `windlass`, which is the
/// current one, and by token in `windlass-token`.
pub fn kubeconfig(url: &str, credentials: &Credentials) -> String {
    let authority = STANDARD.encode(&credentials.authority);
    let certificate = STANDARD.encode(&credentials.admin_certificate);
    let key = STANDARD.encode(&credentials.admin_key);
    let token = &credentials.admin_token;
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: windlass
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: windlass-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
- name: windlass-admin-token
  user:
    token: {token}
contexts:
- name: windlass
  context:
    cluster: windlass
    user: windlass-admin
- name: windlass-token
  context:
    cluster: windlass
    user: windlass-admin-token
current-context: windlass
"
    )
}

/// Writes a file that only its owner may read, in one step: whoever reads meanwhile sees the old one or the new one.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new: PathBuf = path.with_file_name(name);
    // One that an earlier process of this number left behind. A link that somebody put there is not followed.
    let _ = std::fs::remove_file(&new);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&new).and_then(|mut file| file.write_all(content));
    written.and_then(|()| std::fs::rename(&new, path)).inspect_err(|_| {
        // The error to report is the first one.
        let _ = std::fs::remove_file(&new);
    })
}
