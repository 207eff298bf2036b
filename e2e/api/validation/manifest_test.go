//go:build api

package validation

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// base holds the smallest manifest of each kind that the API server accepts.
var base = map[string]string{
	"ValkeyCluster": `{spec: {configRef: standard, shards: 3, replicasPerShard: 1}}`,
	"ValkeyConfig":  `{spec: {imageRef: valkey-9}}`,
	"ValkeyImage":   `{spec: {repository: valkey/valkey, tag: 9.1.2, version: 9.1.2}}`,
	"ValkeyRole":    `{spec: {}}`,
	"ValkeyNode":    `{spec: {clusterName: cache, image: "valkey/valkey:9.1.2", shardIndex: 0, nodeIndex: 0, lifecycle: Joining}}`,
}

// manifest is the base of its kind with an overlay merged in: a value of null
// removes a field.
type manifest struct {
	intent  string
	overlay string
	// refusal holds what the error says; empty means that the API server accepts.
	refusal []string
}

// refused is the error that a manifest must get: every text must be in it.
func refused(texts ...string) []string { return texts }

func run(t *testing.T, kind string, manifests []manifest) {
	t.Helper()
	namespace := server.Namespace(t)
	for _, m := range manifests {
		t.Run(m.intent, func(t *testing.T) {
			t.Parallel()
			expect(t, create(t, object(t, kind, namespace, m.overlay)), m.refusal)
		})
	}
}

// edit is an update of an object that the API server has accepted.
type edit struct {
	intent  string
	before  string
	change  string
	refusal []string
}

func runEdits(t *testing.T, kind string, edits []edit) {
	t.Helper()
	namespace := server.Namespace(t)
	for _, e := range edits {
		t.Run(e.intent, func(t *testing.T) {
			t.Parallel()
			o := object(t, kind, namespace, e.before)
			if err := create(t, o); err != nil {
				t.Fatalf("create the object to edit: %v", err)
			}
			expect(t, patch(t, o, e.change), e.refusal)
		})
	}
}

// expect compares an answer of the API server with what it has to say.
func expect(t *testing.T, err error, refusal []string) {
	t.Helper()
	if len(refusal) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("accepted; want a refusal that says %q", refusal)
	}
	for _, text := range refusal {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the refusal lacks %q:\n%v", text, err)
		}
	}
}

// create asks the API server as kubectl does: an unknown or duplicate field is
// an error.
func create(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	return server.Client.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict))
}

func patch(t *testing.T, o *unstructured.Unstructured, change string) error {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(change))
	if err != nil {
		t.Fatalf("the change is no YAML: %v", err)
	}
	return server.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", body),
		client.FieldValidation(metav1.FieldValidationStrict))
}

var serial atomic.Int64

func object(t *testing.T, kind, namespace, overlay string) *unstructured.Unstructured {
	t.Helper()
	content := parse(t, base[kind])
	content["apiVersion"], content["kind"] = "valkey.gomomento.com/v1alpha1", kind
	metadata := map[string]any{"name": fmt.Sprintf("test-%d", serial.Add(1))}
	if kind == "ValkeyCluster" || kind == "ValkeyNode" {
		metadata["namespace"] = namespace
	}
	content["metadata"] = metadata
	merge(content, parse(t, overlay))
	return &unstructured.Unstructured{Object: content}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatalf("the manifest is no YAML: %v\n%s", err, text)
	}
	return content
}

// merge is a JSON merge patch (RFC 7386) in place.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}

// list writes n items of a YAML flow list.
func list(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// mapping writes n entries of a YAML flow map.
func mapping(n int, entry func(i int) string) string {
	items := list(n, entry)
	return "{" + items[1:len(items)-1] + "}"
}
