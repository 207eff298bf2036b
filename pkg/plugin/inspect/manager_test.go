package inspect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// P-10
func TestAManagerThatIsGoneIsNoticedByItsLease(t *testing.T) {
	tests := []struct {
		name string
		// age of the Lease; without one there is none.
		age             *time.Duration
		denied, renewed bool
		silent          bool
	}{
		{name: "there is no Lease"},
		{name: "it is renewed", age: of(2 * time.Second)},
		{name: "it may not be read", age: of(time.Hour), denied: true},
		{name: "it was renewed long ago", age: of(time.Hour), silent: true},
		{name: "it looks old, but is renewed by another clock", age: of(time.Hour), renewed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var objects []client.Object
				if tt.age != nil {
					at := metav1.NewMicroTime(time.Now().Add(-*tt.age))
					objects = append(objects, &coordinationv1.Lease{
						ObjectMeta: metav1.ObjectMeta{Namespace: kube.ManagerNamespace, Name: kube.ManagerLease},
						Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
					})
				}
				asked := 0
				c := interceptor.NewClient(plugintest.Client(objects...), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
						if tt.denied {
							return plugintest.Forbidden("get", "leases", key.Namespace)
						}
						err := c.Get(ctx, key, obj, opts...)
						asked++
						if lease, ok := obj.(*coordinationv1.Lease); ok && tt.renewed && asked > 1 {
							*lease.Spec.RenewTime = metav1.NewMicroTime(lease.Spec.RenewTime.Add(4 * time.Second))
						}
						return err
					},
				})
				if got := ManagerSilence(t.Context(), c, clock.RealClock{}); (got != "") != tt.silent {
					t.Errorf("said %q, want silence noticed: %v", got, tt.silent)
				}
			})
		})
	}
}

func of(d time.Duration) *time.Duration { return &d }
