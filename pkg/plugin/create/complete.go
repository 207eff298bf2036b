package create

import (
	"github.com/spf13/cobra"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// addCompletions completes the values of flags: names from the API server, words
// from the API.
func (o *Options) addCompletions(cmd *cobra.Command) {
	words := func(all ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		flagConfig:                o.access.CompleteNames(&v1alpha1.ValkeyConfigList{}, false),
		flagTLSSecret:             o.access.CompleteNames(tlsSecrets(), true, ofTypeTLS),
		"priority-class":          o.access.CompleteNames(&schedulingv1.PriorityClassList{}, false),
		"zone-spread":             words(string(v1alpha1.ZoneSpreadBestEffort), string(v1alpha1.ZoneSpreadRequired)),
		"service-type":            words("NodePort", "LoadBalancer", "ClusterIP"),
		"external-traffic-policy": words("Cluster", "Local"),
		"preferred-endpoint-type": words(string(v1alpha1.EndpointIP), string(v1alpha1.EndpointHostname)),
		"dry-run":                 words(dryRunNone, dryRunClient, dryRunServer),
		"output":                  words(output.JSON, output.YAML, output.Name),
		flagShards:                cobra.NoFileCompletions,
		flagReplicas:              cobra.NoFileCompletions,
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
}
