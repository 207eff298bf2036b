package manifests_test

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/manifests"
)

const install = `# a comment
apiVersion: v1
kind: Namespace
metadata:
  name: valkey-operator
---
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: valkey-operator
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: manager
        image: kubectl-valkey/manager:released
        args: [--leader-elect]
`

func TestManagerChangesTheImageAndMarksTheBuild(t *testing.T) {
	out, err := manifests.Manager([]byte(install), "kubectl-valkey/manager:new", "build-7")
	if err != nil {
		t.Fatal(err)
	}
	got := string(out)
	for _, want := range []string{
		"image: kubectl-valkey/manager:new", "valkey.gomomento.com/build: build-7", "- --leader-elect", "kind: Namespace", "replicas: 1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "released") {
		t.Errorf("keeps the old image:\n%s", got)
	}
	if n := strings.Count(got, "---\n"); n != 2 {
		t.Errorf("want 2 documents, got %d:\n%s", n, got)
	}
}

func TestManagerRefusesWhatHasNoDeployment(t *testing.T) {
	if _, err := manifests.Manager([]byte("kind: Namespace\n"), "a:b", "c"); err == nil || !strings.Contains(err.Error(), "no Deployment") {
		t.Errorf("got %v", err)
	}
}

const starter = `
apiVersion: valkey.gomomento.com/v1alpha1
kind: ValkeyImage
metadata: {name: valkey-9}
spec: {repository: valkey/valkey, tag: 9.0.0, version: 9.0.0}
---
apiVersion: valkey.gomomento.com/v1alpha1
kind: ValkeyConfig
metadata: {name: standard}
spec: {imageRef: valkey-9}
`

func TestMenuLeadsToTheImageGiven(t *testing.T) {
	out, err := manifests.Menu([]byte(starter), "mirror.example:5000/valkey/valkey:9.1.2-rebuild", "9.1.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"repository: mirror.example:5000/valkey/valkey", "tag: 9.1.2-rebuild", "version: 9.1.2", "imageRef: valkey-9",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

func TestMenuRefusesAnImageWithoutTag(t *testing.T) {
	for _, ref := range []string{"valkey/valkey", "mirror.example:5000/valkey"} {
		if _, err := manifests.Menu([]byte(starter), ref, "9.1.2"); err == nil || !strings.Contains(err.Error(), "has no tag") {
			t.Errorf("%s: got %v", ref, err)
		}
	}
}
