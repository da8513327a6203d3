"""apps and batch."""
from .build import SELECTOR, container, create, obj, status, template, update, workload


def job(name="x", **spec):
    return obj("batch/v1", "Job", name, spec={"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}, **spec})


def cron(**spec):
    return obj("batch/v1", "CronJob", spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure", "containers": [container()]}}}}, **spec})


def change_image(stored):
    stored["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"
    return stored


def sts(**spec):
    return workload("StatefulSet", serviceName="x", **spec)


COMMON = []
for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
    low = kind.lower()
    COMMON += [
        create(f"{low}", workload(kind)),
        create(f"{low} status is dropped", {**workload(kind), "status": {"observedGeneration": 5}}),
        create(f"refused: {low} selector does not match", workload(kind, selector={"matchLabels": {"app": "y"}})),
        create(f"refused: {low} without selector", workload(kind, selector=None)),
        create(f"refused: {low} empty selector", workload(kind, selector={})),
        create(f"refused: {low} selector operator", workload(kind, selector={"matchExpressions": [{"key": "a", "operator": "Is"}]})),
        create(f"refused: {low} selector in without values", workload(kind, selector={"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "a", "operator": "In"}]})),
        create(f"refused: {low} restart policy", workload(kind, template=template(restartPolicy="Never"))),
        create(f"refused: {low} container without image", workload(kind, template=template({"name": "a"}))),
        create(f"refused: {low} name", workload(kind, name="A")),
        create(f"refused: {low} template labels", workload(kind, template=template(labels={"app": "x", "a": "b c"}))),
        update(low, workload(kind), {
            "nothing": {},
            "image": change_image,
            "selector": {"spec": {"selector": {"matchLabels": {"app": "y"}}, "template": {"metadata": {"labels": {"app": "y"}}}}},
            "selector mismatch": {"spec": {"template": {"metadata": {"labels": {"app": "z"}}}}},
            "labels": {"metadata": {"labels": {"a": "b"}}},
            "annotations": {"metadata": {"annotations": {"a": "b"}}},
            "status": {"status": {"observedGeneration": 5}},
            "revision history": {"spec": {"revisionHistoryLimit": 3}} if kind != "ReplicaSet" else {"spec": {"minReadySeconds": 3}},
        }),
    ]
    if kind != "DaemonSet":
        COMMON += [
            create(f"refused: {low} replicas", workload(kind, replicas=-1)),
            create(f"{low} zero replicas", workload(kind, replicas=0)),
        ]

CASES = COMMON + [
    create("deployment recreate", workload("Deployment", strategy={"type": "Recreate"})),
    create("deployment rolling values", workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0}}, revisionHistoryLimit=0, progressDeadlineSeconds=5, minReadySeconds=1)),
    create("deployment limits make no requests", workload("Deployment", template=template(container(resources={"limits": {"cpu": "1"}})))),
    create("refused: deployment recreate with rolling", workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
    create("refused: deployment strategy", workload("Deployment", strategy={"type": "Slow"})),
    create("refused: deployment both zero", workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    create("refused: deployment percent", workload("Deployment", strategy={"rollingUpdate": {"maxSurge": "a%"}})),
    create("refused: deployment unavailable above all", workload("Deployment", strategy={"rollingUpdate": {"maxUnavailable": "101%"}})),
    create("refused: deployment deadline", workload("Deployment", progressDeadlineSeconds=5, minReadySeconds=10)),
    create("refused: deployment history", workload("Deployment", revisionHistoryLimit=-1)),
    update("deployment scale", workload("Deployment"), {"replicas": {"spec": {"replicas": 3}}, "strategy": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}, "replicas negative": {"spec": {"replicas": -1}}}),
    status("deployment", workload("Deployment"), {"replicas": {"status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}},
        "ready above replicas": {"status": {"replicas": 1, "readyReplicas": 2}}, "negative": {"status": {"replicas": -1}}}),
    status("replicaset", workload("ReplicaSet"), {"replicas": {"status": {"replicas": 2, "readyReplicas": 1}}, "ready above replicas": {"status": {"replicas": 1, "readyReplicas": 2}}}),
    update("replicaset scale", workload("ReplicaSet"), {"replicas": {"spec": {"replicas": 3}}}),
    create("statefulset claims", sts(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}])),
    create("statefulset on delete", sts(updateStrategy={"type": "OnDelete"}, podManagementPolicy="Parallel")),
    create("statefulset rolling given", sts(updateStrategy={"type": "RollingUpdate"})),
    create("statefulset partition", sts(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})),
    create("statefulset ordinals", sts(ordinals={"start": 3})),
    create("refused: statefulset policy", sts(podManagementPolicy="Wild")),
    create("refused: statefulset strategy", sts(updateStrategy={"type": "Slow"})),
    create("refused: statefulset partition", sts(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": -1}})),
    create("refused: statefulset on delete with rolling", sts(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}})),
    create("refused: statefulset retention", sts(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Maybe"})),
    create("refused: statefulset ordinals", sts(ordinals={"start": -3})),
    update("statefulset spec", sts(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]), {
        "replicas": {"spec": {"replicas": 5}},
        "service name": {"spec": {"serviceName": "y"}},
        "policy": {"spec": {"podManagementPolicy": "Parallel"}},
        "claims": {"spec": {"volumeClaimTemplates": []}},
        "retention": {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}},
        "min ready": {"spec": {"minReadySeconds": 5}},
        "ordinals": {"spec": {"ordinals": {"start": 1}}},
        "strategy": {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
    }),
    status("statefulset", sts(), {"replicas": {"status": {"replicas": 2, "readyReplicas": 1, "availableReplicas": 0}}, "ready above replicas": {"status": {"replicas": 1, "readyReplicas": 2}}}),
    create("daemonset on delete", workload("DaemonSet", updateStrategy={"type": "OnDelete"})),
    create("daemonset surge", workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})),
    create("refused: daemonset both zero", workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    create("refused: daemonset strategy", workload("DaemonSet", updateStrategy={"type": "Slow"})),
    create("refused: daemonset min ready", workload("DaemonSet", minReadySeconds=-1)),
    status("daemonset", workload("DaemonSet"), {"numbers": {"status": {"desiredNumberScheduled": 2, "numberReady": 1}}, "negative": {"status": {"numberReady": -1}}}),
    create("controller revision", obj("apps/v1", "ControllerRevision", revision=1, data={"a": {"b": 1}})),
    create("refused: controller revision without data", obj("apps/v1", "ControllerRevision", revision=1)),
    create("refused: controller revision negative", obj("apps/v1", "ControllerRevision", revision=-1, data={"a": 1})),
    update("controller revision", obj("apps/v1", "ControllerRevision", revision=1, data={"a": 1}), {"data": {"data": {"a": 2}}, "revision": {"revision": 2}}),
    # Jobs
    create("job", job()),
    create("job labels", job(template={"metadata": {"labels": {"z": "1", "a": "2"}}, "spec": {"restartPolicy": "Never", "containers": [container()]}})),
    create("job completions", job(completions=5)),
    create("job parallelism", job(parallelism=3)),
    create("job indexed", job(completions=3, parallelism=2, completionMode="Indexed")),
    create("job per index", job(completions=3, completionMode="Indexed", backoffLimitPerIndex=1, maxFailedIndexes=2)),
    create("job suspended", job(suspend=True, backoffLimit=0, activeDeadlineSeconds=10, ttlSecondsAfterFinished=5)),
    create("job failure policy", job(podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}, {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}]})),
    create("job success policy", job(completions=3, completionMode="Indexed", successPolicy={"rules": [{"succeededIndexes": "0"}]})),
    create("job manual selector", job(manualSelector=True, selector={"matchLabels": {"a": "b"}}, template={"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [container()]}})),
    create("refused: job selector", job(selector={"matchLabels": {"a": "b"}})),
    create("refused: job restart always", job(template={"spec": {"restartPolicy": "Always", "containers": [container()]}})),
    create("refused: job restart default", job(template={"spec": {"containers": [container()]}})),
    create("refused: job parallelism", job(parallelism=-1)),
    create("refused: job completions", job(completions=-1)),
    create("refused: job backoff", job(backoffLimit=-1)),
    create("refused: job deadline", job(activeDeadlineSeconds=-1)),
    create("refused: job ttl", job(ttlSecondsAfterFinished=-1)),
    create("refused: job mode", job(completionMode="Random")),
    create("refused: job indexed without completions", job(completionMode="Indexed", parallelism=1)),
    create("refused: job manual selector missing", job(manualSelector=True)),
    create("refused: job per index not indexed", job(backoffLimitPerIndex=1)),
    create("refused: job name", job(name="A")),
    update("job", job(completions=3, parallelism=2, completionMode="Indexed"), {
        "nothing": {},
        "parallelism": {"spec": {"parallelism": 5}},
        "completions": {"spec": {"completions": 4}},
        "completions and parallelism": {"spec": {"completions": 4, "parallelism": 4}},
        "image": change_image,
        "selector": {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        "mode": {"spec": {"completionMode": "NonIndexed"}},
        "suspend": {"spec": {"suspend": True}},
        "backoff": {"spec": {"backoffLimit": 3}},
        "ttl": {"spec": {"ttlSecondsAfterFinished": 3}},
        "deadline": {"spec": {"activeDeadlineSeconds": 30}},
        "manual selector": {"spec": {"manualSelector": True}},
        "managed by": {"spec": {"managedBy": "a.b/c"}},
        "status": {"status": {"active": 5}},
        "labels": {"metadata": {"labels": {"a": "b"}}},
    }),
    update("suspended job", job(suspend=True), {
        "node selector": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
        "image": change_image,
        "resume": {"spec": {"suspend": False}},
    }),
    create("cron job", cron()),
    create("cron job values", cron(suspend=True, concurrencyPolicy="Forbid", successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0, startingDeadlineSeconds=5, timeZone="Etc/UTC")),
    create("cron job at", cron(schedule="@hourly")),
    create("refused: cron job schedule", cron(schedule="whenever")),
    create("refused: cron job without schedule", cron(schedule="")),
    create("refused: cron job policy", cron(concurrencyPolicy="Maybe")),
    create("refused: cron job zone", cron(timeZone="Nowhere/Land")),
    create("refused: cron job TZ in schedule", cron(schedule="TZ=UTC 0 * * * *")),
    create("refused: cron job limits", cron(successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1, startingDeadlineSeconds=-1)),
    create("refused: cron job restart policy", cron(jobTemplate={"spec": {"template": {"spec": {"restartPolicy": "Always", "containers": [container()]}}}})),
    create("refused: cron job name long", obj("batch/v1", "CronJob", "a" * 53, spec=cron()["spec"])),
    update("cron job", cron(), {"schedule": {"spec": {"schedule": "0 * * * *"}}, "suspend": {"spec": {"suspend": True}}, "bad schedule": {"spec": {"schedule": "x"}}, "labels": {"metadata": {"labels": {"a": "b"}}}}),
]
