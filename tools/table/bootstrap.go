package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// placeholders stand for what differs from one server to the next; the server that loads the table fills them in.
var placeholders = []struct {
	pattern *regexp.Regexp
	value   string
}{
	{regexp.MustCompile(`"(lastTransitionTime|time)":"[^"]*"`), `"$1":"{{now}}"`},
	{regexp.MustCompile(`"since":"[^"]*"`), `"since":"{{today}}"`},
	{regexp.MustCompile(`"client-ca-file":"[^"]*"`), `"client-ca-file":"{{client-ca}}"`},
	{regexp.MustCompile(`"192\.0\.2\.1"`), `"{{advertise-address}}"`},
}

// bootstrapRows cleans the recorded objects of everything that is only true of the server they were recorded from. They come in the order in which
// that server wrote them.
func bootstrapRows(recorded string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(filepath.Join(recorded, "bootstrap.jsonl"))
	if err != nil {
		return nil, err
	}
	type row struct {
		revision uint64
		object   json.RawMessage
	}
	var rows []row
	for line := range bytes.Lines(data) {
		var head metav1.PartialObjectMetadata
		if err := json.Unmarshal(line, &head); err != nil {
			return nil, err
		}
		if head.Kind == "Lease" {
			// The identity of the process that was recorded.
			continue
		}
		revision, err := strconv.ParseUint(head.ResourceVersion, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", head.Kind, head.Name, err)
		}
		object, err := cleanObject(head.GroupVersionKind(), line)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{revision, object})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.revision, b.revision) })
	objects := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		objects[i] = row.object
	}
	return objects, nil
}

func cleanObject(kind schema.GroupVersionKind, data []byte) (json.RawMessage, error) {
	t, ok := goType(kind)
	if !ok {
		return nil, fmt.Errorf("no Go type for %v", kind)
	}
	object := reflect.New(t).Interface()
	if err := json.Unmarshal(data, object); err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetUID("")
	accessor.SetResourceVersion("")
	accessor.SetCreationTimestamp(metav1.Time{})
	clean, err := json.Marshal(object)
	for _, p := range placeholders {
		clean = p.pattern.ReplaceAll(clean, []byte(p.value))
	}
	return clean, err
}
