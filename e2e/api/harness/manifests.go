//go:build api

package harness

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// DeployPath is the path of a file under deploy.
func DeployPath(t testing.TB, elements ...string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root, "deploy"}, elements...)...)
}

// Objects reads all documents of a YAML file.
func Objects(t testing.TB, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return ParseObjects(t, text)
}

// ParseObjects reads all documents of YAML text.
func ParseObjects(t testing.TB, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		raw := runtime.RawExtension{}
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("read the manifest: %v", err)
		}
		if document := bytes.TrimSpace(raw.Raw); len(document) == 0 || bytes.Equal(document, []byte("null")) {
			continue // comments only
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			t.Fatalf("read the manifest: %v", err)
		}
		objects = append(objects, o)
	}
}

// Find reads the one object of a kind and name into its typed form.
func Find[T any](t testing.TB, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != kind || o.GetName() != name {
			continue
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
			t.Fatalf("read %s %s: %v", kind, name, err)
		}
		return typed
	}
	t.Fatalf("the manifest holds no %s %s", kind, name)
	return nil
}
