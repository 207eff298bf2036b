package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// patience is a net.Error that timed out.
type patience struct{}

func (patience) Error() string   { return "context deadline exceeded" }
func (patience) Timeout() bool   { return true }
func (patience) Temporary() bool { return true }

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	refused := errors.New(`User "eve" cannot list resource "pods" in API group "" in the namespace "a"`)
	request := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/namespaces/a/pods?limit=5", Err: err}
	}
	tests := []struct {
		name string
		err  error
		r    Request
		want string
	}{
		{"what may not be read", apierrors.NewForbidden(pods, "", refused), Request{"list", "pods", "a"}, "pods can't be read: needs list pods in namespace a"},
		{"what may not be read anywhere", apierrors.NewForbidden(pods, "", refused), Request{"list", "pods", ""}, "pods can't be read: needs list pods in the whole cluster"},
		{"our kinds are named as in a role", apierrors.NewForbidden(pods, "", refused), Request{"create", "valkeyclusters", "a"}, "valkeyclusters can't be created: needs create valkeyclusters.valkey.gomomento.com in namespace a"},
		{"a quota is no missing permission", apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: q")), Request{"create", "pods", "a"}, `create pods: pods "x" is forbidden: exceeded quota: q`},
		{"a login that is over", apierrors.NewUnauthorized("no"), Request{"list", "pods", "a"}, "the API server doesn't accept your credentials: log in again, or choose others with --context or --user"},
		{
			"CRDs that are not installed", apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "valkeyclusters"}, "demo", "404 page not found", 0, true),
			Request{"get", "valkeyclusters", "a"},
			"the API server doesn't know valkeyclusters.valkey.gomomento.com: the CRDs of kubectl-valkey are not installed there; install them (deploy/install.yaml), or choose another cluster with --context",
		},
		{"an object that doesn't exist", apierrors.NewNotFound(pods, "x"), Request{"get", "pods", "a"}, `get pods: pods "x" not found`},
		{"a server that is away", request(errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")), Request{"list", "pods", "a"}, "can't reach the API server https://10.0.0.1:6443: dial tcp 10.0.0.1:6443: connect: connection refused; check --context and the network"},
		{"a server that is slow", request(patience{}), Request{"list", "pods", "a"}, "the API server https://10.0.0.1:6443 did not answer in time: context deadline exceeded; check the network, or allow more with --request-timeout"},
		{"a login that fails", request(errors.New("getting credentials: exec: executable corp failed with exit code 3")), Request{"list", "pods", "a"}, "can't log in to the API server https://10.0.0.1:6443: getting credentials: exec: executable corp failed with exit code 3"},
		{"anything else", errors.New("etcdserver: request timed out"), Request{"list", "pods", "a"}, "list pods: etcdserver: request timed out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Explain(fmt.Errorf("wrapped: %w", tt.err), tt.r)
			if tt.want[:4] == "list" || tt.want[:4] == "get " || tt.want[:7] == "create " {
				err = Explain(tt.err, tt.r) // these repeat the error's own text
			}
			if err.Error() != tt.want {
				t.Errorf("Explain() = %q, want %q", err, tt.want)
			}
			if !errors.Is(err, tt.err) {
				t.Error("the error is no longer in it")
			}
			if again := Explain(err, Request{"watch", "events", "b"}); again.Error() != tt.want {
				t.Errorf("explained twice: %q", again)
			}
		})
	}
}

func TestExplainLeavesInterruptsAlone(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: context.Canceled}
	if got := Explain(err, Request{"list", "pods", "a"}); !errors.Is(got, err) || got.Error() != err.Error() {
		t.Errorf("Explain() = %v", got)
	}
	if Explain(nil, Request{}) != nil {
		t.Error("no error became one")
	}
}

func TestOnlyMissingKindsAreNotInstalled(t *testing.T) {
	if NotInstalled(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")) {
		t.Error("a missing object is taken for a missing kind")
	}
}
