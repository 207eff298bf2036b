package tls

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// loadTimeout bounds everything that is asked of one server in one pass.
const loadTimeout = 4 * time.Second

// load has every node that lacks the copy's content load it, and on a tick verifies
// the others too. A node that can't be reached is no reason not to go on.
func (r *Reconciler) load(ctx context.Context, p *pass) {
	tick := r.pace.Due(client.ObjectKeyFromObject(p.cluster), p.now)
	trust, err := r.Reach.Trust(ctx, p.cluster)
	if err != nil {
		return
	}
	credentials, err := r.Reach.Credentials(ctx, p.cluster)
	if err != nil {
		return
	}
	var mu sync.Mutex
	reach.Each(p.members, func(m reach.Member) {
		behind := certs.Loaded{Leaf: m.Applied().Leaf, CA: m.Applied().CA} != p.have.Loaded()
		if !m.Commandable() || !behind && !tick {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, loadTimeout)
		defer cancel()
		n := nodeLoad{Reconciler: r, pass: p, member: m, behind: behind, target: r.Reach.Target(p.cluster, trust, m.Node, m.Pod.Status.PodIP)}
		if err := n.run(ctx, credentials); err != nil {
			log.FromContext(ctx).V(1).Info("node does not serve the certificate yet", "node", m.Node.Name, "error", err.Error())
			mu.Lock()
			defer mu.Unlock()
			p.problems[m.Node.Name] = err
		}
	})
}

// nodeLoad is one node that loads, or is asked whether it has loaded, the copy.
type nodeLoad struct {
	*Reconciler
	pass   *pass
	member reach.Member
	// behind is whether the node is not known to have the content.
	behind bool
	target valkey.Target
}

func (n nodeLoad) run(ctx context.Context, credentials valkey.Credentials) error {
	conn, err := n.Reach.Dialer.Dial(ctx, n.target, credentials)
	if err != nil {
		return err
	}
	defer conn.Close()
	if !n.behind {
		if same, err := n.unchanged(ctx, conn); err != nil || same {
			return err
		}
	}
	// All three at once: the server takes them together or keeps all that it has. The
	// names hold hashes, so that it takes them proves what it has read.
	if err := conn.ConfigSet(ctx, settings.TLSDirectives(n.pass.have.Files())...); err != nil {
		if !valkey.IsReply(err) {
			return err
		}
		if err := n.refresher.Touch(ctx, n.member, n.content(), n.now()); err != nil {
			return err
		}
		return fmt.Errorf("the kubelet has not refreshed its files yet")
	}
	served, err := n.served(ctx)
	if err != nil {
		return err
	}
	want := n.pass.have.Loaded()
	if served != want.Leaf {
		_ = n.record(ctx, certs.Loaded{Leaf: served})
		return fmt.Errorf("it was told to load the certificate and serves another, with the fingerprint %s", shortHash(served))
	}
	if err := n.record(ctx, want); err != nil {
		return err
	}
	log.FromContext(ctx).Info("certificate loaded", "node", n.member.Node.Name, "leaf", shortHash(served))
	return nil
}

// unchanged verifies a node that had the content when it was last asked.
func (n nodeLoad) unchanged(ctx context.Context, conn valkey.Node) (bool, error) {
	served, err := n.served(ctx)
	if err != nil {
		return false, err
	}
	directives := settings.TLSDirectives(n.pass.have.Files())
	names := make([]string, len(directives))
	for i, d := range directives {
		names[i] = d[0]
	}
	got, err := conn.ConfigGet(ctx, names...)
	if err != nil {
		return false, err
	}
	same := served == n.pass.have.Leaf.Fingerprint
	for _, d := range directives {
		same = same && got[d[0]] == d[1]
	}
	return same, nil
}

func (n nodeLoad) served(ctx context.Context) (string, error) {
	leaf, err := n.Handshaker.ServedLeaf(ctx, n.target)
	if err != nil {
		return "", err
	}
	return certs.Fingerprint(leaf.Raw), nil
}

func (n nodeLoad) record(ctx context.Context, has certs.Loaded) error {
	return reach.WriteApplied(ctx, n.Client, n.member.Node, func(a *v1alpha1.Applied) { a.Leaf, a.CA = has.Leaf, has.CA })
}

// content names what the kubelet is to look for.
func (n nodeLoad) content() string {
	files := n.pass.have.Files()
	return shortHash(certs.CADigest([]byte(strings.Join([]string{files.CA, files.Certificate, files.Key}, " "))))
}
