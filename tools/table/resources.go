package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type resourceRow struct {
	Group               string                `json:"group"`
	Version             string                `json:"version"`
	Resource            string                `json:"resource"`
	Kind                string                `json:"kind"`
	Singular            string                `json:"singular"`
	Namespaced          bool                  `json:"namespaced"`
	Short               []string              `json:"short,omitempty"`
	Categories          []string              `json:"categories,omitempty"`
	Verbs               []string              `json:"verbs"`
	Hash                string                `json:"hash,omitempty"`
	Type                string                `json:"type"`
	List                string                `json:"list,omitempty"`
	Subresources        []subresourceRow      `json:"subresources,omitempty"`
	CreateOnUpdate      bool                  `json:"createOnUpdate"`
	UnconditionalUpdate bool                  `json:"unconditionalUpdate"`
	Reset               map[string][][]string `json:"reset,omitempty"`
	DefaultGC           string                `json:"defaultGC,omitempty"`
	Storage             string                `json:"storage,omitempty"`
	Fields              map[string]string     `json:"fields,omitempty"`
	Columns             []columnRow           `json:"columns,omitempty"`
}

type subresourceRow struct {
	Name    string   `json:"name"`
	Group   string   `json:"group"`
	Version string   `json:"version"`
	Kind    string   `json:"kind"`
	Type    string   `json:"type"`
	Verbs   []string `json:"verbs"`
}

type columnRow struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
}

