package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"strings"

	"sigs.k8s.io/yaml"
)

// written are documents with one peculiarity each.
var written = []string{
	"a: b\n", "- a\n- b\n", "a:\n- b\n- c: d\n  e: f\n", "{a: 1, b: [x, y]}", "a: |\n  x\n  y\n", "a: |-\n  x\n\n  y\n\n", "a: |+\n  x\n\n", "a: >\n  x\n  y\n\n  z\n", "a: >-\n  x\n   y\n",
	"a: \"x\\ty\\u00e9\\n\"", "a: 'it''s'", "a: 'x\n  y'", "a: x\n  y\n", "# c\na: b # c\n", "a: b#c\n", "a:\n", "a: ~\n", "---\na: b\n", "---\na: b\n...\n", "a: b\n---\nc: [\n", "%YAML 1.1\n---\na: b\n", "--- a\n",
	"a: &x {b: 1}\nc: *x\n", "a: &x 1\n*x : 2\n", "a: &x {b: 1}\nc: {<<: *x, b: 2}\n", "{a: &x {b: 1}, c: {b: 2, <<: *x}}\n", "{a: &x {b: 1}, d: &z {b: 3, e: 4}, c: {<<: [*x, *z]}}\n", "a: {<<: 1}\n", "a: {<<: [1]}\n", "a: {\"<<\": 1}\n",
	"a: 1\na: 2\n", "a: {b: 1, b: 2}\nb: 1\nb: 2\n", "1: a\n1: b\n", "true: a\nyes: b\n", "1.5: a\n", "1e30: a\n", "~: a\n", "null: a\n", "? a\n: b\n", "? [a]\n: b\n", "? {a: b}\n: c\n", "\"1\": a\n", "0x10: a\n",
	"a: !!str 1\n", "a: !!int \"1\"\n", "a: !!int x\n", "a: !!float 1\n", "a: !!bool yes\n", "a: !!null ''\n", "a: !!binary aGk=\n", "a: !!binary '!'\n", "a: !!timestamp 2001-01-01\n", "a: !foo 1\n", "a: ! 1\n", "a: !!seq [1]\n", "a: !!map {b: 1}\n", "a: !!str\n",
	"a: 1.0\n", "a: 1e3\n", "a: -0.0\n", "a: 9223372036854775807\n", "a: 18446744073709551616\n", "a: .inf\n", "a: 1_000\n", "a: 0777\n", "a: 0o7\n", "a: 08\n", "a: 1:30\n", "a: 2001-01-01\n", "a: 2001-01-01T00:00:00Z\n",
	"a: =\n", "a: <<\n", "a: -\n", "a: +\n", "a: .\n", "a: ...\n", "a: 0x\n", "a: 1e\n", "a: +1\n", "a: +.5\n", "a: 5.\n", "a: .5.\n", "a: 0b101\n", "a: -0x1f\n", "a: 1__0\n", "a: _1\n", "a: 1e400\n", "a: NaN\n", "a: Infinity\n", "a: nUll\n", "a: y\n", "a: N\n",
	"", "\n", "# c\n", "a", "1", "[]", "{}", "\"x\"", "\ufeffa: b\n", "a: b\r\nc: d\r\n", "a:   b   \n", "a : b\n", "\"a\" : b\n", "a: {b: , c: }\n", "[a, b, ]", "{a, b: }", "a: http://x:80/y\n", "a: x:y\n", "- - a\n  - b\n", "-   a: b\n    c: d\n",
}

// documents writes a YAML document, the JSON that Go makes of it (or `!` and the message), and what a strict reader adds.
func documents(out *bufio.Writer) {
	for _, text := range written {
		document(out, text)
	}
	r := rand.New(rand.NewSource(1))
	pieces := []string{"0", "1", "7", "8", "9", ".", "-", "+", "e", "E", "x", "b", "o", "_", ":", "f", "yes", "no", "inf", "nan", "~", "T", "Z", "null"}
	for range 400 {
		text := ""
		for range 1 + r.Intn(5) {
			text += pieces[r.Intn(len(pieces))]
		}
		document(out, "a: "+text+"\n")
	}
}

func document(out *bufio.Writer, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		log.Fatal(err)
	}
	result, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		result = []byte("!" + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	strict := ""
	if _, strictErr := yaml.YAMLToJSONStrict([]byte(text)); strictErr != nil && err == nil {
		strict = strings.ReplaceAll(strictErr.Error(), "\n", "\\n")
	}
	fmt.Fprintf(out, "%s\t%s\t%s\n", quoted, result, strict)
}
