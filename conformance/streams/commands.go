package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// The ways in which streams are carried.
var carriers = []string{"spdy", "websocket"}

// executor runs a request for a program over a carrier. SPDY asks by POST, WebSocket by GET.
func (w *world) executor(carrier string, request *rest.Request) (remotecommand.Executor, error) {
	if carrier == "spdy" {
		return remotecommand.NewSPDYExecutor(w.config, http.MethodPost, request.URL())
	}
	return remotecommand.NewWebSocketExecutor(w.config, http.MethodGet, request.URL().String())
}

func (w *world) exec(pod string, options *corev1.PodExecOptions) *rest.Request {
	request := w.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod)
	return request.SubResource("exec").VersionedParams(options, scheme.ParameterCodec)
}

func (w *world) attach(pod string, options *corev1.PodAttachOptions) *rest.Request {
	request := w.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod)
	return request.SubResource("attach").VersionedParams(options, scheme.ParameterCodec)
}

// ended says how a program, or the attempt to run one, ended.
func ended(err error) string {
	var exit exec.CodeExitError
	switch {
	case err == nil:
		return "ended well"
	case errors.As(err, &exit):
		return fmt.Sprintf("exit code %d", exit.Code)
	case strings.Contains(err.Error(), "executable file not found"):
		return "no such program"
	case strings.Contains(err.Error(), "you must specify at least 1 of stdin, stdout, stderr"):
		// kube-apiserver, which speaks SPDY to kubelets for clients that speak WebSocket, has accepted them by then.
		return "refused: nothing was asked for"
	default:
		return "refused: " + err.Error()
	}
}

// stream runs it, and gives up after a while.
func (w *world) stream(ctx context.Context, carrier string, request *rest.Request, options remotecommand.StreamOptions) error {
	executor, err := w.executor(carrier, request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return executor.StreamWithContext(ctx, options)
}

// commands runs programs.
func (w *world) commands(ctx context.Context, carrier string) {
	run := func(what, stdin string, options corev1.PodExecOptions, script ...string) {
		var stdout, stderr bytes.Buffer
		streams := remotecommand.StreamOptions{}
		if options.Stdin = stdin != ""; options.Stdin {
			streams.Stdin = strings.NewReader(stdin)
		}
		if options.Stdout {
			streams.Stdout = &stdout
		}
		if options.Stderr {
			streams.Stderr = &stderr
		}
		options.Command = script
		err := w.stream(ctx, carrier, w.exec("target", &options), streams)
		say(carrier, what, "%q and %q, %s", stdout.String(), stderr.String(), ended(err))
	}
	both := corev1.PodExecOptions{Stdout: true, Stderr: true}
	run("both outputs", "", both, shell("echo out; echo err >&2")...)
	run("exit code", "", both, shell("echo before; exit 7")...)
	run("killed", "", both, shell("kill -9 $$")...)
	run("input", "one\ntwo\n", both, "cat")
	run("input that is not read", strings.Repeat("x", 100_000), both, "true")
	run("only output", "", corev1.PodExecOptions{Stdout: true}, shell("echo out; echo err >&2")...)
	run("only errors", "", corev1.PodExecOptions{Stderr: true}, shell("echo out; echo err >&2")...)
	run("nothing of it", "", corev1.PodExecOptions{}, "true")
	run("no such program", "", both, "nosuchprogram")
	run("no such container", "", corev1.PodExecOptions{Stdout: true, Container: "nothing"}, "true")
	run("words with spaces", "", both, "printf", "%s|", "a b", "", "c&d=e", "ü")
	w.much(ctx, carrier)
	w.terminal(ctx, carrier)
	w.left(ctx, carrier)
}

// much sends a MiB each way.
func (w *world) much(ctx context.Context, carrier string) {
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	options := &corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true}
	sum := sha256.New()
	streams := remotecommand.StreamOptions{Stdin: bytes.NewReader(sent), Stdout: sum}
	err := w.stream(ctx, carrier, w.exec("target", options), streams)
	say(carrier, "a MiB there and back", "same %t, %s", bytes.Equal(sum.Sum(nil), sum256(sent)), ended(err))
}

func sum256(of []byte) []byte {
	sum := sha256.Sum256(of)
	return sum[:]
}

