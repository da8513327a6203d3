package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/version"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

type typeRow struct {
	Name    string     `json:"name"`
	GVK     []string   `json:"gvk,omitempty"`
	MapType string     `json:"mt,omitempty"`
	Fields  []fieldRow `json:"fields"`
}

type fieldRow struct {
	Name     string          `json:"n"`
	Inline   bool            `json:"inline,omitempty"`
	Type     string          `json:"t"`
	Pointer  bool            `json:"ptr,omitempty"`
	Omit     string          `json:"omit,omitempty"`
	Proto    int             `json:"pb,omitempty"`
	Required bool            `json:"req,omitempty"`
	ListType string          `json:"lt,omitempty"`
	ListKeys []string        `json:"lk,omitempty"`
	MapType  string          `json:"mt,omitempty"`
	Strategy string          `json:"ps,omitempty"`
	MergeKey string          `json:"pk,omitempty"`
	Default  json.RawMessage `json:"def,omitempty"`
	Enum     []any           `json:"enum,omitempty"`
	Format   string          `json:"fmt,omitempty"`

	zeroDefault json.RawMessage
}

// leaves are the types with marshalling code of their own; the reader of the table has one codec for each.
var leaves = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                  "time",
	reflect.TypeFor[metav1.MicroTime]():                             "microtime",
	reflect.TypeFor[metav1.Duration]():                              "duration",
	reflect.TypeFor[resource.Quantity]():                            "quantity",
	reflect.TypeFor[intstr.IntOrString]():                           "intorstring",
	reflect.TypeFor[runtime.RawExtension]():                         "raw",
	reflect.TypeFor[metav1.FieldsV1]():                              "fieldsv1",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "schemaorbool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "schemaorarray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "schemaorstrings",
}

// extraRoots are types that no resource is listed with but that every server speaks.
var extraRoots = []reflect.Type{
	reflect.TypeFor[metav1.APIGroup](),
	reflect.TypeFor[metav1.APIGroupList](),
	reflect.TypeFor[metav1.APIResourceList](),
	reflect.TypeFor[metav1.APIVersions](),
	reflect.TypeFor[metav1.CreateOptions](),
	reflect.TypeFor[metav1.DeleteOptions](),
	reflect.TypeFor[metav1.PartialObjectMetadata](),
	reflect.TypeFor[metav1.PartialObjectMetadataList](),
	reflect.TypeFor[metav1.PatchOptions](),
	reflect.TypeFor[metav1.Status](),
	reflect.TypeFor[metav1.UpdateOptions](),
	reflect.TypeFor[metav1.WatchEvent](),
	reflect.TypeFor[version.Info](),
}

var schemes = []*runtime.Scheme{legacyscheme.Scheme, crdserver.Scheme, aggregatorscheme.Scheme}

// goType finds the Go type of a kind in whichever of the three servers' schemes knows it.
func goType(gvk schema.GroupVersionKind) (reflect.Type, bool) {
	for _, scheme := range schemes {
		if t, ok := scheme.KnownTypes(gvk.GroupVersion())[gvk.Kind]; ok {
			return t, true
		}
	}
	return nil, false
}

// modelName is the name of a type's definition in the OpenAPI documents.
func modelName(t reflect.Type) (string, error) {
	named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string })
	if !ok {
		return "", fmt.Errorf("%v has no OpenAPI name", t)
	}
	return named.OpenAPIModelName(), nil
}

type walker struct {
	schemas schemas
	rows    map[string]*typeRow
	docs    map[string]*docRow
}

