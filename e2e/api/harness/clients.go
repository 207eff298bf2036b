//go:build api

package harness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The identity that deploy/install.yaml gives the manager.
const (
	ManagerNamespace      = "valkey-operator"
	ManagerServiceAccount = "valkey-operator"
)

// Namespace creates a namespace for one test. It is not deleted: nothing in this
// tier could finish its deletion.
func (s *Server) Namespace(t testing.TB, labels ...map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	for _, l := range labels {
		ns.Labels = l
	}
	if err := s.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return ns.Name
}

// As is the configuration of another user, by impersonation.
func (s *Server) As(user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(s.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c
}

// ManagerConfig is the configuration of the manager's ServiceAccount, which may
// do just what deploy/install.yaml grants.
func (s *Server) ManagerConfig() *rest.Config {
	return s.As("system:serviceaccount:"+ManagerNamespace+":"+ManagerServiceAccount,
		"system:serviceaccounts", "system:serviceaccounts:"+ManagerNamespace, "system:authenticated")
}

// ClientFor is an uncached client for a configuration.
func (s *Server) ClientFor(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	return c
}
