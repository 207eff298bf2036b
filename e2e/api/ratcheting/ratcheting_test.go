//go:build api

// Package ratcheting proves that a newer rule doesn't lock an older object: what
// breaks the rule may stay as long as nobody touches it.
package ratcheting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
)

var server *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &server, harness.Options{})
}

var bases = map[string]string{
	"ValkeyCluster": `{configRef: standard, shards: 3, replicasPerShard: 1}`,
	"ValkeyConfig":  `{imageRef: valkey-9}`,
	"ValkeyImage":   `{repository: valkey/valkey, tag: 9.1.2, version: 9.1.2}`,
	"ValkeyRole":    `{}`,
	"ValkeyNode":    `{clusterName: cache, image: "valkey/valkey:9.1.2", shardIndex: 0, nodeIndex: 0, lifecycle: Joining}`,
}

// old is an object from before a rule.
type old struct {
	intent string
	kind   string
	name   string // made up if empty
	spec   string // merged into the base, breaks a rule
	change string // of another part, accepted
	worse  string // of the broken part into another broken one, refused; may be empty
}

var hash = strings.Repeat("0a", 32)

var olds = []old{
	{intent: "a name that is too long", kind: "ValkeyCluster", name: strings.Repeat("n", 60), change: `{spec: {shards: 4}}`},
	{intent: "a name with dots", kind: "ValkeyCluster", name: "my.cache", change: `{metadata: {annotations: {a: b}}}`},
	{intent: "too many shards", kind: "ValkeyCluster", spec: `{shards: 1001}`, change: `{spec: {configRef: large}}`, worse: `{spec: {shards: 1002}}`},
	{
		intent: "an annotation of the manager beside the new one", kind: "ValkeyCluster", spec: `{podAnnotations: {valkey.gomomento.com/a: b}}`,
		change: `{spec: {podAnnotations: {team: payments}}}`, worse: `{spec: {podAnnotations: {valkey.gomomento.com/b: b}}}`,
	},
	{intent: "an annotation that is none", kind: "ValkeyCluster", spec: `{podAnnotations: {"a b": c}}`, change: `{spec: {podAnnotations: {team: payments}}}`, worse: `{spec: {podAnnotations: {"c d": e}}}`},
	{
		intent: "a bad hash of another user", kind: "ValkeyCluster",
		spec:   `{acl: [{username: a, passwordHashes: [short], permissions: [{roleRef: r, keys: []}]}, {username: b, passwordHashes: [` + hash + `], permissions: [{roleRef: r, keys: []}]}]}`,
		change: `{spec: {acl: [{username: a, passwordHashes: [short], permissions: [{roleRef: r, keys: []}]}, {username: b, passwordHashes: [` + hash + `], permissions: [{roleRef: w, keys: []}]}]}}`,
		worse:  `{spec: {acl: [{username: a, passwordHashes: [other], permissions: [{roleRef: r, keys: []}]}]}}`,
	},
	{
		intent: "a bad pattern", kind: "ValkeyCluster", spec: `{acl: [{username: a, passwordHashes: [` + hash + `], permissions: [{roleRef: r, keys: [{pattern: "a b", access: read}]}]}]}`,
		change: `{spec: {paused: true}}`,
	},
	{intent: "a TLS Secret with the manager's name", kind: "ValkeyCluster", name: "locked", spec: `{tls: {secretRef: locked-operator-tls}}`, change: `{spec: {shards: 4}}`},
	{intent: "a domain with an underscore", kind: "ValkeyCluster", spec: `{externalAccess: {domain: my_domain}}`, change: `{spec: {externalAccess: {enabled: true}}}`, worse: `{spec: {externalAccess: {domain: his_domain}}}`},
	{intent: "a prefix in upper case", kind: "ValkeyCluster", spec: `{externalAccess: {hostnamePrefix: Shard}}`, change: `{spec: {externalAccess: {enabled: true}}}`, worse: `{spec: {externalAccess: {hostnamePrefix: SHARD}}}`},
	{
		intent: "a domain too long with the prefix", kind: "ValkeyCluster", spec: fmt.Sprintf(`{externalAccess: {domain: %s}}`, strings.Repeat("d.", 123)+"d"),
		change: `{spec: {externalAccess: {enabled: true}}}`, worse: `{spec: {externalAccess: {hostnamePrefix: shards}}}`,
	},
	{intent: "hostnames without a domain", kind: "ValkeyCluster", spec: `{externalAccess: {preferredEndpointType: hostname}}`, change: `{spec: {externalAccess: {enabled: true}}}`},
	{
		intent: "gateway ports too high", kind: "ValkeyCluster", spec: `{externalAccess: {gateway: {gatewayRef: {name: g}, basePort: 65534}}}`,
		change: `{spec: {configRef: large}}`, worse: `{spec: {shards: 2}}`,
	},
	{intent: "an unknown zone spread", kind: "ValkeyCluster", spec: `{placement: {zoneSpread: strict}}`, change: `{spec: {placement: {zones: [a]}}}`, worse: `{spec: {placement: {zoneSpread: strictest}}}`},
	{intent: "a Secret that can't be", kind: "ValkeyCluster", spec: `{tls: {secretRef: a/b}}`, change: `{spec: {shards: 4}}`, worse: `{spec: {tls: {secretRef: c/d}}}`},
	{intent: "a toleration of nothing", kind: "ValkeyCluster", spec: `{placement: {tolerations: [{effect: NoSchedule}]}}`, change: `{spec: {placement: {zones: [a]}}}`},
	{
		intent: "a node selector value that no label can have", kind: "ValkeyCluster", spec: `{placement: {nodeSelector: {pool: two words}}}`,
		change: `{spec: {placement: {zones: [a]}}}`, worse: `{spec: {placement: {nodeSelector: {pool: three words here}}}}`,
	},

	{intent: "a directive that is none beside the new one", kind: "ValkeyConfig", spec: `{valkey: {"my key": x}}`, change: `{spec: {valkey: {maxclients: "10"}}}`, worse: `{spec: {valkey: {"your key": x}}}`},
	{intent: "a value with a line break beside the new one", kind: "ValkeyConfig", spec: `{valkey: {save: "1\n2"}}`, change: `{spec: {valkey: {maxclients: "10"}}}`, worse: `{spec: {valkey: {save: "3\n4"}}}`},
	{intent: "negative memory", kind: "ValkeyConfig", spec: `{resources: {memory: "-1"}}`, change: `{spec: {resources: {cpu: 100m}}}`, worse: `{spec: {resources: {memory: "-2"}}}`},
	{intent: "a repository with a tag", kind: "ValkeyImage", spec: `{repository: "valkey:9"}`, change: `{spec: {tag: 9.1.3}}`, worse: `{spec: {repository: "valkey:10"}}`},
	{intent: "a version with a v", kind: "ValkeyImage", spec: `{version: v9}`, change: `{spec: {tag: 9.1.3}}`, worse: `{spec: {version: v10}}`},
	{intent: "a category with @", kind: "ValkeyRole", spec: `{categories: [{name: "@read", access: allow}]}`, change: `{spec: {commands: [{name: get, access: allow}]}}`, worse: `{spec: {categories: [{name: "@write", access: allow}]}}`},
	{intent: "no image", kind: "ValkeyNode", spec: `{image: ""}`, change: `{spec: {lifecycle: Active}}`},
	{intent: "a setting with a line break", kind: "ValkeyNode", spec: `{valkeySettings: {save: "1\n2"}}`, change: `{spec: {lifecycle: Leaving}}`},
}

