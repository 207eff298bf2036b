package kube

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// completionPatience is how long a shell waits for names. Nobody waits longer
// for a TAB.
const completionPatience = 3 * time.Second

// CompleteNames offers the names in list, of the namespace at hand if the kind
// has one. A server that can't be asked offers nothing: a shell has no place for
// errors.
func (a *Access) CompleteNames(list client.ObjectList, namespaced bool, opts ...client.ListOption) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.names(cmd.Context(), list, namespaced, toComplete, opts), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteCluster offers cluster names for the only argument.
func (a *Access) CompleteCluster(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(&v1alpha1.ValkeyClusterList{}, true)(cmd, args, toComplete)
}

// CompleteNamespaces offers the names of namespaces.
func (a *Access) CompleteNamespaces(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.CompleteNames(&corev1.NamespaceList{}, false)(cmd, args, toComplete)
}

func (a *Access) names(ctx context.Context, list client.ObjectList, namespaced bool, prefix string, opts []client.ListOption) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	c, err := a.Client(io.Discard, false)
	if err != nil {
		return nil
	}
	if namespaced {
		ns, err := a.Namespace()
		if err != nil {
			return nil
		}
		opts = append(opts, client.InNamespace(ns))
	}
	found, ok := list.DeepCopyObject().(client.ObjectList)
	if !ok || c.List(ctx, found, opts...) != nil {
		return nil
	}
	var names []string
	_ = meta.EachListItem(found, func(o runtime.Object) error {
		if obj, ok := o.(client.Object); ok && strings.HasPrefix(obj.GetName(), prefix) {
			names = append(names, obj.GetName())
		}
		return nil
	})
	slices.Sort(names)
	return names
}

// AddFlagCompletions completes kubectl's flags: namespaces from the API server,
// contexts, clusters and users from the kubeconfig.
func (a *Access) AddFlagCompletions(cmd *cobra.Command) {
	fromConfig := func(names func(clientcmdapi.Config) []string) cobra.CompletionFunc {
		return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
			config, err := a.flags.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			all := slices.DeleteFunc(names(config), func(n string) bool { return !strings.HasPrefix(n, toComplete) })
			slices.Sort(all)
			return all, cobra.ShellCompDirectiveNoFileComp
		}
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"namespace": a.CompleteNames(&corev1.NamespaceList{}, false),
		"context":   fromConfig(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Contexts)) }),
		"cluster":   fromConfig(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Clusters)) }),
		"user":      fromConfig(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.AuthInfos)) }),
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, f)
	}
}

// nodesOf lists the nodes of the cluster on the command line, or of all clusters of
// the namespace before one is named.
func (a *Access) nodesOf(cmd *cobra.Command, args []string) []v1alpha1.ValkeyNode {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	ns, err := a.Namespace()
	if err != nil {
		return nil
	}
	c, err := a.Client(io.Discard, false)
	if err != nil {
		return nil
	}
	var list v1alpha1.ValkeyNodeList
	if c.List(ctx, &list, client.InNamespace(ns)) != nil {
		return nil
	}
	return slices.DeleteFunc(list.Items, func(n v1alpha1.ValkeyNode) bool {
		return len(args) > 0 && n.Spec.ClusterName != args[0]
	})
}

// CompleteNodes offers the nodes of the cluster that was named.
func (a *Access) CompleteNodes(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, n := range a.nodesOf(cmd, args) {
		if strings.HasPrefix(n.Name, toComplete) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteShards offers the shards of the cluster that was named.
func (a *Access) CompleteShards(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	indexes := map[int32]bool{}
	for _, n := range a.nodesOf(cmd, args) {
		indexes[n.Spec.ShardIndex] = true
	}
	var out []string
	for _, i := range slices.Sorted(maps.Keys(indexes)) {
		if text := strconv.Itoa(int(i)); strings.HasPrefix(text, toComplete) {
			out = append(out, text)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
