package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// kubectl runs commands of people, as they come and with WebSockets switched off.
func (w *world) kubectl() {
	program := os.Getenv("KUBECTL")
	if program == "" {
		return
	}
	kept, err := os.MkdirTemp("", "windlass-streams-")
	if err != nil {
		say("kubectl", "a folder", "%v", err)
		return
	}
	defer os.RemoveAll(kept)
	for _, websockets := range []string{"true", "false"} {
		carrier := "kubectl, websockets " + websockets
		run := func(stdin string, words ...string) string {
			command := exec.Command(program, append([]string{"--namespace", namespace}, words...)...)
			command.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+websockets,
				"KUBECTL_PORT_FORWARD_WEBSOCKETS="+websockets)
			command.Stdin = strings.NewReader(stdin)
			if words[0] == "debug" {
				command.Stdin = io.MultiReader(command.Stdin, pause{})
			}
			var stdout, stderr bytes.Buffer
			command.Stdout, command.Stderr = &stdout, &stderr
			outcome := "ended well"
			if err := command.Run(); err != nil {
				outcome = err.Error()
			}
			return fmt.Sprintf("%q and %q, %s", told(stdout.String()), told(stderr.String()), outcome)
		}
		debugger := "debugger-" + websockets
		folder, there := "/tmp/there-"+websockets, "/tmp/back-"+websockets
		here := filepath.Join(kept, websockets)
		steps := []struct {
			stdin string
			words []string
		}{
			{"", []string{"exec", "target", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 3"}},
			{"hello\n", []string{"exec", "-i", "target", "-c", "main", "--", "cat"}},
			{"", []string{"exec", "target", "-c", "main", "--", "sh", "-c", "mkdir -p " + folder + "; echo content > " + folder + "/file"}},
			{"", []string{"cp", "target:" + folder[1:], here, "-c", "main"}},
			{"", []string{"cp", here, "target:" + there, "-c", "main"}},
			{"", []string{"exec", "target", "-c", "main", "--", "cat", there + "/file"}},
			{"through run\n", []string{"run", "once", "--image=busybox:1.36", "-i", "--rm", "--restart=Never", "--quiet", "--", "cat"}},
			{"hello\n", []string{"debug", "-i", "target", "--image=busybox:1.36", "--profile=general", "-c", debugger, "--", "sh", "-c", "read line; echo heard $line; sleep 2"}},
			{"", []string{"logs", "target", "-c", debugger}},
			{"", []string{"debug", "target", "--image=busybox:1.36", "--profile=general", "--target=main", "-c", debugger + "-targeted", "--", "sh", "-c", "ps -o args | grep '[s]leep 100000'; ls /proc/1/root" + there}},
			{"", []string{"logs", "-f", "target", "-c", debugger + "-targeted", "--pod-running-timeout=30s"}},
			{"", []string{"attach", "missing"}},
		}
		for _, step := range steps {
			said := ""
			// A container that was just asked for has no log yet.
			for try := 0; try < 50; try++ {
				said = run(step.stdin, step.words...)
				if step.words[0] != "logs" || !strings.Contains(said, "waiting to start") {
					break
				}
				time.Sleep(200 * time.Millisecond)
			}
			say(carrier, strings.ReplaceAll(strings.Join(step.words, " "), kept, "<folder>"), "%s", said)
		}
	}
}

// pause is a stdin that says nothing for a while and then ends. containerd lets go of the output of whoever has no more to
// say, unless the container asks for one stdin only, as those of kubectl debug do not: what they answer to the last line may
// come too late.
type pause struct{}

func (pause) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, io.EOF
}

// Hints, of which some come only when there is time for them.
var hints = regexp.MustCompile(`(?m)^(All commands and output|If you don't see|Session ended).*\n`)

func told(text string) string {
	return hints.ReplaceAllString(text, "")
}
