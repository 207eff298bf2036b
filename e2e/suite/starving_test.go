//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// H-06: clusters whose pods never start hold up no other, and are looked at less
// and less often.
func TestClustersThatCannotStartHoldUpNobody(t *testing.T) {
	t.Parallel()
	e := harness.Start(t)
	bad := e.Space(t, 9)
	nowhere := &v1alpha1.Placement{NodeSelector: map[string]string{"kubectl-valkey-e2e/nowhere": "here"}}
	bad.Publish(&v1alpha1.ValkeyImage{
		ObjectMeta: metav1.ObjectMeta{Name: bad.Name + "-image"},
		Spec:       v1alpha1.ValkeyImageSpec{Repository: "valkey/no-such-image", Tag: "1", Version: bad.ValkeyImage.Version},
	})
	bad.Publish(config(bad.Name+"-image", v1alpha1.ValkeyConfigSpec{BaseRef: harness.ConfigName, ImageRef: bad.Name + "-image"}))
	bad.Publish(config(bad.Name+"-setting", v1alpha1.ValkeyConfigSpec{
		BaseRef: harness.ConfigName,
		Valkey:  map[string]v1alpha1.SettingValue{"maxmemory-policy": "no-such-policy"},
	}))
	clusters := map[string]*v1alpha1.ValkeyCluster{}
	for i := range 6 {
		c := bad.Cluster(fmt.Sprintf("nowhere-%d", i), 1, 0)
		c.Spec.Placement = nowhere
		clusters[c.Name] = c
	}
	image, setting := bad.Cluster("image", 1, 0), bad.Cluster("setting", 1, 0)
	image.Spec.ConfigRef, setting.Spec.ConfigRef = bad.Name+"-image", bad.Name+"-setting"
	clusters[image.Name], clusters[setting.Name] = image, setting
	begin := time.Now()
	for _, c := range clusters {
		bad.Create(c)
	}
	for name, words := range map[string][]string{"nowhere-0": {"Unschedulable"}, "image": {"Pull"}, "setting": {"died before it joined", "no-such-policy"}} {
		bad.Eventually("the message of cluster "+name+" says why it doesn't start", time.Minute, func() error {
			return harness.Contains(bad.Get(name).Status.Message, words...)
		})
	}

	good := e.Space(t, 6)
	good.Create(good.Cluster("c", 3, 1))
	start := time.Now()
	good.WaitActive("c")
	t.Logf("the healthy cluster was Active after %s", time.Since(start).Round(100*time.Millisecond))

	// The wait grows with the time that nothing has changed; a tenth of it, at most
	// 10 s.
	harness.Pause(t.Context(), time.Until(begin.Add(2*time.Minute)))
	const window = 40 * time.Second
	from := time.Now()
	harness.Pause(t.Context(), window)
	passes, err := e.Passes(t.Context(), from, bad.Name)
	if err != nil {
		t.Fatal(err)
	}
	for name := range clusters {
		// One in ten seconds, one on the edge, and for a server that is started anew a
		// few while that happens.
		most := int(window/(10*time.Second)) + 1
		if name != "nowhere-0" && !strings.HasPrefix(name, "nowhere") {
			most *= 4
		}
		if n := passes[name]; n > most || n == 0 {
			t.Errorf("cluster %s was looked at %d times in %s, want 1 to %d", name, n, window, most)
		}
	}
}
