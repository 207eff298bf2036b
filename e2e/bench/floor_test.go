//go:build e2e

package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// subject is the cluster of a benchmark, and the writer that works on it.
type subject struct {
	b *testing.B
	*harness.Space
	writer *harness.Writer
	// quiet is the Kubernetes node of the writer, to which nothing is done.
	quiet string
	// witness is a server that stays, to be asked about the slots.
	witness corev1.Pod
}

// share is the CPU that the writer asks for. What it measures is how long servers don't
// answer, not how long it waits for its own turn.
var share = resource.MustParse("200m")

// begin creates a cluster of 3 shards with a replica each and lets the writer write
// to it. Its gaps are reported by the ranges that parts shards would own.
func begin(b *testing.B, parts int, config v1alpha1.ValkeyConfigSpec, args ...string) *subject {
	b.Helper()
	s := &subject{b: b, Space: harness.Start(b).Space(b, 0)}
	if !s.Local {
		b.Fatal("this benchmark kills servers and stops nodes, which it does to the local Kubernetes only")
	}
	c := s.Cluster("c", 3, 1)
	config.BaseRef = c.Spec.ConfigRef
	s.Publish(&v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Spec: config})
	c.Spec.ConfigRef = s.Name
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	s.quiet = s.managersHost()
	s.writer = s.StartMeasuringWriter("c", s.quiet, share, append([]string{"--ranges", harness.Ranges(parts)}, args...)...)
	return s
}

// managersHost is the Kubernetes node with the manager.
func (s *subject) managersHost() string {
	s.b.Helper()
	pods, err := s.ManagerPods(s.b.Context())
	if err != nil || len(pods) != 1 {
		s.b.Fatalf("find the manager: %d pods, %v", len(pods), err)
	}
	return pods[0].Spec.NodeName
}

// end reads every key back and returns the report.
func (s *subject) end(mayFail bool) *report.Report {
	s.b.Helper()
	r := s.writer.Stop()
	s.writer.WantNothingLost(r, mayFail)
	return r
}

// pause lets the manager do nothing, or go on.
func (s *subject) pause(on bool) {
	s.b.Helper()
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = on })
	want := v1alpha1.ReasonPaused
	s.Eventually("the manager has noticed", time.Minute, func() error {
		c := s.Get("c")
		if paused := harness.Condition(c, v1alpha1.ConditionProgressing).Reason == want; paused != on {
			return fmt.Errorf("Progressing says %v", harness.Condition(c, v1alpha1.ConditionProgressing))
		}
		return nil
	})
}

// primaries returns the server that owns slots of each shard, by its label.
func (s *subject) primaries() map[int32]harness.Server {
	s.b.Helper()
	out := map[int32]harness.Server{}
	s.Eventually("every server answers", time.Minute, func() error {
		clear(out)
		servers, err := s.Servers("c")
		for _, server := range servers {
			if self := server.Self(); self.Role == topology.RolePrimary && !self.Slots.Empty() {
				out[server.Shard()] = server
			}
		}
		return err
	})
	return out
}

// replica returns a server that follows a primary.
func (s *subject) replica(of harness.Server) harness.Server {
	s.b.Helper()
	servers, err := s.Servers("c")
	if err != nil {
		s.b.Fatal(err)
	}
	i := slices.IndexFunc(servers, func(r harness.Server) bool { return r.Self().PrimaryID == of.ID })
	if i < 0 {
		s.b.Fatalf("nothing follows pod %s", of.Pod.Name)
	}
	return servers[i]
}

// cli runs valkey-cli in a pod of the cluster.
func (s *subject) cli(pod corev1.Pod, args ...string) string {
	s.b.Helper()
	out, err := s.Exec(s.b.Context(), s.Name, pod.Name, "", append([]string{"valkey-cli"}, args...)...)
	if err != nil {
		s.b.Fatal(err)
	}
	return out
}

// moveDirectly moves slots as nobody can faster: every source is told at once by
// CLUSTER MIGRATESLOTS, and asked until all have arrived. Want says what each shard
// is to own.
func (s *subject) moveDirectly(want map[int32]slots.Set, homes map[int32]harness.Server) time.Duration {
	s.b.Helper()
	owned := s.primaries()
	type order struct {
		pod  corev1.Pod
		args []string
	}
	var orders []order
	for shard, server := range owned {
		o := order{pod: server.Pod, args: []string{"CLUSTER", "MIGRATESLOTS"}}
		for target, set := range want {
			moved := server.Self().Slots.Intersect(set)
			if target == shard || moved.Empty() {
				continue
			}
			o.args = append(o.args, "SLOTSRANGE")
			for _, r := range moved.Ranges() {
				o.args = append(o.args, fmt.Sprint(r.Start), fmt.Sprint(r.End))
			}
			o.args = append(o.args, "NODE", homes[target].ID)
		}
		if len(o.args) > 2 {
			orders = append(orders, o)
		}
	}
	start := time.Now()
	for _, o := range orders {
		if out := s.cli(o.pod, o.args...); !strings.HasPrefix(out, "OK") {
			s.b.Fatalf("CLUSTER MIGRATESLOTS: %s", out)
		}
	}
	var at time.Duration
	s.Eventually("the slots have arrived", time.Minute, func() error {
		at = time.Since(start)
		view, err := s.Ask(homes[0].Pod)
		if err != nil {
			return err
		}
		for _, member := range view.Members {
			for shard, home := range homes {
				if member.ID == home.ID && !member.Slots.Equal(want[shard]) {
					return fmt.Errorf("shard %d owns %s", shard, member.Slots)
				}
			}
		}
		return nil
	})
	return at
}

// rebuilt is another image of the same Valkey.
func rebuilt(b *testing.B) string {
	b.Helper()
	image, err := clusterctl.ImageFor(b.Context(), clusterctl.RoleRebuild)
	if err != nil {
		b.Fatal(err)
	}
	return image.Ref
}

func (s *subject) editConfig(change func(*v1alpha1.ValkeyConfigSpec)) {
	s.b.Helper()
	config := &v1alpha1.ValkeyConfig{}
	if err := s.Client.Get(s.b.Context(), client.ObjectKey{Name: s.Name}, config); err != nil {
		s.b.Fatal(err)
	}
	before := config.DeepCopy()
	change(&config.Spec)
	if err := s.Client.Patch(s.b.Context(), config, client.MergeFrom(before)); err != nil {
		s.b.Fatal(err)
	}
}

func memory(quantity string) *v1alpha1.Resources {
	q := resource.MustParse(quantity)
	return &v1alpha1.Resources{Memory: &q}
}

// window returns a window of the report.
func (s *subject) window(r *report.Report, name string) report.Window {
	s.b.Helper()
	w, ok := r.Window(name)
	if !ok {
		s.b.Fatalf("the report has no window %q", name)
	}
	return w
}

// print shows a table on standard output: the log of a benchmark is cut off.
func printRows(title string, rows ...string) {
	fmt.Printf("\n%s\n  %s\n", title, strings.Join(rows, "\n  "))
}
