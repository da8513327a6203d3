package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readDiscovery reads the aggregated discovery documents of a default kube-apiserver: /api first, then /apis in served order.
func readDiscovery(recorded string) ([]apidiscovery.APIGroupDiscovery, error) {
	var all []apidiscovery.APIGroupDiscovery
	for _, name := range []string{"api.json", "apis.json"} {
		data, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil {
			return nil, err
		}
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// storageHashes are the storage version hashes of legacy discovery, by group/version and resource.
type storageHashes map[string]map[string]string

func readHashes(recorded string) (storageHashes, error) {
	data, err := os.ReadFile(filepath.Join(recorded, "legacy.json"))
	if err != nil {
		return nil, err
	}
	var hashes storageHashes
	err = json.Unmarshal(data, &hashes)
	return hashes, err
}

type groupRow struct {
	Group     string   `json:"group"`
	Versions  []string `json:"versions"`
	Preferred string   `json:"preferred"`
}

func groupRows(served []apidiscovery.APIGroupDiscovery) []groupRow {
	var rows []groupRow
	for _, group := range served {
		row := groupRow{Group: group.Name, Preferred: group.Versions[0].Version}
		for _, version := range group.Versions {
			row.Versions = append(row.Versions, version.Version)
		}
		rows = append(rows, row)
	}
	return rows
}

// servedKinds lists every kind that a served resource or subresource takes or answers with, in discovery order.
func servedKinds(served []apidiscovery.APIGroupDiscovery) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, group := range served {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				kinds = append(kinds, responseKind(group.Name, version.Version, resource.ResponseKind.Group, resource.ResponseKind.Version, resource.ResponseKind.Kind))
				for _, sub := range resource.Subresources {
					if sub.ResponseKind != nil {
						kinds = append(kinds, responseKind(group.Name, version.Version, sub.ResponseKind.Group, sub.ResponseKind.Version, sub.ResponseKind.Kind))
					}
				}
			}
		}
	}
	return kinds
}

// responseKind fills in the group and version of the enclosing list where discovery leaves them empty.
func responseKind(listGroup, listVersion, group, version, kind string) schema.GroupVersionKind {
	if version == "" {
		group, version = listGroup, listVersion
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
