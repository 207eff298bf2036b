package objects_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func TestTLSFilesAreNamedByContent(t *testing.T) {
	material := objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf"), Key: []byte("key")}
	secret := objects.TLSSecret(cluster(), material)
	golden(t, "tls-secret", secret)

	files, err := objects.TLSFilesOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(material.Files(), files); diff != "" {
		t.Error(diff)
	}

	material.CA = []byte("another ca")
	other := material.Files()
	if other.CA == files.CA || other.Certificate != files.Certificate || other.Key != files.Key {
		t.Errorf("another CA turned %+v into %+v", files, other)
	}
}

func TestACopyThatIsNotWholeIsNamed(t *testing.T) {
	material := objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf"), Key: []byte("key")}
	for name, change := range map[string]func(map[string][]byte){
		"lacks its file " + material.Files().Key: func(data map[string][]byte) { delete(data, material.Files().Key) },
		"under current":                          func(data map[string][]byte) { delete(data, objects.TLSCurrentFile) },
		"changed by hand":                        func(data map[string][]byte) { data[material.Files().CA] = []byte("another") },
	} {
		secret := objects.TLSSecret(cluster(), material)
		change(secret.Data)
		_, err := objects.TLSMaterialOf(secret)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "my-app/my-cluster-operator-tls") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pod that starts while the copy changes was told the names of the files before.
func TestACopyKeepsTheFilesOfTheOneBeforeAndNoOlder(t *testing.T) {
	first := objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf 1"), Key: []byte("key 1")}
	second := objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf 2"), Key: []byte("key 2")}
	third := objects.TLSMaterial{CA: []byte("ca 3"), Certificate: []byte("leaf 2"), Key: []byte("key 2")}
	secret := objects.TLSSecret(cluster(), first)
	for _, next := range []objects.TLSMaterial{second, third} {
		secret.Data = objects.TLSData(next, secret)
		if got, err := objects.TLSMaterialOf(secret); err != nil || !cmp.Equal(got, next) {
			t.Fatalf("the current material is %+v, %v", got, err)
		}
	}
	for name, want := range map[string]bool{
		first.Files().CA: true, first.Files().Certificate: false, first.Files().Key: false, second.Files().Key: true, third.Files().CA: true,
	} {
		if _, ok := secret.Data[name]; ok != want {
			t.Errorf("%s is in the copy: %t", name, ok)
		}
	}
}
