// Command table writes the table of built-in Kubernetes kinds that the API server is driven by.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: table OUTPUT_DIRECTORY")
		os.Exit(2)
	}
	if err := run("recorded", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(recorded, out string) error {
	served, err := readDiscovery(recorded)
	if err != nil {
		return err
	}
	storages, err := newStorages()
	if err != nil {
		return err
	}
	hashes, err := readHashes(recorded)
	if err != nil {
		return err
	}
	resources, err := resourceRows(served, storages, hashes)
	if err != nil {
		return err
	}
	types, docs, err := typeRows(served)
	if err != nil {
		return err
	}
	inner, err := innerRows(served)
	if err != nil {
		return err
	}
	bootstrap, err := bootstrapRows(recorded)
	if err != nil {
		return err
	}
	documents, err := documentRows(recorded)
	if err != nil {
		return err
	}
	parameters, err := parameterRows(documents)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return firstError(
		writeLines(filepath.Join(out, "types.jsonl"), types),
		writeLines(filepath.Join(out, "inner.jsonl"), inner),
		writeLines(filepath.Join(out, "docs.jsonl"), docs),
		writeLines(filepath.Join(out, "resources.jsonl"), resources),
		writeLines(filepath.Join(out, "groups.jsonl"), groupRows(served)),
		writeLines(filepath.Join(out, "bootstrap.jsonl"), bootstrap),
		writeLines(filepath.Join(out, "parameters.jsonl"), parameters),
		writeLines(filepath.Join(out, "documents.jsonl"), documents),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes one JSON value per line, without HTML escaping so that descriptions stay readable.
func writeLines[T any](path string, rows []T) error {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}
