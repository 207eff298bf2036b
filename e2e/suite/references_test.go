//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// reference is one way in which what a cluster refers to is missing or wrong.
type reference struct {
	// spoil publishes what is there, and changes the cluster to use it. Names begin
	// with a prefix of the test's own, as the menu is shared.
	spoil func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster)
	// reason and words of the condition; %s in a word is the prefix.
	reason string
	words  []string
	// heal corrects it, without touching the cluster.
	heal func(s *harness.Space, prefix string)
}

const someHash = "da7efbc48e1b6dd843a5e4c175272466d482126349b93ff90a387831654aaf48"

func binding(user, role string) v1alpha1.ACLBinding {
	return v1alpha1.ACLBinding{
		Username: user, PasswordHashes: []v1alpha1.PasswordHash{someHash},
		Permissions: []v1alpha1.Permission{{RoleRef: role, Keys: []v1alpha1.KeyPermission{{Pattern: "*", Access: v1alpha1.KeyRead}}}},
	}
}

func config(name string, spec v1alpha1.ValkeyConfigSpec) *v1alpha1.ValkeyConfig {
	return &v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func role(name string) *v1alpha1.ValkeyRole {
	return &v1alpha1.ValkeyRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ValkeyRoleSpec{Categories: []v1alpha1.CategoryRule{{Name: "read", Access: v1alpha1.AccessAllow}}},
	}
}

// image returns a ValkeyImage of the Valkey under test that says it is a version.
func image(s *harness.Space, name, version string) *v1alpha1.ValkeyImage {
	at := strings.LastIndex(s.ValkeyImage.Ref, ":")
	return &v1alpha1.ValkeyImage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ValkeyImageSpec{Repository: s.ValkeyImage.Ref[:at], Tag: s.ValkeyImage.Ref[at+1:], Version: version},
	}
}

// useConfig publishes <prefix>-config and lets the cluster use it.
func useConfig(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster, spec v1alpha1.ValkeyConfigSpec) {
	s.Publish(config(prefix+"-config", spec))
	c.Spec.ConfigRef = prefix + "-config"
}

// editConfig changes <prefix>-config.
func editConfig(change func(*v1alpha1.ValkeyConfigSpec)) func(*harness.Space, string) {
	return func(s *harness.Space, prefix string) {
		edit(s, &v1alpha1.ValkeyConfig{}, prefix+"-config", func(c *v1alpha1.ValkeyConfig) { change(&c.Spec) })
	}
}

