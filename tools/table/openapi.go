package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
)

// parametersRow are the parameters of a verb, or of a subresource that is unlike others.
type parametersRow struct {
	For string `json:"for"`
	// Methods are those of a subresource that connects.
	Methods    []string    `json:"methods,omitempty"`
	Parameters []parameter `json:"parameters"`
	// Objects are the resources ("group/resource") whose deletion is said to answer with the object.
	Objects []string `json:"objects,omitempty"`
}

type parameter struct {
	Name        string `json:"n"`
	In          string `json:"in,omitempty"`
	Type        string `json:"t"`
	Description string `json:"d"`
}

// published reads one of the documents that the Kubernetes module publishes.
func published(name string) (*spec3.OpenAPI, error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return nil, fmt.Errorf("where the module is: %w", err)
	}
	file := strings.ReplaceAll(name, "/", "__") + "_openapi.json"
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "api/openapi-spec/v3", file))
	if err != nil {
		return nil, err
	}
	document := &spec3.OpenAPI{}
	return document, json.Unmarshal(data, document)
}

func operations(item *spec3.Path) map[string]*spec3.Operation {
	all := map[string]*spec3.Operation{"get": item.Get, "put": item.Put, "post": item.Post, "delete": item.Delete,
		"options": item.Options, "head": item.Head, "patch": item.Patch}
	for method, operation := range all {
		if operation == nil {
			delete(all, method)
		}
	}
	return all
}

// parameterRows takes the parameters of the verbs from one resource that has all of them, and those of the subresources that do not carry an
// object from wherever they are.
func parameterRows(documents []documentRow) ([]parametersRow, error) {
	document, err := published("api/v1")
	if err != nil {
		return nil, err
	}
	const collection = "/api/v1/namespaces/{namespace}/configmaps"
	many, one := document.Paths.Paths[collection], document.Paths.Paths[collection+"/{name}"]
	rows := []parametersRow{
		{For: "all", Parameters: parametersOf(many.Parameters)},
		{For: "list", Parameters: parametersOf(many.Get.Parameters)},
		{For: "create", Parameters: parametersOf(many.Post.Parameters)},
		{For: "update", Parameters: parametersOf(one.Put.Parameters)},
		{For: "patch", Parameters: parametersOf(one.Patch.Parameters)},
		{For: "delete", Parameters: parametersOf(one.Delete.Parameters)},
	}
	if rows[5].Objects, err = returnedObjects(documents); err != nil {
		return nil, err
	}
	var paths []string
	for path := range document.Paths.Paths {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		resource, subresource, ok := strings.Cut(path, "/{name}/")
		if !ok {
			continue
		}
		item := document.Paths.Paths[path]
		row := parametersRow{For: resource[strings.LastIndex(resource, "/")+1:] + "/" + subresource}
		for method, operation := range operations(item) {
			if operation.Extensions["x-kubernetes-action"] == "connect" {
				row.Methods = append(row.Methods, method)
			}
		}
		sort.Strings(row.Methods)
		for _, p := range parametersOf(item.Parameters) {
			common := slices.ContainsFunc([]string{"name", "namespace", "pretty"}, func(n string) bool { return n == p.Name })
			write := slices.ContainsFunc(rows[2].Parameters, func(w parameter) bool { return w == p })
			if !common && !write {
				row.Parameters = append(row.Parameters, p)
			}
		}
		if len(row.Parameters) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// returnedObjects lists the resources whose deletion is said to answer with the object. (A few more do.)
func returnedObjects(documents []documentRow) ([]string, error) {
	var out []string
	for _, row := range documents {
		if row.Paths != nil {
			continue
		}
		document, err := published(row.Name)
		if err != nil {
			return nil, err
		}
		for path, item := range document.Paths.Paths {
			if !strings.HasSuffix(path, "/{name}") || item.Delete == nil {
				continue
			}
			answer := item.Delete.Responses.StatusCodeResponses[200].Content["application/json"].Schema.Ref.String()
			if strings.HasSuffix(answer, ".meta.v1.Status") {
				continue
			}
			group := ""
			if parts := strings.Split(path, "/"); parts[1] == "apis" {
				group = parts[2]
			}
			out = append(out, group+"/"+filepath.Base(filepath.Dir(path)))
		}
	}
	sort.Strings(out)
	return out, nil
}

func parametersOf(list []*spec3.Parameter) []parameter {
	var out []parameter
	for _, p := range list {
		in := p.In
		if in == "query" {
			in = ""
		}
		out = append(out, parameter{Name: p.Name, In: in, Type: p.Schema.Type[0], Description: p.Description})
	}
	return out
}

// documentRow is a document of the index. Those of a group and version are built from the other tables, the paths of the others are here.
type documentRow struct {
	Name string `json:"name"`
	// Hash is that of a real server, where it is the SHA-512 of the document.
	Hash  string       `json:"hash"`
	Paths *spec3.Paths `json:"paths,omitempty"`
}

// documentRows lists the documents of a running server that has no custom kinds.
func documentRows(recorded string) ([]documentRow, error) {
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	data, err := os.ReadFile(filepath.Join(recorded, "openapi.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, err
	}
	var names []string
	for name := range index.Paths {
		names = append(names, name)
	}
	sort.Strings(names)
	var rows []documentRow
	for _, name := range names {
		_, hash, _ := strings.Cut(index.Paths[name].ServerRelativeURL, "?hash=")
		row := documentRow{Name: name, Hash: hash}
		if name != "api/v1" && strings.Count(name, "/") < 2 || strings.HasPrefix(name, "openid/") {
			document, err := published(name)
			if err != nil {
				return nil, err
			}
			row.Paths = document.Paths
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// everyGroup lists the kinds under which a type of meta/v1 is known in every group, as the documents of custom kinds have it.
func everyGroup(name string) []string {
	_, extensions := openapinamer.NewDefinitionNamer(clientscheme.Scheme).GetDefinitionName(name)
	list, _ := extensions["x-kubernetes-group-version-kind"].([]any)
	var out []string
	for _, item := range list {
		gvk := item.(map[string]any)
		out = append(out, fmt.Sprintf("%s/%s/%s", gvk["group"], gvk["version"], gvk["kind"]))
	}
	return out
}

// complete adds to the texts of a type what its OpenAPI definition has and its row cannot tell.
func (w *walker) complete(name string) {
	model, _ := w.schemas.model(name)
	doc := w.docs[name]
	for key, value := range model.Extensions {
		if key == "x-kubernetes-unions" {
			doc.Unions = value
		}
	}
	if name == "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" {
		doc.Everywhere = everyGroup(name)
	}
	for _, f := range w.flat(name) {
		if property, ok := model.Properties[f.Name]; ok && f.Default == nil && f.impliesDefault() != (property.Default != nil) {
			doc.Toggled = append(doc.Toggled, f.Name)
		}
		if f.MapType == "granular" {
			doc.Granular = append(doc.Granular, f.Name)
		}
	}
	sort.Strings(doc.Toggled)
}

// flat lists the fields of a type with those of embedded types in their place.
func (w *walker) flat(name string) []fieldRow {
	var out []fieldRow
	for _, f := range w.rows[name].Fields {
		if f.Inline {
			out = append(out, w.flat(f.Type)...)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// impliesDefault is the rule by which a reader of the table finds zero defaults: structs that are not pointers, and scalars that are always written.
func (f fieldRow) impliesDefault() bool {
	switch f.Type {
	case "string", "bool", "int32", "int64", "float64":
		return !f.Pointer && f.Omit == ""
	}
	return !f.Pointer && strings.HasPrefix(f.Type, "io.k8s.")
}
