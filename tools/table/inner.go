package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// innerRow says how the real server prints a structure of its inner types: by Go names, in full. Each field is its Go name, the JSON name
// of the served field, and what it prints when it is not there.
type innerRow struct {
	Name   string      `json:"name"`
	Fields [][3]string `json:"f"`
}

type innerWalker struct {
	rows map[string]*innerRow
}

// innerRows walks the served types beside the inner types that they are converted to.
func innerRows(served []apidiscovery.APIGroupDiscovery) ([]*innerRow, error) {
	w := innerWalker{rows: map[string]*innerRow{}}
	for _, gvk := range servedKinds(served) {
		outer, ok := goType(gvk)
		if !ok {
			return nil, fmt.Errorf("no type for %v", gvk)
		}
		inner, ok := goType(schema.GroupVersionKind{Group: gvk.Group, Version: runtime.APIVersionInternal, Kind: gvk.Kind})
		if !ok || inner == outer {
			continue
		}
		if err := w.pair(outer, inner); err != nil {
			return nil, err
		}
	}
	rows := make([]*innerRow, 0, len(w.rows))
	for _, row := range w.rows {
		rows = append(rows, row)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Name < rows[j].Name })
	return rows, nil
}

// pair notes a structure, unless both servers and clients know it under the same type: that one prints as it is served.
func (w *innerWalker) pair(outer, inner reflect.Type) error {
	outer, inner = element(outer), element(inner)
	if outer.Kind() != reflect.Struct || inner.Kind() != reflect.Struct || outer == inner || leaves[outer] != "" {
		return nil
	}
	name, err := modelName(outer)
	if err != nil || w.rows[name] != nil {
		return err
	}
	row := &innerRow{Name: name, Fields: [][3]string{}}
	w.rows[name] = row
	return w.fields(row, outer, inner)
}

func (w *innerWalker) fields(row *innerRow, outer, inner reflect.Type) error {
	for i := range inner.NumField() {
		field := inner.Field(i)
		served, found := outer.FieldByName(field.Name)
		switch {
		case field.Anonymous && found && element(served.Type) == element(field.Type):
			if field.Name == "ObjectMeta" {
				row.Fields = append(row.Fields, [3]string{"", "metadata", "inline"})
			}
			continue
		case field.Anonymous && found:
			if err := w.pair(served.Type, field.Type); err != nil {
				return err
			}
			if err := w.fields(row, element(served.Type), element(field.Type)); err != nil {
				return err
			}
			continue
		}
		name := strings.ToLower(field.Name[:1]) + field.Name[1:]
		if found {
			if tag, _, _ := strings.Cut(served.Tag.Get("json"), ","); tag != "" {
				name = tag
			}
			if err := w.pair(served.Type, field.Type); err != nil {
				return err
			}
		}
		row.Fields = append(row.Fields, [3]string{field.Name, name, zero(field.Type)})
	}
	return nil
}

// element is what a pointer, list or map holds.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// zero is what Go prints for a field that is not set.
func zero(t reflect.Type) string {
	switch leaf := leaves[t]; {
	case leaf == "quantity":
		return `"0"`
	case leaf == "intorstring":
		return "0"
	case leaf == "duration":
		return `"0s"`
	case leaf != "":
		return "null"
	}
	switch t.Kind() {
	case reflect.String:
		return `""`
	case reflect.Bool:
		return "false"
	case reflect.Struct:
		return "{}"
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return "null"
	default:
		return "0"
	}
}
