package acl

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// loadTimeout bounds everything that is asked of one server in one pass.
const loadTimeout = 4 * time.Second

// dial connects to a node as the manager's user.
func (r *Reconciler) dial(ctx context.Context, p *pass, m reach.Member) (valkey.Node, error) {
	if p.untrusted != nil {
		return nil, p.untrusted
	}
	credentials := valkey.Credentials{Username: acl.OperatorUser, Password: p.passwords.Operator}
	return r.Reach.Dialer.Dial(ctx, r.Reach.Target(p.cluster, p.trust, m.Node, m.Pod.Status.PodIP), credentials)
}

func (r *Reconciler) vocabulary(ctx context.Context, p *pass, m reach.Member, names []acl.RuleName) (acl.Vocabulary, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	conn, err := r.dial(ctx, p, m)
	if err != nil {
		return acl.Vocabulary{}, err
	}
	defer conn.Close()
	return conn.Vocabulary(ctx, acl.Questions(names))
}

// load has every node that lacks the published file load it, and on a tick verifies
// the others too. During a rotation every node is looked at.
func (r *Reconciler) load(ctx context.Context, p *pass) {
	tick := r.pace.Due(client.ObjectKeyFromObject(p.cluster), p.now)
	if tick {
		r.keepListed(client.ObjectKeyFromObject(p.cluster), p.members)
	}
	revision := acl.Revision(p.file())
	p.accepted = p.current() && len(p.behind()) == 0
	reach.Each(p.members, func(m reach.Member) {
		behind := m.Applied().ACLRevision != revision
		if !m.Commandable() || !behind && !tick && !p.passwords.Rotating() {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, loadTimeout)
		defer cancel()
		if err := r.loadOne(ctx, p, m); err != nil {
			log.FromContext(ctx).V(1).Info("node has not the users yet", "node", m.Node.Name, "error", err.Error())
			p.mu.Lock()
			defer p.mu.Unlock()
			p.problems[m.Node.Name] = err
		}
	})
}

var errNotRefreshed = errors.New("the kubelet has not refreshed its files yet")

// loadOne makes sure that one node has the published users, and the password that
// it logs in to its primary with.
func (r *Reconciler) loadOne(ctx context.Context, p *pass, m reach.Member) error {
	conn, err := r.dial(ctx, p, m)
	if err != nil {
		return err
	}
	defer conn.Close()
	before, err := conn.ACLList(ctx)
	if err != nil {
		return err
	}
	revision, had := acl.Revision(p.file()), acl.InForce(before, p.file())
	after := before
	if !had || r.recall(p, m) != acl.ListRevision(before) {
		if err := conn.ACLLoad(ctx); err != nil {
			return err
		}
		if after, err = conn.ACLList(ctx); err != nil {
			return err
		}
		if !acl.InForce(after, p.file()) {
			return errors.Join(errNotRefreshed, r.refresher.Touch(ctx, m, revision[:16], r.now()))
		}
		r.remember(p, m, acl.ListRevision(after))
	}
	if had && acl.ListRevision(before) != acl.ListRevision(after) {
		p.mu.Lock()
		p.reverted = append(p.reverted, m.Node.Name)
		p.mu.Unlock()
	}
	if m.Applied().ACLRevision != revision {
		if err := reach.WriteApplied(ctx, r.Client, m.Node, func(a *v1alpha1.Applied) { a.ACLRevision = revision }); err != nil {
			return err
		}
		log.FromContext(ctx).Info("users loaded", "node", m.Node.Name, "revision", revision[:16])
	}
	return r.setPrimaryAuth(ctx, p, m, conn)
}

const primaryAuth = "primaryauth"

// setPrimaryAuth makes sure that a node logs in to its primary with the password in
// use: the next one as soon as every node accepts it.
func (r *Reconciler) setPrimaryAuth(ctx context.Context, p *pass, m reach.Member, conn valkey.Node) error {
	want := p.passwords.Replication
	if p.passwords.Rotating() && p.accepted {
		want = p.passwords.NextReplication
	}
	got, err := conn.ConfigGet(ctx, primaryAuth)
	if err != nil {
		return err
	}
	if got[primaryAuth] != want {
		if err := conn.ConfigSet(ctx, [2]string{primaryAuth, want}); err != nil {
			return errors.New("the server refuses the password of the replication user") // its own words may hold it
		}
		log.FromContext(ctx).Info("replication password set", "node", m.Node.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.primaryAuth[m.Node.Name] = want == p.passwords.NextReplication || !p.passwords.Rotating()
	return nil
}

func (r *Reconciler) recall(p *pass, m reach.Member) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed[client.ObjectKeyFromObject(p.cluster)][m.Node.UID]
}

func (r *Reconciler) remember(p *pass, m reach.Member, list string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(p.cluster)
	if r.listed[key] == nil {
		r.listed[key] = map[types.UID]string{}
	}
	r.listed[key][m.Node.UID] = list
}

// keepListed forgets what nodes listed that a cluster hasn't any more.
func (r *Reconciler) keepListed(cluster types.NamespacedName, members []reach.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.listed[cluster], func(node types.UID, _ string) bool {
		return !slices.ContainsFunc(members, func(m reach.Member) bool { return m.Node.UID == node })
	})
	if len(r.listed[cluster]) == 0 {
		delete(r.listed, cluster)
	}
}
