//go:build e2e

package suite

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// operation is what is under way when primaries are lost.
type operation int

const (
	atRest operation = iota
	scaleOut
	scaleIn
	roll
)

func (o operation) String() string {
	return [...]string{"at rest", "in a scale-out", "in a scale-in", "in a roll"}[o]
}

// cell is one way to lose primaries.
type cell struct {
	during operation
	// majority is whether so many primaries are lost that the rest can't elect.
	majority bool
	replicas int32
	// deleted is whether pods are deleted; else their servers are killed.
	deleted bool
	// managerKilled is whether the manager is killed in the same moment.
	managerKilled bool
}

func (c cell) String() string {
	what, how, manager := "a primary", "killed", ""
	if c.majority {
		what = "most primaries"
	}
	if c.deleted {
		how = "deleted"
	}
	if c.managerKilled {
		manager = " with the manager"
	}
	return fmt.Sprintf("%s of n×%d %s%s %s", what, c.replicas, how, manager, c.during)
}

// cells returns all combinations, or eight in which every two values of two factors
// meet.
func cells(all bool) []cell {
	var out []cell
	for n := range 64 {
		bit := func(i int) bool { return n>>i&1 == 1 }
		c := cell{during: operation(n & 3), majority: bit(2), deleted: bit(3), managerKilled: bit(4)}
		if bit(5) {
			c.replicas = 1
		}
		a, b := bit(0), bit(1)
		pairwise := bit(3) == (b != bit(2)) && bit(4) == (a != b != bit(2)) && bit(5) == (a != bit(2))
		if all || pairwise {
			out = append(out, c)
		}
	}
	return out
}

// Eight cells are few, and yet no combination of two factors is left out.
func TestTheChosenCellsCoverEveryPair(t *testing.T) {
	pairs := func(list []cell) map[string]bool {
		out := map[string]bool{}
		for _, c := range list {
			factors := []string{c.during.String(), fmt.Sprint(c.majority), fmt.Sprint(c.replicas), fmt.Sprint(c.deleted), fmt.Sprint(c.managerKilled)}
			for i := range factors {
				for j := range i {
					out[fmt.Sprint(j, factors[j], i, factors[i])] = true
				}
			}
		}
		return out
	}
	chosen, all := cells(false), cells(true)
	if got, want := len(pairs(chosen)), len(pairs(all)); len(chosen) != 8 || len(all) != 64 || got != want {
		t.Errorf("%d of %d cells cover %d of %d pairs", len(chosen), len(all), got, want)
	}
}

// Primaries are lost in every way, in the middle of every operation, and the cluster
// comes back without a hand: with every key where there was a replica, and with a
// DataLoss condition where there was none.
func TestLostPrimariesAreReplacedWhateverElseHappens(t *testing.T) {
	t.Parallel()
	for _, c := range cells(harness.Full()) {
		if !c.managerKilled {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				runCell(t, c, nil)
			})
		}
	}
}

// The same while the manager is killed. These cells run beside each other, and
// nothing else beside them.
func TestLostPrimariesAreReplacedByTheNextManager(t *testing.T) {
	var one sync.Mutex
	t.Run("cells", func(t *testing.T) {
		for _, c := range cells(harness.Full()) {
			if c.managerKilled {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					runCell(t, c, &one)
				})
			}
		}
	})
}

func runCell(t *testing.T, c cell, manager *sync.Mutex) {
	const keys = 300
	before := shape{3, c.replicas}
	after := before
	switch c.during {
	case scaleOut:
		after.shards = 4
	case scaleIn:
		after.shards = 2
	}
	s := harness.Start(t).Space(t, 2*before.nodes()+2)
	cluster := s.Cluster("c", before.shards, before.replicas)
	ownConfig(s, cluster)
	s.Create(cluster)
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)
	func() {
		if c.managerKilled {
			// Before the operation begins, which may be over when the turn comes.
			manager.Lock()
			defer manager.Unlock()
		}
		begin(t, s, c.during, after)
		strike(t, s, c)
	}()
	s.Eventually("the cluster is whole", 6*time.Minute, func() error {
		if err := harness.Settled(s.Get("c")); err != nil {
			return err
		}
		servers, err := s.Servers("c")
		if err != nil {
			return err
		}
		return harness.Formed(servers, int(after.shards), int(after.replicas))
	})
	lost := 0
	// The cluster's name leads to a pod for as long as that ends.
	s.Eventually("the keys can be read", time.Minute, func() (err error) {
		lost, err = s.LostKeys("c", keys)
		return err
	})
	said := harness.Condition(s.Get("c"), v1alpha1.ConditionDataLoss)
	t.Logf("%d of %d keys are lost; DataLoss is %s: %s", lost, keys, said.Status, said.Message)
	switch {
	case c.replicas > 0 && lost > 0:
		t.Errorf("%d of %d keys are lost although each shard had a replica", lost, keys)
	case lost > 0 && said.Status != metav1.ConditionTrue:
		t.Errorf("%d of %d keys are lost, and DataLoss is %q", lost, keys, said.Status)
	case lost == 0 && said.Status == metav1.ConditionTrue:
		t.Errorf("no key is lost, and DataLoss says %s", said.Message)
	}
}

// begin starts an operation and returns when it is under way.
func begin(t *testing.T, s *harness.Space, during operation, after shape) {
	t.Helper()
	before := podUIDs(s)
	switch during {
	case atRest:
		return
	case scaleOut, scaleIn:
		resize(s, after)
	case roll:
		change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
			memory := resource.MustParse("112Mi")
			spec.Resources = &v1alpha1.Resources{Memory: &memory}
		})
	}
	s.Eventually("the operation is under way", 2*time.Minute, func() error {
		if during == scaleIn {
			servers, err := s.Servers("c")
			if err != nil {
				return err
			}
			for _, server := range servers {
				if self := server.Self(); self.Role == topology.RolePrimary && self.Slots.Len() > 5600 {
					return nil // a shard has taken over slots of the one that goes
				}
			}
			return fmt.Errorf("no slot has moved")
		}
		for pod := range podUIDs(s) {
			if _, old := before[pod]; !old {
				return nil
			}
		}
		return fmt.Errorf("there is no new pod")
	})
}

// strike takes primaries away.
func strike(t *testing.T, s *harness.Space, c cell) {
	t.Helper()
	var primaries []corev1.Pod
	s.Eventually("every server answers", time.Minute, func() error {
		primaries = nil
		servers, err := s.Servers("c")
		for _, server := range servers {
			if self := server.Self(); self.Role == topology.RolePrimary && !self.Slots.Empty() {
				primaries = append(primaries, server.Pod)
			}
		}
		return err
	})
	slices.SortFunc(primaries, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	n := 1
	if c.majority {
		n = len(primaries)/2 + 1
	}
	if c.managerKilled {
		leader, err := s.WaitForManager(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := s.WaitForManager(t.Context(), leader.Name); err != nil {
				t.Error(err)
			}
		}()
		if err := s.KillManager(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range primaries[:n] {
		t.Logf("pod %s of shard %s is lost", pod.Name, pod.Labels[v1alpha1.LabelShardIndex])
		if c.deleted {
			deletePod(s, pod)
		} else if err := s.KillServer(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
}
