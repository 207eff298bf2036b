package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestHealth(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*plugintest.Fixture)
		healthy bool
		reason  string
		message string
	}{
		{name: "Ready is healthy", change: func(*plugintest.Fixture) {}, healthy: true},
		{
			name: "not Ready says why", reason: "NodesNotReady", message: "main-3fa2c: its pod is gone",
			change: func(f *plugintest.Fixture) {
				f.Condition(v1alpha1.ConditionReady, false, "NodesNotReady", "main-3fa2c: its pod is gone")
			},
		},
		{
			name: "while creating, what holds it up is a better reason", reason: "ConfigNotFound", message: "no config",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Status.State = v1alpha1.StateCreating
				f.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonCreating, "no config")
				f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "waiting")
				f.Condition(v1alpha1.ConditionConfigResolved, false, v1alpha1.ReasonConfigNotFound, "no config")
			},
		},
		{
			name: "Ready of a former spec proves nothing", reason: "NotSeenYet", message: "the manager has not looked at generation 2 yet",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Generation = 2
				f.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &metav1.Time{Time: plugintest.Now.Add(-3 * time.Second)}}}
			},
		},
		{
			name: "kubectl scale has changed it just now", reason: "NotSeenYet", message: "the manager has not looked at generation 2 yet",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Generation = 2
				f.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Subresource: "scale", Time: &metav1.Time{Time: plugintest.Now.Add(-3 * time.Second)}}}
			},
		},
		{
			name: "a change that nobody sees for long means that no manager runs", reason: "ManagerSilent",
			message: "no manager seems to be at work: for over 30s none has looked at generation 2; check with: kubectl get deployment valkey-operator -n valkey-operator",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Generation = 2
				f.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{
					{Manager: "kubectl", Time: &metav1.Time{Time: plugintest.Now.Add(-2 * time.Minute)}},
					// The manager's own writes of the status say nothing about the spec.
					{Manager: "manager", Subresource: "status", Time: &metav1.Time{Time: plugintest.Now.Add(-time.Second)}},
				}
			},
		},
		{
			name: "no status at all after five minutes means the same", reason: "ManagerSilent",
			message: "no manager seems to be at work: for over 30s none has looked at generation 1; check with: kubectl get deployment valkey-operator -n valkey-operator",
			change:  func(f *plugintest.Fixture) { f.Cluster.Status = v1alpha1.ValkeyClusterStatus{} },
		},
		{
			name: "a cluster on its way out is not healthy", reason: "Deleting", message: "it is being deleted",
			change: func(f *plugintest.Fixture) {
				f.Cluster.DeletionTimestamp = &metav1.Time{Time: plugintest.Now}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := plugintest.Active("main", 1, 1)
			tt.change(f)
			want := Health{Healthy: tt.healthy, Reason: tt.reason, Message: tt.message}
			if diff := cmp.Diff(want, HealthOf(f.Cluster, plugintest.Now)); diff != "" {
				t.Errorf("HealthOf() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsAtRest(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	for _, tt := range []struct {
		condition metav1.Condition
		want      bool
	}{
		{condition("Ready", "True", "Active"), true},
		{condition("Ready", "Unknown", ""), false},
		{condition("Progressing", "False", "Complete"), true},
		{condition("Progressing", "False", "ConfigNotFound"), false},
		{condition("Progressing", "True", "Reconciling"), false},
		{condition("Degraded", "False", "Healthy"), true},
		{condition("Degraded", "True", "PodFailed"), false},
		{condition("TLSReady", "False", "TLSDisabled"), true},
		{condition("TLSReady", "False", "TLSInvalid"), false},
		{condition("ExternalAccessReady", "False", "Disabled"), true},
		{condition("ACLApplied", "False", "Pending"), false},
	} {
		if got := AtRest(tt.condition); got != tt.want {
			t.Errorf("AtRest(%s=%s %s) = %v, want %v", tt.condition.Type, tt.condition.Status, tt.condition.Reason, got, tt.want)
		}
	}
}
