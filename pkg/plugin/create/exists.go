package create

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// alreadyExists says what is there, and how it differs from what was asked for.
func alreadyExists(there, wished *v1alpha1.ValkeyCluster) error {
	name := fmt.Sprintf("cluster %q exists already in namespace %s", there.Name, there.Namespace)
	if there.DeletionTimestamp != nil {
		return fmt.Errorf("%s and is being deleted; try again when it is gone", name)
	}
	differences := differences(&there.Spec, &wished.Spec)
	if len(differences) == 0 {
		return fmt.Errorf("%s, just as asked for; see it with: kubectl valkey status %s -n %s", name, there.Name, there.Namespace)
	}
	return fmt.Errorf("%s and differs in %s; change it with: kubectl edit valkeycluster %s -n %s",
		name, strings.Join(differences, ", "), there.Name, there.Namespace)
}

// differences lists the fields that differ, small ones with both values.
func differences(there, wished *v1alpha1.ValkeyClusterSpec) []string {
	var all []string
	value := func(field string, a, b any) {
		if a != b {
			all = append(all, fmt.Sprintf("%s (%v there, %v asked for)", field, a, b))
		}
	}
	value("configRef", there.ConfigRef, wished.ConfigRef)
	value("shards", there.Shards, wished.Shards)
	value("replicasPerShard", there.ReplicasPerShard, wished.ReplicasPerShard)
	value("paused", there.Paused, wished.Paused)
	block := func(field string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			all = append(all, field)
		}
	}
	block("acl", there.ACL, wished.ACL)
	block("placement", there.Placement, wished.Placement)
	block("tls", there.TLS, wished.TLS)
	block("podAnnotations", there.PodAnnotations, wished.PodAnnotations)
	block("externalAccess", there.ExternalAccess, wished.ExternalAccess)
	return all
}
