// Package tls brings the certificate of the Secret that a cluster names to every
// node, without a restart, and proves that it is served. pkg/certs decides what
// nodes load next; here the manager's copy is written, nodes are told, and what they
// present is read back.
//
// Of a cluster's status this package writes the condition TLSReady and tls, of a
// node's status applied.leaf and applied.ca.
package tls

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// Handshaker reads the certificate that a server presents.
type Handshaker interface {
	ServedLeaf(ctx context.Context, target valkey.Target) (*x509.Certificate, error)
}

// Reconciler reconciles the certificates of ValkeyClusters.
type Reconciler struct {
	// Client reads from the cache, but for Secrets, and writes.
	Client client.Client
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Reach leads to the servers.
	Reach *reach.Reach
	// Handshaker reads certificates.
	Handshaker Handshaker

	refresher *reach.Refresher
	pace      *reach.Pace
	now       func() time.Time
}

// pass is what one look at a cluster found.
type pass struct {
	cluster *v1alpha1.ValkeyCluster
	now     time.Time
	wish    reach.Wish
	// have is the content of the manager's copy; copied is false while there is none.
	have   certs.Material
	copied bool
	// damaged says what is wrong with a copy that somebody has changed.
	damaged *reach.DamagedError
	// withheld says why nodes are not given what the Secret holds.
	withheld *settings.Problem
	step     certs.Step
	members  []reach.Member
	problems map[string]error
}

// Reconcile brings one cluster's nodes nearer to the certificate of its Secret.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &v1alpha1.ValkeyCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.pace.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read cluster: %w", err)
	}
	if cluster.Spec.TLS == nil || !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	p := &pass{cluster: cluster, now: r.now(), problems: map[string]error{}}
	if err := r.observe(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	outran := false
	if (p.copied || p.damaged != nil) && !cluster.Spec.Paused {
		err := r.act(ctx, p)
		if outran = apierrors.IsConflict(err) || apierrors.IsNotFound(err); err != nil && !outran {
			return ctrl.Result{}, err
		}
	}
	outcome, err := r.report(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := r.pace.Next(req.NamespacedName, p.missing() && !cluster.Spec.Paused, p.now)
	if outran || outcome == reach.Outran {
		next = again
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// again is when to look once more after somebody else wrote first.
const again = 100 * time.Millisecond

func (r *Reconciler) observe(ctx context.Context, p *pass) error {
	var err error
	if p.wish, err = r.Reach.TLSWish(ctx, p.cluster, p.now); err != nil {
		return err
	}
	p.have, err = r.Reach.TLSCopy(ctx, p.cluster)
	var conflict *reach.ConflictError
	switch {
	case err == nil:
		p.copied = true
	case errors.As(err, &p.damaged):
	case !errors.Is(err, reach.ErrNoCopy) && !errors.As(err, &conflict):
		return err
	}
	p.members, err = reach.Members(ctx, r.Client, p.cluster)
	return err
}

// act changes the copy when that is safe, and has the nodes load it.
func (r *Reconciler) act(ctx context.Context, p *pass) error {
	if p.damaged != nil {
		return r.repair(ctx, p)
	}
	if p.wish.Invalid == nil {
		if why := certs.Withheld(p.wish.Warnings, p.have, p.now); why != nil {
			p.withheld = why
		} else if err := r.change(ctx, p); err != nil {
			return err
		}
	}
	r.load(ctx, p)
	if p.wish.Invalid == nil && p.withheld == nil {
		// What was loaded just now may be what the next step waited for.
		p.step = certs.NextStep(p.wish.Material, p.have, p.loaded())
	}
	return r.prune(ctx, p)
}

// change writes the next content of the copy, if it may change now.
func (r *Reconciler) change(ctx context.Context, p *pass) error {
	p.step = certs.NextStep(p.wish.Material, p.have, p.loaded())
	if p.step.Write == nil {
		return nil
	}
	secret, err := r.Reach.Secret(ctx, p.cluster.Namespace, objects.TLSSecretName(p.cluster.Name))
	if err != nil {
		return err
	}
	if err := r.write(ctx, secret, objects.TLSData(*p.step.Write, secret)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("copy of the TLS Secret changed", "stage", p.step.Stage, "leaf", shortHash(p.wish.Material.Leaf.Fingerprint))
	p.have, err = certs.ParseMaterial(*p.step.Write)
	return err
}

// prune takes the files of an earlier certificate out of the copy once no pod can
// start with them any more.
func (r *Reconciler) prune(ctx context.Context, p *pass) error {
	secret, err := r.Reach.Secret(ctx, p.cluster.Namespace, objects.TLSSecretName(p.cluster.Name))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	want := objects.TLSSecret(p.cluster, p.have.TLSMaterial).Data
	if len(secret.Data) <= len(want) || p.missing() {
		return nil
	}
	for _, m := range p.members {
		if !m.InPlace() || !m.Runs() {
			return nil
		}
	}
	return r.write(ctx, secret, want)
}

// repair writes a copy anew that somebody has changed. With nodes that have other
// material than the Secret holds, nobody knows any more what the next step is.
func (r *Reconciler) repair(ctx context.Context, p *pass) error {
	if p.wish.Invalid != nil || len(notLoaded(p.loaded(), p.wish.Material.Loaded())) > 0 {
		return nil
	}
	secret, err := r.Reach.Secret(ctx, p.cluster.Namespace, objects.TLSSecretName(p.cluster.Name))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.write(ctx, secret, objects.TLSSecret(p.cluster, p.wish.Material.TLSMaterial).Data); err != nil {
		return err
	}
	log.FromContext(ctx).Info("copy of the TLS Secret repaired", "was", p.damaged.Error())
	p.have, p.copied, p.damaged = p.wish.Material, true, nil
	return nil
}

// write changes the copy, unless it is another than the one that was read.
func (r *Reconciler) write(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	next := secret.DeepCopy()
	next.Data = data
	if err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update Secret %s: %w", next.Name, err)
	}
	r.Reach.Wrote(next)
	return nil
}

// loaded is what the nodes that run are known to have.
func (p *pass) loaded() map[string]certs.Loaded {
	out := map[string]certs.Loaded{}
	for _, m := range p.members {
		if m.Runs() {
			out[m.Node.Name] = certs.Loaded{Leaf: m.Applied().Leaf, CA: m.Applied().CA}
		}
	}
	return out
}

// missing reports whether something is still to come: a node that hasn't what the
// copy holds, or a copy that hasn't what the Secret holds.
func (p *pass) missing() bool {
	switch {
	case !p.copied:
		return p.wish.Invalid == nil // else there is nothing to do before the Secret changes
	case p.step.Stage != "":
		return true
	}
	return len(notLoaded(p.loaded(), p.have.Loaded())) > 0
}

// notLoaded are the nodes that have something else.
func notLoaded(nodes map[string]certs.Loaded, want certs.Loaded) []string {
	var out []string
	for name, has := range nodes {
		if has != want {
			out = append(out, name)
		}
	}
	return out
}

func shortHash(fingerprint string) string { return fingerprint[:min(16, len(fingerprint))] }
