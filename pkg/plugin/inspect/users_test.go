package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestUsers(t *testing.T) {
	bound := []v1alpha1.ACLBinding{{Username: "app"}}
	withBoundConfig := func() []client.Object {
		menu := plugintest.Menu()
		for _, o := range menu {
			if c, ok := o.(*v1alpha1.ValkeyConfig); ok && c.Name == "standard" {
				c.Spec.ACL = bound
			}
		}
		return menu
	}
	tests := []struct {
		name   string
		change func(*plugintest.Fixture)
		menu   []client.Object
		denied []string
		want   Users
		err    string
	}{
		{name: "the file in force says that everybody may", want: Users{Known: true, Open: true}},
		{
			name:   "a binding of the cluster closes it, whatever can be read",
			change: func(f *plugintest.Fixture) { f.Cluster.Spec.ACL = bound },
			denied: []string{"configmaps", "valkeyconfigs"},
			want:   Users{Known: true, Bound: []string{"app"}},
		},
		{
			name: "the file in force names the users of the config",
			change: func(f *plugintest.Fixture) {
				f.ACL.Data[objects.ACLFile] = "user default off\nuser ops on #00 ~* +@all\nuser app on #00 ~a:* +get\nuser _momento_repl on #00 +psync\n"
			},
			want: Users{Known: true, Bound: []string{"app", "ops"}},
		},
		{
			name: "a bound default user is closed",
			change: func(f *plugintest.Fixture) {
				f.ACL.Data[objects.ACLFile] = "user default on #00 ~* +@read\n"
			},
			want: Users{Known: true, Bound: []string{"default"}},
		},
		{
			name: "who may not read ConfigMaps is told from the config", denied: []string{"configmaps"}, menu: withBoundConfig(),
			want: Users{Known: true, Bound: []string{"app"}},
		},
		{
			name: "who may read neither is told why", denied: []string{"configmaps", "valkeyconfigs"},
			err: "configmaps can't be read: needs get configmaps in namespace team-a",
		},
		{
			name:   "before anything is published nothing is known, and nothing amiss",
			change: func(f *plugintest.Fixture) { f.ACL = nil },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := plugintest.Active("main", 1, 1)
			if tt.change != nil {
				tt.change(f)
			}
			menu := tt.menu
			if menu == nil {
				menu = plugintest.Menu()
			}
			c := denying(plugintest.Client(append(f.Objects(), menu...)...), tt.denied...)
			s := fetch(t, c)
			s.Surroundings(t.Context(), c, Namespaced)
			got := s.Users
			if (got.Err == nil) != (tt.err == "") || got.Err != nil && got.Err.Error() != tt.err {
				t.Errorf("error = %v, want %q", got.Err, tt.err)
			}
			got.Err = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
		})
	}
}
