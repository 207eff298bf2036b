package acl

import (
	"context"
	"crypto/rand"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const running = request.Running

// A rotation goes through four states, and the Secret says in which it is, so that
// it can be interrupted anywhere:
//
//  1. new passwords are in the Secret beside the old ones;
//  2. every node accepts both;
//  3. every node logs in to its primary with the new one;
//  4. the new ones take the old ones' place in the Secret, and the manager logs in
//     with them; the users are published without the old ones.
//
// No replication link drops: a link goes on with the password it was made with, and
// a new one is accepted with either.

// beginRotation draws new passwords when a request asks for them.
func (r *Reconciler) beginRotation(ctx context.Context, p *pass) error {
	req, asked := request.Open(p.cluster, request.RotateCredentials)
	if !asked || p.passwords.Rotating() || string(p.secret.Data[objects.AuthKeyRotation]) == req.ID {
		return nil
	}
	next, err := objects.NewPasswords(rand.Reader)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("rotation of the system passwords begins", "request", req.ID)
	return r.writeSecret(ctx, p, objects.NextAuthData(p.secret, next))
}

// endRotation puts the new passwords in the old ones' place as soon as every node
// uses them, and answers the request.
func (r *Reconciler) endRotation(ctx context.Context, p *pass) error {
	req, asked := request.Open(p.cluster, request.RotateCredentials)
	if p.passwords.Rotating() && p.accepted && p.allUseNext() {
		if err := r.writeSecret(ctx, p, objects.RotatedAuthData(p.secret, req.ID)); err != nil {
			return err
		}
		log.FromContext(ctx).Info("the system passwords were rotated", "request", req.ID)
	}
	if !asked {
		return nil
	}
	p.answer = &v1alpha1.RequestStatus{Verb: req.Verb, ID: req.ID, State: running}
	switch waiting := p.behind(); {
	case p.passwords.Rotating() && (len(waiting) > 0 || !p.current()):
		p.answer.Message = "step 1 of 3: every server learns the new passwords beside the old ones"
	case p.passwords.Rotating():
		p.answer.Message = "step 2 of 3: every replica takes the new password"
	case len(waiting) > 0 || !p.current():
		p.answer.Message = "step 3 of 3: the old passwords are dropped"
	default:
		p.answer.State, p.answer.Message = request.Done, "every server knows the new passwords only"
	}
	return nil
}

// allUseNext reports whether every node that runs was seen with the new replication
// password in this pass.
func (p *pass) allUseNext() bool {
	for _, m := range p.members {
		if m.Runs() && !p.primaryAuth[m.Node.Name] {
			return false
		}
	}
	return true
}

func (r *Reconciler) writeSecret(ctx context.Context, p *pass, data map[string][]byte) error {
	next := p.secret.DeepCopy()
	next.Data = data
	if err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(p.secret, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update Secret %s: %w", next.Name, err)
	}
	r.Reach.Wrote(next)
	p.secret = next
	var err error
	p.passwords, err = objects.PasswordsOf(next)
	return err
}
