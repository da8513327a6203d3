//! Programs in namespaces of their own, as root or as an ordinary user: mounts, processes, networks.