func resourceRows(served []apidiscovery.APIGroupDiscovery, installed storages, hashes storageHashes) ([]resourceRow, error) {
	labels, err := fieldLabelCandidates()
	if err != nil {
		return nil, err
	}
	var rows []resourceRow
	for _, group := range served {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			byResource, ok := installed[gv.String()]
			if !ok {
				return nil, fmt.Errorf("%v is served but not installed", gv)
			}
			for _, resource := range version.Resources {
				row, err := describeResource(gv, resource)
				if err == nil {
					err = row.describeStorage(gv, byResource, labels, hashes)
				}
				if err != nil {
					return nil, fmt.Errorf("%v %s: %w", gv, resource.Resource, err)
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// describeResource takes over what discovery says.
func describeResource(gv schema.GroupVersion, r apidiscovery.APIResourceDiscovery) (resourceRow, error) {
	kind := responseKind(gv.Group, gv.Version, r.ResponseKind.Group, r.ResponseKind.Version, r.ResponseKind.Kind)
	row := resourceRow{
		Group: gv.Group, Version: gv.Version, Resource: r.Resource, Kind: kind.Kind, Singular: r.SingularResource,
		Namespaced: r.Scope == apidiscovery.ScopeNamespace, Short: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
	}
	var err error
	if row.Type, err = modelNameOf(kind); err != nil {
		return row, err
	}
	for _, sub := range r.Subresources {
		kind := responseKind(gv.Group, gv.Version, sub.ResponseKind.Group, sub.ResponseKind.Version, sub.ResponseKind.Kind)
		name, err := modelNameOf(kind)
		if err != nil {
			return row, err
		}
		row.Subresources = append(row.Subresources, subresourceRow{
			Name: sub.Subresource, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Type: name, Verbs: sub.Verbs,
		})
	}
	return row, nil
}

func modelNameOf(kind schema.GroupVersionKind) (string, error) {
	t, ok := goType(kind)
	if !ok {
		return "", fmt.Errorf("no Go type for %v", kind)
	}
	return modelName(t)
}

// describeStorage asks the registry about everything that discovery does not tell.
func (row *resourceRow) describeStorage(gv schema.GroupVersion, byResource map[string]rest.Storage, labels []string, hashes storageHashes) error {
	main, ok := byResource[row.Resource]
	if !ok {
		return fmt.Errorf("served but not installed")
	}
	if lister, ok := main.(rest.Lister); ok {
		row.List = row.Kind + "List"
		if err := row.columns(lister); err != nil {
			return err
		}
		row.Fields = selectableFields(gv.WithKind(row.Kind), labels)
	}
	if err := row.resetFields(gv, "", main); err != nil {
		return err
	}
	for _, sub := range row.Subresources {
		storage, ok := byResource[row.Resource+"/"+sub.Name]
		if !ok {
			return fmt.Errorf("subresource %s is served but not installed", sub.Name)
		}
		if err := row.resetFields(gv, sub.Name, storage); err != nil {
			return err
		}
	}
	if _, persisted := main.(rest.Updater); !persisted {
		return nil
	}
	store, err := storeOf(main)
	if err != nil {
		return err
	}
	row.CreateOnUpdate = store.UpdateStrategy.AllowCreateOnUpdate()
	row.UnconditionalUpdate = store.UpdateStrategy.AllowUnconditionalUpdate()
	if strategy, ok := store.DeleteStrategy.(rest.GarbageCollectionDeleteStrategy); ok {
		row.DefaultGC = garbageCollection[strategy.DefaultGarbageCollectionPolicy(context.Background())]
	}
	stored, err := storageVersion(store.StorageVersioner, main.New())
	if err != nil {
		return err
	}
	row.Hash = discovery.StorageVersionHash(stored.Group, stored.Version, stored.Kind)
	if recorded := hashes[gv.String()][row.Resource]; row.Hash != recorded {
		return fmt.Errorf("storage version hash of %v is %s, the real server says %s", stored, row.Hash, recorded)
	}
	if stored.GroupVersion() != gv {
		row.Storage = stored.GroupVersion().String()
	}
	return nil
}

// garbageCollection names what happens to dependents when a delete does not say.
var garbageCollection = map[rest.GarbageCollectionPolicy]string{
	rest.DeleteDependents: "background", rest.OrphanDependents: "orphan", rest.Unsupported: "unsupported",
}

func (row *resourceRow) columns(lister rest.Lister) error {
	table, err := lister.ConvertToTable(context.Background(), lister.NewList(), &metav1.TableOptions{})
	if err != nil {
		return err
	}
	for _, c := range table.ColumnDefinitions {
		row.Columns = append(row.Columns, columnRow(c))
	}
	return nil
}

// resetFields records the fields that a write through this storage cannot own.
func (row *resourceRow) resetFields(gv schema.GroupVersion, subresource string, storage rest.Storage) error {
	if _, ok := storage.(rest.ResetFieldsFilterStrategy); ok {
		return fmt.Errorf("%q resets fields by a filter, which the table has no column for", subresource)
	}
	strategy, ok := storage.(rest.ResetFieldsStrategy)
	if !ok {
		return nil
	}
	set := strategy.GetResetFields()[fieldpath.APIVersion(gv.String())]
	if set == nil {
		return nil
	}
	paths := [][]string{}
	var bad error
	set.Iterate(func(path fieldpath.Path) {
		var names []string
		for _, element := range path {
			if element.FieldName == nil {
				bad = fmt.Errorf("%q resets %v, which is not a plain field", subresource, path)
				return
			}
			names = append(names, *element.FieldName)
		}
		paths = append(paths, names)
	})
	if row.Reset == nil {
		row.Reset = map[string][][]string{}
	}
	row.Reset[subresource] = paths
	return bad
}

func storageVersion(versioner runtime.GroupVersioner, object runtime.Object) (schema.GroupVersionKind, error) {
	for _, scheme := range schemes {
		if kinds, _, err := scheme.ObjectKinds(object); err == nil {
			if kind, ok := versioner.KindForGroupVersionKinds(kinds); ok {
				return kind, nil
			}
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("no storage version for %T", object)
}

// labelPaths are the selectable labels that are not the JSON path of what they select on: see the README.
var labelPaths = map[string]string{
	"Pod spec.host":         "spec.nodeName",
	"Pod status.podIPs":     "",
	"Event source":          "source.component|reportingComponent",
	"Job status.successful": "status.succeeded",
}

// selectableFields asks the scheme which of the candidate labels it takes for a kind.
func selectableFields(kind schema.GroupVersionKind, candidates []string) map[string]string {
	fields := map[string]string{}
	for _, scheme := range schemes {
		if !scheme.Recognizes(kind) {
			continue
		}
		for _, label := range candidates {
			if _, _, err := scheme.ConvertFieldLabel(kind, label, "x"); err != nil {
				continue
			}
			fields[label] = label
			if path, ok := labelPaths[kind.Kind+" "+label]; ok {
				fields[label] = path
			}
		}
		break
	}
	return fields
}

// fieldLabelCandidates collects every string in the conversion code that could be a field label: the scheme can be asked about
// a label, but cannot list them.
func fieldLabelCandidates() ([]string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "pkg/apis/*/v*/conversion.go"))
	if err != nil {
		return nil, err
	}
	literal := regexp.MustCompile(`"([a-zA-Z]+(?:\.[a-zA-Z]+)*)"`)
	// These two are named constants there.
	labels := []string{resourcev1.ResourceSliceSelectorDriver, resourcev1.ResourceSliceSelectorNodeName}
	seen := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range literal.FindAllStringSubmatch(string(source), -1) {
			if !seen[match[1]] {
				seen[match[1]] = true
				labels = append(labels, match[1])
			}
		}
	}
	return labels, nil
}
