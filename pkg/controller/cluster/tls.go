package cluster

import (
	"context"
	"errors"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// tlsState is what of a cluster's TLS matters to its nodes: whether the Secret can
// be used, and by what servers are verified. The tls controller does the rest.
type tlsState struct {
	// invalid says why the Secret can't be used; nil if it can, or without TLS.
	invalid  *problem
	material certs.Material
	trust    reach.Trust
	// untrusted says why no server can be verified.
	untrusted error
}

// checkTLS reads and validates the Secret that a cluster names, in any state of
// the cluster and on every pass.
func (r *Reconciler) checkTLS(ctx context.Context, o *observation) (tlsState, error) {
	var s tlsState
	if o.cluster.Spec.TLS == nil {
		return s, nil
	}
	wish, err := r.Reach.TLSWish(ctx, o.cluster, o.now)
	if err != nil {
		return s, err
	}
	s.material = wish.Material
	if wish.Invalid != nil {
		s.invalid = &problem{wish.Invalid.Reason, wish.Invalid.Message}
	}
	s.trust, s.untrusted = r.Reach.Trust(ctx, o.cluster)
	return s, nil
}

// ensureTLS makes the manager's own copy of the checked material, which is what
// pods mount: a bad edit of the user's Secret so reaches no node. From then on the
// tls controller changes it.
func (r *Reconciler) ensureTLS(ctx context.Context, o *observation) error {
	if o.cluster.Spec.TLS == nil || !errors.Is(o.tls.untrusted, reach.ErrNoCopy) {
		return o.tls.untrusted
	}
	live := reach.SecretMetadata(o.cluster.Namespace, objects.TLSSecretName(o.cluster.Name))
	found, err := r.existing(ctx, o, live)
	if err != nil || found {
		return err
	}
	if err := r.create(ctx, o, objects.TLSSecret(o.cluster, o.tls.material.TLSMaterial)); err != nil {
		return err
	}
	o.tls.trust, o.tls.untrusted = r.Reach.Trust(ctx, o.cluster)
	return o.tls.untrusted
}

// dial connects to a node as the manager's user.
func (r *Reconciler) dial(ctx context.Context, o *observation, name string) (valkey.Node, error) {
	if o.tls.untrusted != nil {
		return nil, o.tls.untrusted
	}
	credentials, err := r.Reach.Credentials(ctx, o.cluster)
	if err != nil {
		return nil, err
	}
	return r.Reach.Dialer.Dial(ctx, r.Reach.Target(o.cluster, o.tls.trust, o.node(name), o.pods[name].Status.PodIP), credentials)
}