// terminal runs a shell on a terminal whose size changes.
func (w *world) terminal(ctx context.Context, carrier string) {
	sizes := make(sizes, 1)
	sizes <- remotecommand.TerminalSize{Width: 100, Height: 30}
	typed, keyboard := io.Pipe()
	screen := &screen{}
	script := "until [ \"$(stty size 2>/dev/null)\" = '30 100' ]; do sleep 0.1; done; echo first; read line; " +
		"until [ \"$(stty size 2>/dev/null)\" = '40 120' ]; do sleep 0.1; done; echo second $line; exit 3"
	options := &corev1.PodExecOptions{Command: shell(script), Stdin: true, Stdout: true, TTY: true}
	streams := remotecommand.StreamOptions{Stdin: typed, Stdout: screen, Tty: true, TerminalSizeQueue: sizes}
	go func() {
		screen.until("first")
		sizes <- remotecommand.TerminalSize{Width: 120, Height: 40}
		fmt.Fprint(keyboard, "typed\r")
	}()
	err := w.stream(ctx, carrier, w.exec("target", options), streams)
	close(sizes)
	keyboard.Close()
	say(carrier, "a terminal", "%q, %s", screen.text(), ended(err))
}

// left goes away from a program that would run on. Whether it does is the runtime's affair; the next one is heard.
func (w *world) left(ctx context.Context, carrier string) {
	screen := &screen{}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		screen.until("tick")
		cancel()
	}()
	options := &corev1.PodExecOptions{Command: shell("while echo tick; do sleep 1; done"), Stdout: true}
	err := w.stream(ctx, carrier, w.exec("target", options), remotecommand.StreamOptions{Stdout: screen})
	say(carrier, "left", "heard %t, %s", strings.HasPrefix(screen.text(), "tick\n"), ended(err))
}

// attachments listens and talks to the programs that containers are.
func (w *world) attachments(ctx context.Context, carrier string) {
	script := "while read line; do echo heard $line; done; echo end; exit 4"
	talk := func(what string, container corev1.Container) {
		if err := w.start(ctx, "listener", container); err != nil {
			say(carrier, what, "%v", err)
			return
		}
		screen := &screen{}
		typed, keyboard := io.Pipe()
		options := &corev1.PodAttachOptions{Stdin: true, Stdout: true, TTY: container.TTY}
		streams := remotecommand.StreamOptions{Stdin: typed, Stdout: screen, Tty: container.TTY}
		go func() {
			// What is typed before the terminal is there is echoed twice on some.
			time.Sleep(500 * time.Millisecond)
			fmt.Fprint(keyboard, "one\n")
			screen.until("heard one")
			fmt.Fprint(keyboard, "two\n")
			screen.until("heard two")
			if container.TTY {
				fmt.Fprint(keyboard, "\x04")
				return
			}
			keyboard.Close()
		}()
		err := w.stream(ctx, carrier, w.attach("listener", options), streams)
		pod, _ := w.client.CoreV1().Pods(namespace).Get(ctx, "listener", metav1.GetOptions{})
		for wait := 0; wait < 100 && pod.Status.Phase == corev1.PodRunning; wait++ {
			time.Sleep(100 * time.Millisecond)
			pod, _ = w.client.CoreV1().Pods(namespace).Get(ctx, "listener", metav1.GetOptions{})
		}
		say(carrier, what, "%q, %s, the pod has %s", screen.text(), ended(err), pod.Status.Phase)
		if err := w.remove(ctx, "listener"); err != nil {
			say(carrier, what, "%v", err)
		}
	}
	talk("attached", corev1.Container{Command: shell(script), Stdin: true, StdinOnce: true})
	talk("attached to a terminal", corev1.Container{Command: shell(script), Stdin: true, StdinOnce: true, TTY: true})

	streams := remotecommand.StreamOptions{Stdout: io.Discard}
	err := w.stream(ctx, carrier, w.attach("missing", &corev1.PodAttachOptions{Stdout: true}), streams)
	say(carrier, "attached to no pod", "%s", ended(err))
	err = w.stream(ctx, carrier, w.attach("target", &corev1.PodAttachOptions{Stdout: true, Container: "x"}), streams)
	say(carrier, "attached to no container", "%s", ended(err))
}

// sizes of a terminal.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

// screen keeps what is written.
type screen struct {
	lock sync.Mutex
	kept bytes.Buffer
}

func (s *screen) Write(bytes []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.kept.Write(bytes)
}

func (s *screen) text() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.kept.String()
}

// until waits for a text, for a while.
func (s *screen) until(text string) {
	for wait := 0; wait < 200 && !strings.Contains(s.text(), text); wait++ {
		time.Sleep(50 * time.Millisecond)
	}
}
