package inspect

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

const (
	// leaseSilence is how old the manager's Lease may be. It is renewed every 2 s.
	leaseSilence = time.Minute
	// leaseRenewal is how long a Lease that looks old is watched: the clock that
	// dates it may be another than ours, but a manager that lives renews it.
	leaseRenewal = 5 * time.Second
)

// ManagerSilence says that no manager is at work, as far as its Lease tells: a
// cluster whose spec nobody changes shows nothing of it, for the manager writes
// nothing while all is well. It is empty when a manager is at work, and when the
// Lease can't be read, or isn't where the manifests have it.
func ManagerSilence(ctx context.Context, r client.Reader, clk clock.Clock) string {
	renewed, ok := leaseRenewed(ctx, r)
	if !ok || clk.Since(renewed) <= leaseSilence {
		return ""
	}
	select {
	case <-ctx.Done():
		return ""
	case <-clk.After(leaseRenewal):
	}
	if again, ok := leaseRenewed(ctx, r); !ok || !again.Equal(renewed) {
		return ""
	}
	return fmt.Sprintf("no manager seems to be at work: its Lease was renewed last at %s, so what stands here may be old; check with: kubectl get deployment %s -n %s",
		renewed.UTC().Format(time.RFC3339), kube.ManagerDeployment, kube.ManagerNamespace)
}

func leaseRenewed(ctx context.Context, r client.Reader) (time.Time, bool) {
	var lease coordinationv1.Lease
	if r.Get(ctx, client.ObjectKey{Namespace: kube.ManagerNamespace, Name: kube.ManagerLease}, &lease) != nil || lease.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	return lease.Spec.RenewTime.Time, true
}