// The objects are made under CRDs without any rule, then the real ones come.
func TestOldObjectsCanStillBeUpdated(t *testing.T) {
	definitions := crds(t)
	for _, crd := range definitions {
		loose := crd.DeepCopy()
		loosen(loose.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if err := server.Client.Create(t.Context(), loose); err != nil {
			t.Fatal(err)
		}
	}
	server.MustKubectl(t, "wait", "--for=condition=Established", "crd", "--all")
	namespace := server.Namespace(t)
	objects := make([]*unstructured.Unstructured, len(olds))
	for i, o := range olds {
		if objects[i] = object(t, o, namespace, fmt.Sprintf("old-%d", i)); o.intent == "" {
			t.Fatal("an old object without an intent")
		}
		if err := create(t.Context(), objects[i]); err != nil {
			t.Fatalf("create an object from before the rule (%s): %v", o.intent, err)
		}
	}
	for _, crd := range definitions {
		tighten(t, crd)
	}

	for i, o := range olds {
		t.Run(o.kind+" with "+o.intent, func(t *testing.T) {
			// That the rule is in force now, or the rest would prove nothing.
			again := object(t, o, server.Namespace(t), o.name)
			if o.name == "" {
				again.SetName(fmt.Sprintf("new-%d", i))
			}
			eventually(t, "a new object like this is refused", func(ctx context.Context) bool {
				return apierrors.IsInvalid(server.Client.Create(ctx, again.DeepCopy(), client.DryRunAll))
			})
			if err := patch(t, objects[i], `{metadata: {labels: {touched: "true"}}}`); err != nil {
				t.Errorf("a label can't be set: %v", err)
			}
			if err := patch(t, objects[i], o.change); err != nil {
				t.Errorf("another part can't be changed: %v", err)
			}
			if o.kind == "ValkeyCluster" || o.kind == "ValkeyNode" {
				if err := patchStatus(t, objects[i]); err != nil {
					t.Errorf("the status can't be written: %v", err)
				}
			}
			if o.worse != "" {
				if err := patch(t, objects[i], o.worse); !apierrors.IsInvalid(err) {
					t.Errorf("the broken part can be broken anew: %v", err)
				}
			}
		})
	}
}

func crds(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	objects := harness.Objects(t, harness.DeployPath(t, "install.yaml"))
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			all = append(all, harness.Find[apiextensionsv1.CustomResourceDefinition](t, objects, o.GetKind(), o.GetName()))
		}
	}
	if len(all) != len(bases) {
		t.Fatalf("install.yaml holds %d CRDs, want %d", len(all), len(bases))
	}
	return all
}

