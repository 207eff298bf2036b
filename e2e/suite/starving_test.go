//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// nowhere is a place that no pod can run at.
func nowhere() *v1alpha1.Placement {
	return &v1alpha1.Placement{NodeSelector: map[string]v1alpha1.NodeLabelValue{"kubectl-valkey-e2e/nowhere": "here"}}
}

// H-06: clusters whose pods never start say why and hold up no other.
func TestClustersThatCannotStartHoldUpNobody(t *testing.T) {
	t.Parallel()
	e := harness.Start(t)
	bad := e.Space(t, 9)
	bad.Publish(&v1alpha1.ValkeyImage{
		ObjectMeta: metav1.ObjectMeta{Name: bad.Name + "-image"},
		Spec:       v1alpha1.ValkeyImageSpec{Repository: "valkey/no-such-image", Tag: "1", Version: bad.ValkeyImage.Version},
	})
	bad.Publish(config(bad.Name+"-image", v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, ImageRef: bad.Name + "-image"}))
	bad.Publish(config(bad.Name+"-setting", v1alpha1.ValkeyConfigSpec{
		BaseRef: harness.ConfigName,
		Valkey:  map[string]v1alpha1.SettingValue{"maxmemory-policy": "no-such-policy"},
	}))
	for i := range 6 {
		c := bad.Cluster(fmt.Sprintf("nowhere-%d", i), 1, 0)
		c.Spec.Placement = nowhere()
		bad.Create(c)
	}
	image, setting := bad.Cluster("image", 1, 0), bad.Cluster("setting", 1, 0)
	image.Spec.ConfigRef, setting.Spec.ConfigRef = bad.Name+"-image", bad.Name+"-setting"
	bad.Create(image)
	bad.Create(setting)
	for name, words := range map[string][]string{"nowhere-0": {"Unschedulable"}, "image": {"Pull"}, "setting": {"died before it joined", "must be one of the following"}} {
		bad.Eventually("the message of cluster "+name+" says why it doesn't start", time.Minute, func() error {
			return harness.Contains(bad.Get(name).Status.Message, words...)
		})
	}

	good := e.Space(t, 6)
	good.Create(good.Cluster("c", 3, 1))
	start := time.Now()
	good.WaitActive("c")
	t.Logf("the healthy cluster was Active after %s", time.Since(start).Round(100*time.Millisecond))
}
