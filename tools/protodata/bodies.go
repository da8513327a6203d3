package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"reflect"
	"regexp"
	"sort"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// faulty is how many bodies of each kind are written.
const faulty = 3

// wrong are the values that are put where they may not belong.
var wrong = []string{`null`, `null`, `null`, `true`, `1`, `-1`, `1.5`, `3000000000`, `"x"`, `""`, `[]`, `{}`, `[null]`, `{"a":null}`, `[{}]`, `"1h"`, `"0.5"`}

var opening = regexp.MustCompile(`\{"[a-zA-Z]+":`)

// bodies writes group/version/kind, a body with a fault or two, and the JSON of what a server reads, with the problems
// that a strict one names; or `!` and the message.
func bodies(out *bufio.Writer, types *runtime.Scheme) {
	decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, types, types, serializer.SerializerOptions{Strict: true})
	r := rand.New(rand.NewSource(1))
	for _, gvk := range kinds(types) {
		for range faulty {
			filled, err := types.New(gvk)
			if err != nil {
				log.Fatal(err)
			}
			filler{Rand: r, sparse: true}.fill(reflect.ValueOf(filled).Elem(), 0)
			filled.GetObjectKind().SetGroupVersionKind(gvk)
			text, err := json.Marshal(filled)
			if err != nil {
				log.Fatal(err)
			}
			body := spoil(r, text)
			var result string
			read, _, err := decoder.Decode([]byte(body), nil, nil)
			strict, isStrict := runtime.AsStrictDecodingError(err)
			switch {
			case err != nil && !isStrict:
				result = "!" + err.Error()
			default:
				text, err := json.Marshal(read)
				if err != nil {
					log.Fatal(err)
				}
				result = string(text)
			}
			problems := []string{}
			if isStrict {
				for _, problem := range strict.Errors() {
					problems = append(problems, problem.Error())
				}
				sort.Strings(problems)
			}
			named, err := json.Marshal(problems)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Fprintf(out, "%s/%s/%s\t%s\t%s\t%s\n", gvk.Group, gvk.Version, gvk.Kind, body, result, named)
		}
	}
}

// spoil changes a value or two, adds a field that nobody knows, or names one twice.
func spoil(r *rand.Rand, text []byte) string {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		log.Fatal(err)
	}
	for range 1 + r.Intn(2) {
		change(r, tree)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		log.Fatal(err)
	}
	body := string(text)
	if r.Intn(3) == 0 {
		places := opening.FindAllStringIndex(body, -1)
		place := places[r.Intn(len(places))]
		body = body[:place[1]] + "null," + body[place[0]+1:]
	}
	return body
}

// change walks down at random and changes what it arrives at.
func change(r *rand.Rand, node any) {
	value := func() any {
		var value any
		if err := json.Unmarshal([]byte(wrong[r.Intn(len(wrong))]), &value); err != nil {
			log.Fatal(err)
		}
		return value
	}
	switch node := node.(type) {
	case map[string]any:
		keys := []string{}
		for key := range node {
			if key != "kind" && key != "apiVersion" {
				keys = append(keys, key)
			}
		}
		sort.Strings(keys)
		if len(keys) == 0 || r.Intn(10) == 0 {
			node["unknown"] = map[string]any{"a": 1}
			return
		}
		key := keys[r.Intn(len(keys))]
		if isTree(node[key]) && r.Intn(8) > 0 {
			change(r, node[key])
		} else {
			node[key] = value()
		}
	case []any:
		if len(node) == 0 {
			return
		}
		i := r.Intn(len(node))
		if isTree(node[i]) && r.Intn(8) > 0 {
			change(r, node[i])
		} else {
			node[i] = value()
		}
	}
}

func isTree(node any) bool {
	switch node.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
