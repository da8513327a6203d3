//! The files that the commands name; `NAMESPACE` in them is the namespace of the script.

/// Names and contents.
pub(super) const FILES: &[(&str, &str)] = &[
    (
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  labels: {app: one}\nspec:\n  containers:\n  - name: c\n    image: busybox:1\n    ports:\n    - containerPort: 80\n",
    ),
    (
        "pod2.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  labels: {app: one}\nspec:\n  containers:\n  - name: c\n    image: busybox:2\n",
    ),
    (
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: two\nspec:\n  selector:\n    matchLabels: {app: two}\n  template:\n    metadata:\n      labels: {app: two}\n    spec:\n      containers:\n      - name: c\n        image: busybox:1\n        env:\n        - {name: A, value: '1'}\n",
    ),
    (
        "deployment2.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: two\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {app: two}\n  template:\n    metadata:\n      labels: {app: two}\n    spec:\n      containers:\n      - name: c\n        image: busybox:2\n",
    ),
    ("configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  a: b\n"),
    ("configmap2.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  a: c\n"),
    (
        "configmap3.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  replaced: 'true'\n",
    ),
    ("node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: NAMESPACE-node\n"),
    (
        "event.yaml",
        "apiVersion: v1\nkind: Event\nmetadata:\n  name: one.started\ninvolvedObject:\n  apiVersion: v1\n  kind: Pod\n  name: one\n  namespace: NAMESPACE\ntype: Normal\nreason: Started\nmessage: it runs\ncount: 1\nfirstTimestamp: 2024-01-01T00:00:00Z\nlastTimestamp: 2024-01-01T00:00:00Z\nsource:\n  component: hand\n",
    ),
];
