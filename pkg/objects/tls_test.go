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

func TestTLSFilesThatAreMissingOrAmbiguousAreNamed(t *testing.T) {
	for name, change := range map[string]func(map[string][]byte){
		"tls-*.key": func(data map[string][]byte) {
			for key := range data {
				if strings.HasSuffix(key, ".key") {
					delete(data, key)
				}
			}
		},
		"ca-*.crt": func(data map[string][]byte) { data["ca-0000000000000000.crt"] = []byte("old") },
	} {
		secret := objects.TLSSecret(cluster(), objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf"), Key: []byte("key")})
		change(secret.Data)
		_, err := objects.TLSFilesOf(secret)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "my-app/my-cluster-operator-tls") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
