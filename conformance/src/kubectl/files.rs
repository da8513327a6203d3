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
    (
        "limits.yaml",
        "apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: range\nspec:\n  limits:\n  - type: Container\n    default: {cpu: 500m}\n    defaultRequest: {cpu: 250m}\n    max: {cpu: '1'}\n    min: {cpu: 50m}\n    maxLimitRequestRatio: {cpu: '4'}\n  - type: Pod\n    max: {cpu: '2'}\n  - type: PersistentVolumeClaim\n    min: {storage: 1Gi}\n    max: {storage: 10Gi}\n",
    ),
    ("node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: NAMESPACE-node\n"),
    (
        "event.yaml",
        "apiVersion: v1\nkind: Event\nmetadata:\n  name: one.started\ninvolvedObject:\n  apiVersion: v1\n  kind: Pod\n  name: one\n  namespace: NAMESPACE\ntype: Normal\nreason: Started\nmessage: it runs\ncount: 1\nfirstTimestamp: 2024-01-01T00:00:00Z\nlastTimestamp: 2024-01-01T00:00:00Z\nsource:\n  component: hand\n",
    ),
    (
        "request.yaml",
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata:\n  name: NAMESPACE-request\nspec:\n  signerName: example.com/signer\n  expirationSeconds: 86400\n  usages: [digital signature, client auth]\n  request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZU1JR0ZBZ0VBTUNNeERqQU1CZ05WQkFvTUJXZHliM1Z3TVJFd0R3WURWUVFEREFoemIyMWxZbTlrZVRCWgpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQUJOdHIwVGN0SjlISjM1NXlOWGlTQ1lGY3hSTGgvdlVOCldOYU5WeDdLWFZOcjh4ZmpoRy85UnR0YkhUMUpQdGh4cEFEWk1zTi9GVDUyaWNUMHhENHIreFNnQURBS0JnZ3EKaGtqT1BRUURBZ05JQURCRkFpQTVpeEpCK3dtd2w5bTBBbElnQnRwd1hwVGNqVysvUDZrR0VLKzNxU05VWWdJaApBTXR2WG8xWnVPaERTdm8wbUNibk1qOWlXVjBGS2ZDbWhKNC9qaDJNOEJubgotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K\n",
    ),
    (
        "roles.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: reconciled\n  labels: {a: b}\nrules:\n- apiGroups: ['']\n  resources: [pods, services]\n  verbs: [get, list]\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: reconciled\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: reconciled\nsubjects:\n- kind: User\n  apiGroup: rbac.authorization.k8s.io\n  name: one\n",
    ),
    (
        "roles2.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: reconciled\nrules:\n- apiGroups: ['']\n  resources: [pods]\n  verbs: [get, watch]\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: reconciled\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: view\nsubjects:\n- kind: ServiceAccount\n  name: robot\n  namespace: NAMESPACE\n",
    ),
    (
        "configmap.json",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"raw\"},\"data\":{\"a\":\"b\"}}",
    ),
];
