//go:build e2e

package harness

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Server is what one Valkey server says of itself and of the others.
type Server struct {
	// Pod it runs in.
	Pod corev1.Pod
	// ID is CLUSTER MYID, Members are the rows of CLUSTER NODES, handshakes
	// included.
	ID      string
	Members []topology.Member
	// Info is CLUSTER INFO, INFO replication and INFO keyspace by key.
	Info map[string]string
}

// Shard index by the pod's label, -1 without.
func (s Server) Shard() int32 {
	n, err := strconv.ParseInt(s.Pod.Labels["valkey.gomomento.com/shard-index"], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// Self is the server's row about itself.
func (s Server) Self() topology.Member {
	for _, m := range s.Members {
		if m.Myself {
			return m
		}
	}
	return topology.Member{}
}

// Keys in the first database.
func (s Server) Keys() int {
	n := 0
	_, _ = fmt.Sscanf(s.Info["db0"], "keys=%d", &n) // no line, no keys
	return n
}

// questions are put to a server in one go; ECHO tells the answers apart.
const questions = "CLUSTER MYID\nECHO --\nCLUSTER NODES\nECHO --\nCLUSTER INFO\nINFO replication\nINFO keyspace\n"

// Ask asks one server. Args go to valkey-cli, for TLS and a user.
func (s *Space) Ask(pod corev1.Pod, args ...string) (Server, error) {
	out, err := s.Exec(s.t.Context(), s.Name, pod.Name, questions, append([]string{"valkey-cli"}, args...)...)
	if err != nil {
		return Server{}, err
	}
	parts := strings.SplitN(out, "\n--\n", 3)
	if len(parts) != 3 {
		return Server{}, fmt.Errorf("pod %s answered %q", pod.Name, out)
	}
	server := Server{Pod: pod, ID: strings.TrimSpace(parts[0]), Info: map[string]string{}}
	if server.Members, err = topology.ParseNodes(parts[1]); err != nil {
		return Server{}, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	for line := range strings.Lines(parts[2]) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			server.Info[key] = value
		}
	}
	return server, nil
}

// Servers asks every running pod of a cluster at once.
func (s *Space) Servers(cluster string, args ...string) ([]Server, error) {
	s.t.Helper()
	var pods []corev1.Pod
	for _, pod := range s.Pods(cluster) {
		if pod.DeletionTimestamp.IsZero() && pod.Status.Phase == corev1.PodRunning {
			pods = append(pods, pod)
		}
	}
	servers, errs := make([]Server, len(pods)), make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { servers[i], errs[i] = s.Ask(pod, args...) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// Agreed checks, by every server's own word, that they are one healthy cluster:
// all alive, the same members for everybody, each slot owned once and by the same
// primary, config epochs that differ, replicas attached.
func Agreed(servers []Server, shards, replicas int) error {
	if want := shards * (replicas + 1); len(servers) != want {
		return fmt.Errorf("%d servers run, want %d", len(servers), want)
	}
	ids := map[string]Server{}
	for _, s := range servers {
		ids[s.ID] = s
	}
	if len(ids) != len(servers) {
		return fmt.Errorf("%d servers have %d IDs", len(servers), len(ids))
	}
	epochs := map[uint64]string{}
	owned := map[string]string{}
	for _, s := range servers {
		if err := s.healthy(ids); err != nil {
			return fmt.Errorf("pod %s: %w", s.Pod.Name, err)
		}
		self := s.Self()
		if self.Role != topology.RolePrimary {
			continue
		}
		if other, taken := epochs[self.ConfigEpoch]; taken {
			return fmt.Errorf("pods %s and %s both have config epoch %d", other, s.Pod.Name, self.ConfigEpoch)
		}
		epochs[self.ConfigEpoch] = s.Pod.Name
		owned[s.ID] = self.Slots.String()
	}
	if err := sameOwners(servers, owned); err != nil {
		return err
	}
	return shape(servers, shards, replicas)
}

// Formed checks what Agreed does, and that every replica follows the primary of
// the shard that its pod's label names.
func Formed(servers []Server, shards, replicas int) error {
	if err := Agreed(servers, shards, replicas); err != nil {
		return err
	}
	ids := map[string]Server{}
	for _, s := range servers {
		ids[s.ID] = s
	}
	for _, s := range servers {
		if p := ids[s.Self().PrimaryID]; s.Self().Role == topology.RoleReplica && p.Shard() != s.Shard() {
			return fmt.Errorf("pod %s of shard %d follows pod %s of shard %d", s.Pod.Name, s.Shard(), p.Pod.Name, p.Shard())
		}
	}
	return nil
}

// healthy checks what one server says.
func (s Server) healthy(ids map[string]Server) error {
	if s.Info["cluster_state"] != "ok" || s.Info["cluster_slots_assigned"] != strconv.Itoa(slots.Count) {
		return fmt.Errorf("cluster_state:%s, %s slots assigned", s.Info["cluster_state"], s.Info["cluster_slots_assigned"])
	}
	if len(s.Members) != len(ids) {
		return fmt.Errorf("it lists %d members, there are %d: %v", len(s.Members), len(ids), s.Members)
	}
	for _, m := range s.Members {
		other, ok := ids[m.ID]
		switch {
		case !ok:
			return fmt.Errorf("it lists %s, which no pod is", m.ID)
		case m.Failed || m.PFail || m.Handshake || m.NoAddr || !m.LinkUp:
			return fmt.Errorf("it sees pod %s with flags %v, link up: %t", other.Pod.Name, m.Flags, m.LinkUp)
		case m.IP != other.Pod.Status.PodIP:
			return fmt.Errorf("it lists pod %s at %s, which is at %s", other.Pod.Name, m.IP, other.Pod.Status.PodIP)
		case m.Role != other.Self().Role || m.PrimaryID != other.Self().PrimaryID:
			return fmt.Errorf("it sees pod %s as %s of %q, which is %s of %q", other.Pod.Name, m.Role, m.PrimaryID, other.Self().Role, other.Self().PrimaryID)
		}
	}
	if s.Self().Role == topology.RoleReplica && s.Info["master_link_status"] != "up" {
		return fmt.Errorf("its link to the primary is %q", s.Info["master_link_status"])
	}
	return nil
}

// sameOwners checks that every server gives each slot to the same owner, and no
// slot to two.
func sameOwners(servers []Server, want map[string]string) error {
	for _, s := range servers {
		var all slots.Set
		got := map[string]string{}
		for _, m := range s.Members {
			if m.Role == topology.RolePrimary {
				got[m.ID] = m.Slots.String()
			}
			if twice := all.Intersect(m.Slots); !twice.Empty() {
				return fmt.Errorf("pod %s gives slots %s to two owners", s.Pod.Name, twice)
			}
			all = all.Union(m.Slots)
		}
		if all.Len() != slots.Count {
			return fmt.Errorf("pod %s knows owners of %d slots", s.Pod.Name, all.Len())
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("pod %s says who owns which slots: %v; the owners say: %v", s.Pod.Name, got, want)
		}
	}
	return nil
}

// shape checks that there are as many primaries as shards, each with an even part
// of the slots and with its replicas.
func shape(servers []Server, shards, replicas int) error {
	followers := map[string]int{}
	counts := map[string]int{}
	for _, s := range servers {
		if self := s.Self(); self.Role == topology.RoleReplica {
			followers[self.PrimaryID]++
		} else {
			counts[s.ID] = self.Slots.Len()
		}
	}
	if len(counts) != shards {
		return fmt.Errorf("there are %d primaries, want %d", len(counts), shards)
	}
	sizes := slices.Sorted(maps.Values(counts))
	if sizes[len(sizes)-1]-sizes[0] > 1 {
		return fmt.Errorf("the primaries own %v slots, which is not even", sizes)
	}
	for id := range counts {
		if followers[id] != replicas {
			return fmt.Errorf("primary %s has %d replicas, want %d", id, followers[id], replicas)
		}
	}
	return nil
}

// WaitFormed waits until a cluster's servers are one healthy cluster of the shape.
func (s *Space) WaitFormed(cluster string, shards, replicas int, args ...string) []Server {
	s.t.Helper()
	var servers []Server
	s.Eventually(fmt.Sprintf("the servers of %s are %d×%d", cluster, shards, replicas), ActiveWithin, func() error {
		var err error
		if servers, err = s.Servers(cluster, args...); err != nil {
			return err
		}
		return Formed(servers, shards, replicas)
	})
	return servers
}
