//go:build e2e

// Package suite runs the main job end to end: clusters are made, changed, broken
// and deleted on a real Kubernetes with real Valkey servers. `make test-e2e` runs
// it.
package suite

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
)

func TestMain(m *testing.M) { harness.Main(m, true) }
