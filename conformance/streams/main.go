// What a program in Go does with streams into pods, by client-go: over SPDY and over WebSocket, in a cluster that
// KUBECONFIG names. It prints what it sees, and nothing that could differ between two clusters that do the same.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
)

const namespace = "streams"

// world is the cluster, and what every part needs to ask it.
type world struct {
	config *rest.Config
	client kubernetes.Interface
}

func main() {
	// What the libraries log has times and addresses in it.
	klog.LogToStderr(false)
	klog.SetOutput(os.Stderr)
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	w := &world{config, client}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	for _, carrier := range carriers {
		w.commands(ctx, carrier)
		w.attachments(ctx, carrier)
		w.forwards(carrier)
	}
	w.kubectl()
	return client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
}

// prepare makes the pods that everything is done with.
func (w *world) prepare(ctx context.Context) error {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The account of a namespace comes a moment after it.
	account := func(ctx context.Context) (bool, error) {
		_, err := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, account); err != nil {
		return err
	}
	if err := w.start(ctx, "target", corev1.Container{Command: shell("exec sleep 100000")}); err != nil {
		return err
	}
	waits := shell("until [ -x /tmp/echo ]; do sleep 0.1; done; exec /tmp/echo")
	if err := w.start(ctx, "server", corev1.Container{Command: waits}); err != nil {
		return err
	}
	return w.install(ctx)
}

// install brings the server into its pod, as a user would where no image can be made: a few MB of input.
func (w *world) install(ctx context.Context) error {
	program, err := os.Open(os.Getenv("ECHO_SERVER"))
	if err != nil {
		return err
	}
	defer program.Close()
	script := "cat > /tmp/coming && chmod +x /tmp/coming && mv /tmp/coming /tmp/echo"
	options := &corev1.PodExecOptions{Command: shell(script), Stdin: true}
	if err := w.stream(ctx, "spdy", w.exec("server", options), remotecommand.StreamOptions{Stdin: program}); err != nil {
		return err
	}
	// It listens a moment after it runs.
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return w.listens("server", 7001), nil
	})
}

func shell(script string) []string {
	return []string{"sh", "-c", script}
}

// start makes a pod of one container and waits until it runs.
func (w *world) start(ctx context.Context, name string, container corev1.Container) error {
	container.Name, container.Image = "main", "busybox:1.36"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{container},
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	pods := w.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, nil
	})
}

// remove deletes a pod and waits until it is gone.
func (w *world) remove(ctx context.Context, name string) error {
	pods := w.client.CoreV1().Pods(namespace)
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// say prints what came of something.
func say(carrier, what, format string, values ...any) {
	fmt.Printf("%s, %s: %s\n", carrier, what, fmt.Sprintf(format, values...))
}
