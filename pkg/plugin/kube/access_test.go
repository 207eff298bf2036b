package kube

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func access(t *testing.T, args ...string) *Access {
	t.Helper()
	a := NewAccess()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCommandsThatAreSuggestedReachTheSamePlace(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "kubectl valkey status demo -n team-a"},
		{[]string{"--context", "staging"}, "kubectl valkey status demo -n team-a --context staging"},
		{[]string{"--kubeconfig", "k", "--cluster", "c", "--user", "u", "--as", "jane"}, "kubectl valkey status demo -n team-a --cluster c --user u --kubeconfig k --as jane"},
		// A token is a secret, and screens are shared.
		{[]string{"--token", "hunter2"}, "kubectl valkey status demo -n team-a"},
	} {
		if got := access(t, tt.args...).Command("valkey status demo", "team-a"); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestTheFixedMappingIsRight(t *testing.T) {
	scheme, mapper := NewScheme(), NewMapper()
	for _, r := range resources {
		obj, err := scheme.New(r.gvk)
		if err != nil {
			t.Errorf("%s is not in the scheme: %v", r.gvk, err)
			continue
		}
		namespaced, err := apiutil.IsObjectNamespaced(obj, scheme, mapper)
		if err != nil || namespaced != (r.scope.Name() == meta.RESTScopeNameNamespace) {
			t.Errorf("%s: namespaced %v, %v", r.gvk, namespaced, err)
		}
	}
}
