//go:build api

// Package install proves that the manifests of deploy can be put into a cluster
// by every way that kubectl has.
package install

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
)

// Client-side apply keeps a whole CRD in an annotation of at most 256 KiB (C-01).
func TestEveryWayOfInstalling(t *testing.T) {
	install, starter := harness.DeployPath(t, "install.yaml"), harness.DeployPath(t, "starter.yaml")
	for _, way := range []struct {
		name  string
		first []string
		again []string
		// said ends every line that the second run prints.
		said string
	}{
		{"apply", []string{"apply"}, []string{"apply"}, " unchanged"},
		{"apply on the server's side", []string{"apply", "--server-side"}, []string{"apply", "--server-side"}, " serverside-applied"},
		{"create, then replace", []string{"create"}, []string{"replace"}, " replaced"},
	} {
		t.Run(way.name, func(t *testing.T) {
			server := start(t)
			server.MustKubectl(t, append(way.first, "-f", install)...)
			server.MustKubectl(t, "wait", "--for=condition=Established", "crd", "--all")
			server.MustKubectl(t, append(way.first, "-f", starter)...)
			before := generations(t, server, install) + generations(t, server, starter)
			for _, file := range []string{install, starter} {
				out := server.MustKubectl(t, append(way.again, "-f", file)...)
				for line := range strings.Lines(out) {
					if !strings.HasSuffix(line, way.said+"\n") {
						t.Errorf("the second run says %q, want it to end with %q", line, way.said)
					}
				}
			}
			if after := generations(t, server, install) + generations(t, server, starter); after != before {
				t.Errorf("the second run changed objects:\n%s\nbecame\n%s", before, after)
			}
		})
	}
}

// generations lists what the server counts as changes of each object.
func generations(t *testing.T, server *harness.Server, file string) string {
	t.Helper()
	return server.MustKubectl(t, "get", "-f", file, "-o",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)
}

// start gives each way an API server that nothing was installed on: to delete what
// another way installed can take minutes.
func start(t *testing.T) *harness.Server {
	t.Helper()
	server, err := harness.Start(harness.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestEachCRDStaysFarBelowTheLimitOfClientSideApply(t *testing.T) {
	const limit = 200_000
	for _, o := range harness.Objects(t, harness.DeployPath(t, "install.yaml")) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if len(text) >= limit {
			t.Errorf("%s has %d bytes, want fewer than %d", o.GetName(), len(text), limit)
		}
	}
}