// typeRows describes every type reachable from the served kinds.
func typeRows(served []apidiscovery.APIGroupDiscovery) ([]*typeRow, []*docRow, error) {
	w := walker{schemas: newSchemas(), rows: map[string]*typeRow{}, docs: map[string]*docRow{}}
	roots := slices.Clone(extraRoots)
	for _, gvk := range servedKinds(served) {
		t, ok := goType(gvk)
		if !ok {
			return nil, nil, fmt.Errorf("no Go type for %v", gvk)
		}
		roots = append(roots, t)
		if list, ok := goType(gvk.GroupVersion().WithKind(gvk.Kind + "List")); ok {
			roots = append(roots, list)
		}
	}
	for _, root := range roots {
		if _, err := w.structType(root); err != nil {
			return nil, nil, err
		}
	}
	var names []string
	for name := range w.rows {
		names = append(names, name)
	}
	sort.Strings(names)
	var rows []*typeRow
	var docs []*docRow
	for _, name := range names {
		row := w.rows[name]
		for _, f := range row.Fields {
			for _, key := range f.ListKeys {
				w.keepZeroDefault(strings.TrimPrefix(f.Type, "[]"), key)
			}
		}
		rows = append(rows, row)
	}
	for _, name := range names {
		w.complete(name)
		docs = append(docs, w.docs[name])
	}
	// Leaves have a definition of their own in the OpenAPI documents too, and so does the body of a patch.
	others := []reflect.Type{reflect.TypeFor[metav1.Patch]()}
	for t := range leaves {
		others = append(others, t)
	}
	for _, t := range others {
		name, err := modelName(t)
		if err != nil {
			return nil, nil, err
		}
		model, _ := w.schemas.model(name)
		docs = append(docs, newDocRow(name, model))
	}
	slices.SortFunc(docs, func(a, b *docRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, docs, nil
}

// keepZeroDefault restores a default that is the zero value: of use only in a list key, where it names the element.
func (w *walker) keepZeroDefault(name, key string) {
	for i := range w.rows[name].Fields {
		f := &w.rows[name].Fields[i]
		switch {
		case f.Inline:
			w.keepZeroDefault(f.Type, key)
		case f.Name == key && f.Default == nil:
			f.Default = f.zeroDefault
		}
	}
}

func (w *walker) structType(t reflect.Type) (string, error) {
	name, err := modelName(t)
	if err != nil {
		return "", err
	}
	if _, done := w.rows[name]; done {
		return name, nil
	}
	row := &typeRow{Name: name, Fields: []fieldRow{}}
	w.rows[name] = row
	model, ok := w.schemas.model(name)
	if ok {
		row.GVK = w.schemas.kinds(name)
		row.MapType = extension(model, "x-kubernetes-map-type")
	}
	w.docs[name] = newDocRow(name, model)
	for i := range t.NumField() {
		field := t.Field(i)
		f, skip, err := w.field(field)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", name, field.Name, err)
		}
		if skip {
			continue
		}
		if property, ok := model.Properties[f.Name]; ok {
			f.Required = slices.Contains(model.Required, f.Name)
			if err := f.describe(property); err != nil {
				return "", fmt.Errorf("%s.%s: %w", name, field.Name, err)
			}
		} else if !f.Inline {
			return "", fmt.Errorf("%s.%s: no OpenAPI property %q", name, field.Name, f.Name)
		}
		row.Fields = append(row.Fields, f)
	}
	return name, nil
}

// field reads what reflection knows of a field.
func (w *walker) field(field reflect.StructField) (f fieldRow, skip bool, err error) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" || !field.IsExported() {
		return f, true, nil
	}
	tags := strings.Split(options, ",")
	f.Name = name
	f.Inline = slices.Contains(tags, "inline") || field.Anonymous && name == ""
	if !f.Inline && name == "" {
		return f, false, fmt.Errorf("no JSON name")
	}
	t := field.Type
	if t.Kind() == reflect.Pointer {
		f.Pointer = true
		t = t.Elem()
	}
	// omitempty never drops a struct, omitzero does.
	switch empty, zero := slices.Contains(tags, "omitempty"), slices.Contains(tags, "omitzero"); {
	case zero && (t.Kind() == reflect.Struct || !empty):
		f.Omit = "zero"
	case empty:
		f.Omit = "empty"
	}
	if proto := strings.Split(field.Tag.Get("protobuf"), ","); len(proto) > 1 {
		if f.Proto, err = strconv.Atoi(proto[1]); err != nil {
			return f, false, err
		}
	}
	f.Strategy = field.Tag.Get("patchStrategy")
	f.MergeKey = field.Tag.Get("patchMergeKey")
	f.Type, err = w.expression(t)
	return f, false, err
}

// expression writes a Go type in the table's own notation, walking into structs.
func (w *walker) expression(t reflect.Type) (string, error) {
	if leaf, ok := leaves[t]; ok {
		return leaf, nil
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "", fmt.Errorf("%v has marshalling code of its own", t)
	case t.Kind() == reflect.Slice && pointer.Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]()):
		// ExtraValue and Verbs: a list in JSON, a message with one repeated field on the wire.
		if t.Elem().Kind() != reflect.String {
			return "", fmt.Errorf("%v is a message of its own on the wire", t)
		}
		return "strings", nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.expression(t.Elem())
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Uint32, reflect.Uint64:
		return t.Kind().String(), nil
	case reflect.Struct:
		return w.structType(t)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("map with keys of %v", t.Key())
		}
		value, err := w.expression(t.Elem())
		return "map[string]" + value, err
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		element, err := w.expression(t.Elem())
		return "[]" + element, err
	}
	return "", fmt.Errorf("unexpected type %v", t)
}
