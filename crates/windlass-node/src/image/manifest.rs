//! What an image is.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An image, ready to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its id: `sha256:` and the digest of what describes it.
    pub id: String,
    /// The full name it was asked for by.
    pub name: String,
    /// Its files.
    pub root: Root,
    /// Files of this machine that are added to them, read-only.
    pub binds: Vec<Bind>,
    /// The program that the container's arguments go to.
    pub entrypoint: Vec<String>,
    /// The arguments where the container gives none.
    pub cmd: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: String,
    /// The user, as `uid`, `name`, `uid:gid` or `name:group`; empty is root.
    pub user: String,
    /// The signal that asks its program to end, by name or number; empty is SIGTERM.
    pub stop_signal: String,
}

/// The files of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The programs of this machine.
    Host,
    /// This folder is the whole root. Containers share it and must not write to it.
    Folder(PathBuf),
}

/// A file or folder of this machine, and where a container finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// On this machine.
    pub source: PathBuf,
    /// In the container.
    pub target: String,
}

/// What `image.json` says. What a later version has to say beside it is passed over: stores are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The full names it goes by: `docker.io/library/nginx:*`. A tag may end with `*`.
    pub names: Vec<String>,
    /// The folder of its files, beside this file; without one they are the programs of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// Files of this machine that are added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Bind>,
    /// The program.
    pub entrypoint: Vec<String>,
    /// Its arguments where a container gives none.
    pub cmd: Vec<String>,
    /// Environment variables, `NAME=value`.
    pub env: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// The user.
    pub user: String,
    /// The signal that asks its program to end.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stop_signal: String,
    /// Its id, where it has one of its own: an archive's configuration digest.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Where it came from, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
}

impl Manifest {
    /// The image that this describes. `folder` is where it lies, `digest` that of its text.
    pub(super) fn image(&self, folder: &Path, name: &str, digest: &str) -> Image {
        let pair = |variable: &String| {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            (name.to_owned(), value.to_owned())
        };
        Image {
            id: if self.id.is_empty() { format!("sha256:{digest}") } else { self.id.clone() },
            name: name.to_owned(),
            root: self.root.as_ref().map_or(Root::Host, |root| Root::Folder(folder.join(root))),
            binds: self.binds.clone(),
            entrypoint: self.entrypoint.clone(),
            cmd: self.cmd.clone(),
            env: self.env.iter().map(pair).collect(),
            cwd: if self.cwd.is_empty() { "/".to_owned() } else { self.cwd.clone() },
            user: self.user.clone(),
            stop_signal: self.stop_signal.clone(),
        }
    }

    /// What the images are that are made of this machine's programs.
    pub(super) fn of_this_machine() -> Vec<Manifest> {
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let shell = |name: &str, shell: &str| Manifest {
            names: vec![format!("docker.io/library/{name}:*")],
            cmd: vec![shell.to_owned()],
            env: vec![path.to_owned()],
            from: "the programs of this machine".to_owned(),
            ..Manifest::default()
        };
        vec![
            shell("busybox", "sh"),
            shell("alpine", "/bin/sh"),
            shell("debian", "bash"),
            shell("ubuntu", "/bin/bash"),
        ]
    }
}
