package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// U-09: what an older CRD drops is written once for each change, not at every look.
func TestWhatAnOlderCRDDropsIsNotWrittenAgainAndAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := healthy()
	o.cluster.UID = "cluster-uid"
	o.cluster.ResourceVersion = ""
	writes := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.cluster).WithStatusSubresource(o.cluster).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, client.RawPatch(patch.Type(), without(t, data, "readyShards")), opts...)
		}}).Build()
	r := &Reconciler{
		Client: api, Recorder: events.NewFakeRecorder(100), Reach: &reach.Reach{ClusterDomain: "cluster.local"},
		moments: newMoments(), pruned: newPruned(),
	}
	look := func() {
		t.Helper()
		read := &v1alpha1.ValkeyCluster{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(o.cluster), read); err != nil {
			t.Fatal(err)
		}
		o.cluster = read
		if o.cluster.Status.ReadyShards != 0 {
			t.Fatal("the field was kept, so nothing is tested")
		}
		if _, err := r.writeStatus(t.Context(), o, outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		look()
	}
	if writes == 0 || writes > 2 {
		t.Errorf("the status was written %d times in 5 looks, want once or twice", writes)
	}
	before := writes
	o.cluster.Generation++
	if err := api.Update(t.Context(), o.cluster); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		look()
	}
	if writes == before || writes > before+2 {
		t.Errorf("a change was written %d times in 5 looks, want once or twice", writes-before)
	}
}

// without removes a field of the status from a merge patch.
func without(t *testing.T, patch []byte, field string) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(patch, &content); err != nil {
		t.Fatal(err)
	}
	if status, ok := content["status"].(map[string]any); ok {
		delete(status, field)
	}
	out, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The memory of nodes that are gone does not grow.
func TestWhatWasWrittenToNodesThatAreGoneIsForgotten(t *testing.T) {
	o, p := healthy(), newPruned()
	for i := range 20 {
		n := &v1alpha1.ValkeyNode{}
		n.UID = types.UID(fmt.Sprint(i))
		p.written(o, n, n.Status)
	}
	if n := len(p.last[client.ObjectKeyFromObject(o.cluster)]); n > 2*len(o.nodes)+2 {
		t.Errorf("%d writes are remembered of a cluster with %d nodes", n, len(o.nodes))
	}
}
