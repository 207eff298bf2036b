//go:build api

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var apiServer *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &apiServer, harness.Options{Install: true})
}

// scraped waits until what the manager tells Prometheus is as wished.
func scraped(t *testing.T, address string, wished func(text string) bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := ""
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if text = string(body); response.StatusCode == http.StatusOK && wished(text) {
				return text
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("the metrics are not as wished: %s", text)
	return ""
}

// With the flag the manager tells of every cluster, and no longer of one that is gone.
func TestMetricsFollowTheClusters(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"--leader-elect=false", "--metrics-bind-address", address}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := newManager(apiServer.ManagerConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	}()

	namespace := apiServer.Namespace(t, nil)
	cluster := &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "nothing", Shards: 2, ReplicasPerShard: 1},
	}
	if err := apiServer.Client.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	labels := fmt.Sprintf(`cluster="c",namespace=%q`, namespace)
	scraped(t, address, func(text string) bool {
		return strings.Contains(text, "valkey_cluster_wished_shards{"+labels+"} 2\n") &&
			strings.Contains(text, "valkey_cluster_condition{"+labels+`,status="False",type="ConfigResolved"} 1`+"\n") &&
			strings.Contains(text, "valkey_reconcile_total{"+labels+`,result="success"}`)
	})
	if err := apiServer.Client.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	text := scraped(t, address, func(text string) bool { return !strings.Contains(text, labels) })
	if !strings.Contains(text, "valkey_clusters{") {
		t.Errorf("the metrics are empty: %s", text)
	}
}
