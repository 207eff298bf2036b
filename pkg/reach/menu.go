package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Menu reads everything that clusters may refer to.
func Menu(ctx context.Context, reader client.Reader) (settings.Catalog, error) {
	var configs v1alpha1.ValkeyConfigList
	var images v1alpha1.ValkeyImageList
	var roles v1alpha1.ValkeyRoleList
	if err := errors.Join(reader.List(ctx, &configs), reader.List(ctx, &images), reader.List(ctx, &roles)); err != nil {
		return settings.Catalog{}, fmt.Errorf("read the menu: %w", err)
	}
	return settings.Catalog{
		Configs: byName(configs.Items, func(c *v1alpha1.ValkeyConfig) string { return c.Name }),
		Images:  byName(images.Items, func(i *v1alpha1.ValkeyImage) string { return i.Name }),
		Roles:   byName(roles.Items, func(role *v1alpha1.ValkeyRole) string { return role.Name }),
	}, nil
}

func byName[T any](items []T, name func(*T) string) map[string]*T {
	out := make(map[string]*T, len(items))
	for i := range items {
		out[name(&items[i])] = &items[i]
	}
	return out
}

// ACLInput is what a cluster's users follow from. Bindings are those of its config.
// While the passwords are rotated, both the old and the new ones log in.
func ACLInput(bindings []v1alpha1.ACLBinding, roles map[string]*v1alpha1.ValkeyRole, cluster *v1alpha1.ValkeyCluster, p objects.Passwords) acl.Input {
	in := acl.Input{
		Bindings: slices.Concat(bindings, cluster.Spec.ACL), Roles: roles,
		OperatorHashes:    []string{acl.Hash(p.Operator)},
		ReplicationHashes: []string{acl.Hash(p.Replication)},
	}
	if p.Rotating() {
		in.OperatorHashes = append(in.OperatorHashes, acl.Hash(p.NextOperator))
		in.ReplicationHashes = append(in.ReplicationHashes, acl.Hash(p.NextReplication))
	}
	return in
}
