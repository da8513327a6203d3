package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

func (w *world) dialer(carrier, pod string) (httpstream.Dialer, error) {
	request := w.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod)
	place := request.SubResource("portforward").URL()
	if carrier == "spdy" {
		transport, upgrader, err := spdy.RoundTripperFor(w.config)
		if err != nil {
			return nil, err
		}
		return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, place), nil
	}
	place, err := url.Parse(place.String())
	if err != nil {
		return nil, err
	}
	return portforward.NewSPDYOverWebsocketDialer(place, w.config)
}

// forwarding is a forward that is under way.
type forwarding struct {
	ports  []portforward.ForwardedPort
	stop   chan struct{}
	failed chan error
	errors *bytes.Buffer
}

func (w *world) forward(carrier, pod string, ports ...string) (*forwarding, error) {
	dialer, err := w.dialer(carrier, pod)
	if err != nil {
		return nil, err
	}
	f := &forwarding{stop: make(chan struct{}), failed: make(chan error, 1), errors: &bytes.Buffer{}}
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, ports, f.stop, ready, io.Discard, f.errors)
	if err != nil {
		return nil, err
	}
	go func() { f.failed <- forwarder.ForwardPorts() }()
	select {
	case err := <-f.failed:
		return nil, err
	case <-ready:
	}
	f.ports, err = forwarder.GetPorts()
	return f, err
}

func (f *forwarding) dial(index int) (net.Conn, error) {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", f.ports[index].Local))
	if err == nil {
		err = connection.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return connection, err
}

// listens says whether a port of a pod answers.
func (w *world) listens(pod string, port int) bool {
	f, err := w.forward("spdy", pod, fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	defer close(f.stop)
	return f.echo(0, "x") == "x"
}

// echo says something, hangs up its side, and hears what comes back.
func (f *forwarding) echo(index int, text string) string {
	connection, err := f.dial(index)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	go func() {
		io.WriteString(connection, text)
		connection.(*net.TCPConn).CloseWrite()
	}()
	heard, err := io.ReadAll(connection)
	if err != nil {
		return err.Error()
	}
	return string(heard)
}

// forwards reaches ports of pods.
func (w *world) forwards(carrier string) {
	f, err := w.forward(carrier, "server", ":7001", ":7009")
	if err != nil {
		say(carrier, "a forwarded port", "%v", err)
		return
	}
	say(carrier, "a forwarded port", "%q", f.echo(0, "hello"))
	long := strings.Repeat("0123456789abcdef", 1<<14)
	say(carrier, "a quarter of a MiB", "same %t", f.echo(0, long) == long)
	var all sync.WaitGroup
	same := make([]bool, 8)
	for index := range same {
		all.Go(func() {
			text := strings.Repeat(fmt.Sprint(index), 10_000)
			same[index] = f.echo(0, text) == text
		})
	}
	all.Wait()
	say(carrier, "eight connections at once", "%v", same)
	// Nobody listens there; the forward as a whole is given up by the client then.
	say(carrier, "a port where nobody listens", "%q", f.echo(1, "hello"))
	outcome := "it goes on"
	select {
	case err := <-f.failed:
		outcome = fmt.Sprint(err)
	case <-time.After(time.Second):
		close(f.stop)
		<-f.failed
	}
	say(carrier, "after that", "%s; %s", outcome, plain(f.errors.String()))

	_, err = w.forward(carrier, "missing", ":80")
	say(carrier, "ports of no pod", "%s", plain(fmt.Sprint(err)))
}

// What is not the same in two clusters: ports, ids of pods, and how a runtime says that nobody listens.
var patterns = [][2]string{
	{`\d+ -> `, "<port> -> "},
	{`to pod [0-9a-f-]+, uid :.*`, "to pod <id>: <why>"},
	{`127\.0\.0\.1:\d+`, "<address>"},
}

func plain(text string) string {
	for _, pattern := range patterns {
		text = regexp.MustCompile(pattern[0]).ReplaceAllString(text, pattern[1])
	}
	return strings.TrimSpace(text)
}
