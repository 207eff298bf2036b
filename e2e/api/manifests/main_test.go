//go:build api

// Package manifests proves what deploy/install.yaml grants and runs, and that the
// starter menu is one that clusters can use.
package manifests

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
)

var server *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &server, harness.Options{Install: true, Audit: true})
}
