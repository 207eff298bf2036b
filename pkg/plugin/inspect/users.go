package inspect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// Users says who may use a cluster.
type Users struct {
	// Known is false while no users are in force yet, and when they could not be
	// read; Err then says why.
	Known bool
	Err   error
	// Open: no user is bound, so that whoever reaches the cluster may do
	// everything.
	Open bool
	// Bound are the usernames, sorted, as far as they are known.
	Bound []string
}

// fetchUsers finds out who may log in. The published ACL file tells it exactly,
// and is in the cluster's namespace; the cluster's own bindings settle at least
// that it is closed; the config, which is outside, comes last.
func fetchUsers(ctx context.Context, r client.Reader, c *v1alpha1.ValkeyCluster, scope Scope) (Users, *Menu) {
	var menu *Menu
	if scope == ClusterWide {
		menu = fetchMenu(ctx, r, c.Spec.ConfigRef)
	}
	own := usernames(c.Spec.ACL)
	var file corev1.ConfigMap
	err := kube.Get(ctx, r, client.ObjectKey{Namespace: c.Namespace, Name: objects.ACLConfigMapName(c.Name)}, &file, "configmaps")
	switch {
	case err == nil:
		return usersOf(boundIn(file.Data[objects.ACLFile])), menu
	case len(own) > 0:
		return usersOf(own), menu
	case apierrors.IsNotFound(err):
		// The manager has not published it yet.
		return Users{}, menu
	}
	config := menu
	if config == nil {
		config = fetchMenu(ctx, r, c.Spec.ConfigRef)
	}
	if config.Err != nil {
		return Users{Err: err}, menu
	}
	return usersOf(usernames(config.Resolved.ACL)), menu
}

func usersOf(names []string) Users {
	slices.Sort(names)
	return Users{Known: true, Open: len(names) == 0, Bound: slices.Compact(names)}
}

func usernames(bindings []v1alpha1.ACLBinding) []string {
	var names []string
	for _, b := range bindings {
		names = append(names, b.Username)
	}
	slices.Sort(names)
	return names
}

// boundIn reads which users of an ACL file are bound: those that are on, but for
// the manager's own, and for a default user who needs no password.
func boundIn(file string) []string {
	var names []string
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "user" || !slices.Contains(words, "on") {
			continue
		}
		name := words[1]
		if strings.HasPrefix(name, v1alpha1.SystemUserPrefix) || name == "default" && slices.Contains(words, "nopass") {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
