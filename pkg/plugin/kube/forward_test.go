package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
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

// podServer forwards ports as a kubelet does: port 6379 echoes, nothing listens on
// others. It speaks SPDY only, as older API servers do.
func podServer(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "no WebSocket here", http.StatusBadRequest)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			t.Error(err)
			return
		}
		failures := make(chan httpstream.Stream, 16)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				failures <- stream
				return nil
			}
			failure := <-failures
			go func() {
				if port := stream.Headers().Get(corev1.PortHeader); port == "6379" {
					_, _ = io.Copy(stream, stream)
				} else {
					_, _ = io.WriteString(failure, "connection refused: port "+port)
				}
				failure.Close()
				stream.Close()
			}()
			return nil
		})
		if conn == nil {
			return
		}
		select {
		case <-conn.CloseChan():
		case <-r.Context().Done():
		}
	}
}

func TestAForwardedPortIsAConnectionWithDeadlinesAndTheOtherSidesErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	f := forwarderTo(t, podServer(t))
	conn, err := f.Dial(t.Context(), "demo-3fa2c", 6379)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 5)
	if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != "hello" {
		t.Errorf("%q, %v", reply, err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(reply); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	conn.Close()
	closed, err := f.Dial(t.Context(), "demo-3fa2c", 6380)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Read(reply); err == nil || err.Error() != "connection refused: port 6380" {
		t.Errorf("%v", err)
	}
}
