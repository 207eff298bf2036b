package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func forwarderTo(t *testing.T, handler http.HandlerFunc) *Forwarder {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	f, err := access(t, "--server", server.URL).Forwarder("team-a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestAMissingPermissionToForwardPortsIsNamedAndAskedForOnce(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	var asked atomic.Int32
	f := forwarderTo(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if want := "/api/v1/namespaces/team-a/pods/demo-3fa2c/portforward"; r.URL.Path != want {
			t.Errorf("asked for %s, want %s", r.URL.Path, want)
		}
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "demo-3fa2c", errors.New(`User "eve" cannot create resource "pods/portforward"`))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		status := refused.Status()
		status.Kind, status.APIVersion = "Status", "v1"
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	})
	var first int32
	for range 3 {
		_, err := f.Dial(t.Context(), "demo-3fa2c", 6379)
		if err == nil || err.Error() != "ports of pods can't be forwarded: needs create pods/portforward in namespace team-a" {
			t.Fatalf("%v", err)
		}
		if first == 0 {
			first = asked.Load()
		}
	}
	if asked.Load() != first {
		t.Errorf("asked %d times, and %d times for the first connection", asked.Load(), first)
	}
}

func TestAnAPIServerThatDoesNotAnswerDoesNotHoldADial(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	over := make(chan struct{})
	f := forwarderTo(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := f.Dial(ctx, "demo-3fa2c", 6379)
	if err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
}