var references = map[string]reference{
	"a config that doesn't exist": {
		spoil:  func(_ *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) { c.Spec.ConfigRef = prefix + "-late" },
		reason: v1alpha1.ReasonConfigNotFound,
		words:  []string{"%s-late", harness.ConfigName, "standard"},
		heal: func(s *harness.Space, prefix string) {
			s.Publish(config(prefix+"-late", v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName}))
		},
	},
	"a base config that doesn't exist": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: prefix + "-late"})
		},
		reason: v1alpha1.ReasonConfigNotFound,
		words:  []string{"%s-late", "%s-config", "standard"},
		heal: func(s *harness.Space, prefix string) {
			s.Publish(config(prefix+"-late", v1alpha1.ValkeyConfigSpec{ImageRef: harness.ImageName}))
		},
	},
	"configs that go in a circle": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: prefix + "-other"})
			s.Publish(config(prefix+"-other", v1alpha1.ValkeyConfigSpec{BaseRef: prefix + "-config"}))
		},
		reason: v1alpha1.ReasonConfigChainInvalid,
		words:  []string{"%s-config", "%s-other"},
		heal:   editConfig(func(c *v1alpha1.ValkeyConfigSpec) { c.BaseRef = harness.ConfigName }),
	},
	"no image": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{})
		},
		reason: v1alpha1.ReasonImageNotSet,
		words:  []string{"%s-config", "imageRef"},
		heal:   editConfig(func(c *v1alpha1.ValkeyConfigSpec) { c.ImageRef = harness.ImageName }),
	},
	"an image that doesn't exist": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, ImageRef: prefix + "-image"})
		},
		reason: v1alpha1.ReasonImageNotFound,
		words:  []string{"%s-image", harness.ImageName},
		heal: func(s *harness.Space, prefix string) {
			s.Publish(image(s, prefix+"-image", s.ValkeyImage.Version))
		},
	},
	"an image of a Valkey that is too old": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			s.Publish(image(s, prefix+"-image", "8.1.1"))
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, ImageRef: prefix + "-image"})
		},
		reason: v1alpha1.ReasonVersionNotSupported,
		words:  []string{"%s-image", "8.1.1", "9.0"},
		heal: func(s *harness.Space, prefix string) {
			edit(s, &v1alpha1.ValkeyImage{}, prefix+"-image", func(i *v1alpha1.ValkeyImage) { i.Spec.Version = s.ValkeyImage.Version })
		},
	},
	"a role that doesn't exist": {
		spoil: func(_ *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			c.Spec.ACL = []v1alpha1.ACLBinding{binding("app", prefix+"-role")}
		},
		reason: v1alpha1.ReasonRoleNotFound,
		words:  []string{"%s-role", "app", "read-only"},
		heal:   func(s *harness.Space, prefix string) { s.Publish(role(prefix + "-role")) },
	},
	"a directive that is the manager's": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, Valkey: map[string]v1alpha1.SettingValue{"PORT": "7000"}})
		},
		reason: v1alpha1.ReasonSettingRefused,
		words:  []string{"%s-config", "PORT"},
		heal:   editConfig(func(c *v1alpha1.ValkeyConfigSpec) { c.Valkey = nil }),
	},
	"more maxmemory than memory": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, Valkey: map[string]v1alpha1.SettingValue{"maxmemory": "129mb"}})
		},
		reason: v1alpha1.ReasonMemoryExceeded,
		words:  []string{"129mb", "128Mi"},
		heal: editConfig(func(c *v1alpha1.ValkeyConfigSpec) {
			memory := resource.MustParse("192Mi")
			c.Resources = &v1alpha1.Resources{Memory: &memory}
		}),
	},
	"a username that the config has too": {
		spoil: func(s *harness.Space, prefix string, c *v1alpha1.ValkeyCluster) {
			s.Publish(role(prefix + "-role"))
			useConfig(s, prefix, c, v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, ACL: []v1alpha1.ACLBinding{binding("app", prefix+"-role")}})
			c.Spec.ACL = []v1alpha1.ACLBinding{binding("app", prefix+"-role")}
		},
		reason: v1alpha1.ReasonDuplicateUsername,
		words:  []string{"app"},
		heal:   editConfig(func(c *v1alpha1.ValkeyConfigSpec) { c.ACL[0].Username = "other" }),
	},
}

// edit changes an object of the menu.
func edit[T client.Object](s *harness.Space, obj T, name string, change func(T)) {
	s.Eventually("edit "+name, harness.ActiveWithin, func() error {
		ctx := s.Context()
		if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
			return err
		}
		change(obj)
		return s.Client.Update(ctx, obj)
	})
}

