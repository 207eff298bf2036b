// Package harness runs the end-to-end tests, which are built with the tag "e2e",
// on a real Kubernetes with real Valkey servers. It installs the manager by its
// manifest, publishes a menu, and gives each test a namespace of its own that
// enforces the restricted Pod Security Standard.
//
// The Kubernetes is the one that E2E_KUBECONFIG names, as `make test-e2e` sets it;
// the ambient kubeconfig is never read. What needs the machine of the nodes (the
// audit log, processes, sockets) can only be had on the local Kubernetes of
// e2e/cluster: elsewhere such a check says so, see Env.CannotCheck.
package harness
