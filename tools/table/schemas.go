package main

import (
	"encoding/json"
	"fmt"
	"strings"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	utilopenapi "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// schemas are the OpenAPI definitions exactly as kube-apiserver builds its documents from.
type schemas struct {
	definitions map[string]common.OpenAPIDefinition
	namer       *openapinamer.DefinitionNamer
}

func newSchemas() schemas {
	ref := func(path string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + path) }
	return schemas{
		definitions: utilopenapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(openapi.GetOpenAPIDefinitions)(ref),
		namer:       openapinamer.NewDefinitionNamer(schemes...),
	}
}

func (s schemas) model(name string) (spec.Schema, bool) {
	definition, ok := s.definitions[name]
	return definition.Schema, ok
}

// kinds lists the definition's x-kubernetes-group-version-kind as "group/version/Kind". The types of meta/v1 are kinds in every group: of those
// only the core one is listed.
func (s schemas) kinds(name string) []string {
	_, extensions := s.namer.GetDefinitionName(name)
	list, _ := extensions["x-kubernetes-group-version-kind"].([]any)
	var kinds []string
	for _, item := range list {
		gvk := item.(map[string]any)
		if strings.HasPrefix(name, "io.k8s.apimachinery.") && (gvk["group"] != "" || gvk["version"] != "v1") {
			continue
		}
		kinds = append(kinds, fmt.Sprintf("%s/%s/%s", gvk["group"], gvk["version"], gvk["kind"]))
	}
	return kinds
}

func extension(schema spec.Schema, name string) string {
	value, _ := schema.Extensions[name].(string)
	return value
}

// impliedFormats are the OpenAPI formats that follow from the type expression.
var impliedFormats = map[string]string{
	"int32": "int32", "int64": "int64", "float64": "double", "bytes": "byte",
	"time": "date-time", "microtime": "date-time", "intorstring": "int-or-string",
}

// describe adds what only the OpenAPI schema knows of a field.
func (f *fieldRow) describe(property spec.Schema) error {
	f.ListType = extension(property, "x-kubernetes-list-type")
	if keys, ok := property.Extensions["x-kubernetes-list-map-keys"].([]any); ok {
		for _, key := range keys {
			f.ListKeys = append(f.ListKeys, key.(string))
		}
	}
	f.MapType = extension(property, "x-kubernetes-map-type")
	f.Enum = property.Enum
	if property.Items != nil && property.Items.Schema != nil && len(property.Items.Schema.Enum) > 0 {
		f.Enum = property.Items.Schema.Enum
	}
	if values := property.AdditionalProperties; values != nil && values.Schema != nil && len(values.Schema.Enum) > 0 {
		f.Enum = values.Schema.Enum
	}
	if property.Format != impliedFormats[f.Type] {
		f.Format = property.Format
	}
	if property.Default == nil {
		return nil
	}
	// Defaults are Go values of whatever named type the field has.
	data, err := json.Marshal(property.Default)
	if err != nil {
		return err
	}
	switch string(data) {
	case "{}":
	case "0", "false", `""`:
		f.zeroDefault = data
	default:
		f.Default = data
	}
	return nil
}

type docRow struct {
	Name        string            `json:"name"`
	Description string            `json:"d,omitempty"`
	Fields      map[string]string `json:"f,omitempty"`
	Toggled     []string          `json:"z,omitempty"`
	Unions      any               `json:"unions,omitempty"`
	Everywhere  []string          `json:"everywhere,omitempty"`
	Granular    []string          `json:"granular,omitempty"`
}

func newDocRow(name string, model spec.Schema) *docRow {
	row := &docRow{Name: name, Description: model.Description, Fields: map[string]string{}}
	for field, property := range model.Properties {
		if property.Description != "" {
			row.Fields[field] = property.Description
		}
	}
	return row
}
