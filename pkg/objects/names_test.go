package objects_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func TestNamesFollowTheClusterAndItsNodes(t *testing.T) {
	for _, tc := range []struct{ what, got, want string }{
		{"headless Service", objects.HeadlessServiceName("c"), "c"},
		{"auth Secret", objects.AuthSecretName("c"), "c-operator-auth"},
		{"TLS Secret", objects.TLSSecretName("c"), "c-operator-tls"},
		{"ACL ConfigMap", objects.ACLConfigMapName("c"), "c-acl"},
		{"node ConfigMap", objects.NodeConfigMapName("c-0a1b2"), "c-0a1b2-config"},
		{"budget", objects.PDBName("c", 12), "c-shard-12"},
		{"shard Service", objects.ShardServiceName("c", 0), "c-shard-0"},
		{"service DNS name", objects.ServiceDNSName("c", "n", "kube.prod"), "c.n.svc.kube.prod"},
		{"pod DNS name", objects.PodDNSName("c-0a1b2", "c", "n", "kube.prod"), "c-0a1b2.c.n.svc.kube.prod"},
		{"external port", objects.ExternalPortName(5), "vk-n5"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.what, tc.got, tc.want)
		}
	}
}

func TestTheLongestClusterNameLeavesEveryDerivedNameALabel(t *testing.T) {
	name := strings.Repeat("c", v1alpha1.MaxClusterNameLength)
	// Services have to be DNS-1035 labels; the others could be longer, but share
	// the limit.
	for _, derived := range []string{
		objects.HeadlessServiceName(name), objects.ShardServiceName(name, 999), objects.NodeConfigMapName(name),
	} {
		if problems := validation.IsDNS1035Label(derived); len(problems) > 0 {
			t.Errorf("%s: %v", derived, problems)
		}
	}
	for key, value := range objects.ShardLabels(name, 999) {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("label %s=%s: %v", key, value, problems)
		}
	}
}
