//go:build api

// Package validation proves what the API server accepts and refuses, and that
// what it says names the field and what to do.
package validation

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
)

var server *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &server, harness.Options{CRDs: true})
}
