//! Images: which programs a container's image means on this machine.
//!
//! ```text
//! "nginx:1.7.9" ─► Reference docker.io/library/nginx:1.7.9 ─► a folder of the store ─► Image (root, entrypoint, …)
//! ```
//!
//! There is no registry to pull from. An image is one of three things:
//!
//! 1. `busybox`, `alpine`, `debian` and `ubuntu` of any tag are the programs of this machine ([`Root::Host`]).
//! 2. A folder of the store, which is `$WINDLASS_CACHE/images`. Each holds an `image.json` ([`Manifest`]) and mostly a
//!    `root` folder with all files of the image. `tools/setup nginx postgres etcd-3.4` makes such folders from
//!    packages, `windlass image load` from an archive, `windlass image add` from programs.
//! 3. Missing, which the message of [`Unresolved::Missing`] says what to do about.

mod archive;
mod change;
mod layer;
mod manifest;
mod reference;
mod rooted;
mod store;
#[cfg(test)]
mod tests;

pub use archive::BadArchive;
pub use change::Unchanged;
pub use manifest::{Bind, Image, Manifest, Root};
pub use reference::{Invalid, Reference};
pub use store::{Images, Listed, Unresolved};
