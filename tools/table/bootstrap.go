package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bootstrapOrder is a creation order in which nothing refers to what is not there yet.
var bootstrapOrder = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "PriorityClass", "PriorityLevelConfiguration", "FlowSchema",
	"ServiceCIDR", "IPAddress", "Service", "Endpoints", "EndpointSlice", "ConfigMap", "APIService",
}

// placeholders stand for what differs from one server to the next; the server that loads the table fills them in.
var placeholders = []struct {
	pattern *regexp.Regexp
	value   string
}{
	{regexp.MustCompile(`"lastTransitionTime":"[^"]*"`), `"lastTransitionTime":"{{now}}"`},
	{regexp.MustCompile(`"since":"[^"]*"`), `"since":"{{today}}"`},
	{regexp.MustCompile(`"client-ca-file":"[^"]*"`), `"client-ca-file":"{{client-ca}}"`},
	{regexp.MustCompile(`"192\.0\.2\.1"`), `"{{advertise-address}}"`},
}

// bootstrapRows cleans the recorded objects of everything that is only true of the server they were recorded from.
func bootstrapRows(recorded string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(filepath.Join(recorded, "bootstrap.jsonl"))
	if err != nil {
		return nil, err
	}
	byKind := map[string][]json.RawMessage{}
	for line := range bytes.Lines(data) {
		var head metav1.TypeMeta
		if err := json.Unmarshal(line, &head); err != nil {
			return nil, err
		}
		if head.Kind == "Lease" {
			// The identity of the process that was recorded.
			continue
		}
		if !slices.Contains(bootstrapOrder, head.Kind) {
			return nil, fmt.Errorf("no place in the creation order for %s", head.Kind)
		}
		row, err := cleanObject(head.GroupVersionKind(), line)
		if err != nil {
			return nil, err
		}
		byKind[head.Kind] = append(byKind[head.Kind], row)
	}
	var rows []json.RawMessage
	for _, kind := range bootstrapOrder {
		rows = append(rows, byKind[kind]...)
	}
	return rows, nil
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
	accessor.SetManagedFields(nil)
	clean, err := json.Marshal(object)
	for _, p := range placeholders {
		clean = p.pattern.ReplaceAll(clean, []byte(p.value))
	}
	return clean, err
}