// loosen removes every rule but types and required fields.
func loosen(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Enum, s.Pattern, s.Format = nil, nil, "", ""
	s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MinProperties, s.MaxProperties = nil, nil, nil, nil, nil, nil
	s.Minimum, s.Maximum = nil, nil
	for name, property := range s.Properties {
		loosen(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		loosen(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		loosen(s.AdditionalProperties.Schema)
	}
}

func tighten(t *testing.T, ruled *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(ruled), crd); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions = ruled.Spec.Versions
	if err := server.Client.Update(t.Context(), crd); err != nil {
		t.Fatalf("bring in the rules of %s: %v", ruled.Name, err)
	}
}

func object(t *testing.T, o old, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	spec := parse(t, bases[o.kind])
	for key, value := range parse(t, o.spec) {
		spec[key] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "valkey.gomomento.com/v1alpha1", "kind": o.kind, "spec": spec,
	}}
	u.SetName(name)
	if o.name != "" {
		u.SetName(o.name)
	}
	if slices.Contains([]string{"ValkeyCluster", "ValkeyNode"}, o.kind) {
		u.SetNamespace(namespace)
	}
	return u
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatalf("not YAML: %v\n%s", err, text)
	}
	return content
}

// create waits for the API server to serve a kind that it has just learnt.
func create(ctx context.Context, o *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = server.Client.Create(ctx, o)
		return last == nil || !apierrors.IsNotFound(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

func patch(t *testing.T, o *unstructured.Unstructured, change string) error {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(change))
	if err != nil {
		t.Fatal(err)
	}
	return server.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", body))
}

func patchStatus(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	status := `{"status": {"message": "seen"}}`
	if o.GetKind() == "ValkeyNode" {
		status = `{"status": {"podIP": "10.0.0.1"}}`
	}
	return server.Client.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(status)))
}

func eventually(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	if err != nil {
		t.Fatalf("within 30 s it was not so that %s", what)
	}
}