// What is wrong with a reference is said in condition and event, with what exists
// instead; nothing is made meanwhile; and the cluster comes up by itself once the
// reference is right.
func TestWrongReferencesAreNamedAndHealByThemselves(t *testing.T) {
	t.Parallel()
	for name, ref := range references {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 1)
			c := s.Cluster("c", 1, 0)
			ref.spoil(s, s.Name, c)
			s.Create(c)
			var words []string
			for _, word := range ref.words {
				words = append(words, strings.ReplaceAll(word, "%s", s.Name))
			}
			s.WaitCondition("c", v1alpha1.ConditionConfigResolved, metav1.ConditionFalse, ref.reason, words...)
			s.Eventually("an event says so", harness.ActiveWithin, func() error {
				// For a moment the manager may not know what was published just before, and
				// say so; what counts is that it says the right thing, once.
				said := 0
				for _, e := range s.EventsOf("c", ref.reason) {
					if e.Type == corev1.EventTypeWarning && harness.Contains(e.Message, words...) == nil {
						said += max(1, int(e.Count))
					}
				}
				if said != 1 {
					return fmt.Errorf("it was said %d times", said)
				}
				return nil
			})
			if r := s.Valkey("status", "c"); r.Code != 1 {
				t.Errorf("status of a cluster that can't be made: %s", r)
			} else if err := harness.Contains(r.Stdout, words...); err != nil {
				t.Errorf("status: %v", err)
			}
			if nodes := s.Nodes("c"); len(nodes) > 0 {
				t.Errorf("%d nodes were made all the same", len(nodes))
			}
			ref.heal(s, s.Name)
			s.WaitActive("c")
		})
	}
}

// What the schema refuses never gets so far.
func TestWrongFieldsAreRefusedWithTheirName(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 0)
	plain, encrypted := s.Cluster("plain", 1, 0), s.Cluster("encrypted", 1, 0)
	plain.Spec.Paused, encrypted.Spec.Paused = true, true
	encrypted.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(plain)
	s.Create(encrypted)
	long := strings.Repeat("a", 54)
	manifest := func(name string, shards, replicas int) string {
		return fmt.Sprintf("apiVersion: %s\nkind: ValkeyCluster\nmetadata: {name: %s}\nspec: {configRef: standard, shards: %d, replicasPerShard: %d}\n",
			v1alpha1.GroupVersion, name, shards, replicas)
	}
	tests := map[string]struct {
		stdin string
		args  []string
		words []string
	}{
		"a name that is too long":    {manifest(long, 1, 0), []string{"apply", "-f", "-"}, []string{"metadata.name", "53 characters"}},
		"a name with a dot":          {manifest("a.b", 1, 0), []string{"apply", "-f", "-"}, []string{"metadata.name", "DNS-1035"}},
		"no shards":                  {manifest("c", 0, 0), []string{"apply", "-f", "-"}, []string{"spec.shards", "greater than or equal to 1"}},
		"too many replicas":          {manifest("c", 1, 6), []string{"apply", "-f", "-"}, []string{"spec.replicasPerShard", "less than or equal to 5"}},
		"TLS added after creation":   {"", []string{"patch", "vkc", "plain", "--type=merge", "-p", `{"spec":{"tls":{"secretRef":"cert"}}}`}, []string{"spec.tls", "fixed at creation"}},
		"TLS taken off":              {"", []string{"patch", "vkc", "encrypted", "--type=merge", "-p", `{"spec":{"tls":null}}`}, []string{"spec.tls", "fixed at creation"}},
		"the manager's own copy":     {"", []string{"patch", "vkc", "encrypted", "--type=merge", "-p", `{"spec":{"tls":{"secretRef":"encrypted-operator-tls"}}}`}, []string{"spec.tls.secretRef", "own copy"}},
		"scaled to nothing":          {"", []string{"scale", "vkc", "plain", "--replicas=0"}, []string{"spec.shards"}},
		"a reserved annotation":      {"", []string{"patch", "vkc", "plain", "--type=merge", "-p", `{"spec":{"podAnnotations":{"valkey.gomomento.com/x":"y"}}}`}, []string{"podAnnotations"}},
		"a system user in a binding": {"", []string{"patch", "vkc", "plain", "--type=merge", "-p", `{"spec":{"acl":[{"username":"_momento_x","passwordHashes":["` + someHash + `"],"permissions":[{"roleRef":"r","keys":[]}]}]}}`}, []string{"username"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := s.RunKubectl(t.Context(), tt.stdin, append(tt.args, "-n", s.Name)...)
			if r.Code == 0 {
				t.Fatalf("it was accepted: %s", r)
			}
			if err := harness.Contains(r.Stderr, tt.words...); err != nil {
				t.Error(err)
			}
		})
	}
}
