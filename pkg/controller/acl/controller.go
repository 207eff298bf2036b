// Package acl brings the users of a cluster to every node, without a restart, and
// verifies that they are in force there. pkg/acl renders them; here the file is
// checked by a running server, published, loaded and read back. The passwords of the
// system users, which are part of it, are rotated here too.
//
// Of a cluster's status this package writes the condition ACLApplied and the answers
// to requests for a rotation, of a node's status applied.aclRevision.
package acl

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Reconciler reconciles the users of ValkeyClusters.
type Reconciler struct {
	// Client reads from the cache, but for Secrets, and writes.
	Client client.Client
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Reach leads to the servers.
	Reach *reach.Reach

	refresher *reach.Refresher
	pace      *reach.Pace
	now       func() time.Time

	mu sync.Mutex
	// listed is what each node's server listed when it had just loaded its file.
	listed map[types.NamespacedName]map[types.UID]string
}

// pass is what one look at a cluster found.
type pass struct {
	cluster *v1alpha1.ValkeyCluster
	now     time.Time
	members []reach.Member
	secret  *corev1.Secret
	// passwords of the system users.
	passwords objects.Passwords
	// trust is by whom servers are verified, untrusted why none can be.
	trust     reach.Trust
	untrusted error
	config    settings.Resolved
	roles     map[string]*v1alpha1.ValkeyRole
	// configProblems keep the users from being known at all.
	configProblems []settings.Problem
	// published is the ConfigMap as it is, nil if there is none.
	published *corev1.ConfigMap
	// refused says why the wished users are not published.
	refused *settings.Problem
	// unasked says why no server could be asked whether it takes them.
	unasked error
	// accepted is whether every node accepts both passwords of a rotation.
	accepted bool
	// primaryAuth are the nodes whose replication password is the wished one.
	primaryAuth map[string]bool
	problems    map[string]error
	// reverted are nodes whose users had been changed by hand.
	reverted []string
	answer   *v1alpha1.RequestStatus

	mu sync.Mutex
}

// Reconcile brings one cluster's nodes nearer to the users that are wished.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &v1alpha1.ValkeyCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.pace.Forget(req.NamespacedName)
		r.keepListed(req.NamespacedName, nil)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read cluster: %w", err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	p := &pass{cluster: cluster, now: r.now(), problems: map[string]error{}, primaryAuth: map[string]bool{}}
	ready, err := r.observe(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !ready {
		// The cluster controller makes the first file; that it did brings us here again.
		return ctrl.Result{RequeueAfter: reach.Tick}, nil
	}
	outran := false
	if !cluster.Spec.Paused {
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

// observe reads everything. It reports whether the cluster has its users and
// passwords at all.
func (r *Reconciler) observe(ctx context.Context, p *pass) (bool, error) {
	cm := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: objects.ACLConfigMapName(p.cluster.Name)}, cm)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read ConfigMap with the users: %w", err)
	}
	if !metav1.IsControlledBy(cm, p.cluster) {
		return false, nil // there is none, or it is somebody else's
	}
	p.published = cm
	if p.members, err = reach.Members(ctx, r.Client, p.cluster); err != nil {
		return false, err
	}
	catalog, err := reach.Menu(ctx, r.Client)
	if err != nil {
		return false, err
	}
	p.roles = catalog.Roles
	p.config, p.configProblems = settings.Resolve(catalog, p.cluster.Spec.ConfigRef)
	p.trust, p.untrusted = r.Reach.Trust(ctx, p.cluster)
	return r.readPasswords(ctx, p), nil
}

// readPasswords reports whether the system passwords can be read. If not, the cluster
// controller says so.
func (r *Reconciler) readPasswords(ctx context.Context, p *pass) bool {
	secret, err := r.Reach.AuthSecret(ctx, p.cluster)
	if err == nil {
		p.secret = secret
		p.passwords, err = objects.PasswordsOf(secret)
	}
	if err != nil {
		log.FromContext(ctx).V(1).Info("system passwords can't be read", "error", err.Error())
	}
	return err == nil
}

// act publishes the users when that is safe, and has the nodes load them.
func (r *Reconciler) act(ctx context.Context, p *pass) error {
	if err := r.beginRotation(ctx, p); err != nil {
		return err
	}
	if err := r.publish(ctx, p); err != nil {
		return err
	}
	r.load(ctx, p)
	return r.endRotation(ctx, p)
}

// input is what the users follow from.
func (p *pass) input() acl.Input {
	return reach.ACLInput(p.config.ACL, p.roles, p.cluster, p.passwords)
}

// publish writes the wished file, after a running server has been asked whether it
// knows every name in it: a file with one that it doesn't would stop every new pod.
func (r *Reconciler) publish(ctx context.Context, p *pass) error {
	if len(p.configProblems) > 0 {
		p.refused = &p.configProblems[0]
		return nil
	}
	file, problems := acl.Render(p.input())
	if len(problems) > 0 {
		p.refused = &problems[0]
		return nil
	}
	if file == p.file() {
		return nil
	}
	if !r.judge(ctx, p) {
		return nil
	}
	next := p.published.DeepCopy()
	next.Data = objects.ACLConfigMap(p.cluster, file).Data
	if err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(p.published, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update ConfigMap %s: %w", next.Name, err)
	}
	log.FromContext(ctx).Info("users published", "revision", acl.Revision(file)[:16])
	p.published = next
	return nil
}

// file that is published.
func (p *pass) file() string { return p.published.Data[objects.ACLFile] }

// current reports whether what is published is what is wished.
func (p *pass) current() bool {
	if len(p.configProblems) > 0 {
		return false
	}
	file, problems := acl.Render(p.input())
	return len(problems) == 0 && file == p.file()
}

// behind are the nodes that run and are not known to have the published file.
func (p *pass) behind() []string {
	var out []string
	for _, m := range p.members {
		if m.Runs() && m.Applied().ACLRevision != acl.Revision(p.file()) {
			out = append(out, m.Node.Name)
		}
	}
	return out
}

// missing reports whether something is still to come that looking again brings.
func (p *pass) missing() bool {
	return len(p.behind()) > 0 || p.unasked != nil || p.passwords.Rotating() || p.answer != nil && p.answer.State == running ||
		p.refused == nil && !p.current()
}
