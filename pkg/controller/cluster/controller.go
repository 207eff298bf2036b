// Package cluster reconciles ValkeyClusters: it observes everything that
// concerns one cluster, lets pkg/plan decide, carries out one batch of actions,
// writes down what it saw, and comes again. Nothing is decided here.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/metrics"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Reconciler reconciles ValkeyClusters.
type Reconciler struct {
	// Client reads from the cache and writes; Secrets it reads from the API server.
	Client client.Client
	// Metadata reads from the cache what is known of Secrets, none of their data. The
	// client would ask the API server each time.
	Metadata client.Reader
	// Live reads from the API server, for decisions that an old cache would spoil.
	Live client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Reach leads to the servers.
	Reach *reach.Reach
	// Metrics counts passes and actions; nil counts nothing.
	Metrics *metrics.Metrics

	// gateway speaks of TCPRoutes; nil where there are none.
	gateway   *gatewayAPI
	pace      *pace
	holds     *holds
	stalls    *stalls
	moments   *moments
	immutable *immutable
	pruned    *pruned
}

// Reconcile brings one cluster one batch of actions nearer to what it shall be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	begin := time.Now()
	result, there, err := r.pass(ctx, req)
	if there {
		r.Metrics.Pass(req.NamespacedName, time.Since(begin), err)
	}
	return result, err
}

// pass looks at one cluster and acts once. There is false when it is gone or going.
func (r *Reconciler) pass(ctx context.Context, req ctrl.Request) (result ctrl.Result, there bool, err error) {
	cluster := &v1alpha1.ValkeyCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.Forget(req.NamespacedName)
			r.pace.forget(req.NamespacedName)
			r.holds.forget(req.NamespacedName)
			r.stalls.forget(req.NamespacedName)
			r.moments.forget(req.NamespacedName)
			r.pruned.forget(req.NamespacedName)
			r.Reach.Forget(req.NamespacedName)
			return ctrl.Result{}, false, nil
		}
		return ctrl.Result{}, false, fmt.Errorf("read cluster: %w", err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, false, nil // ownership deletes everything, nothing may be made again
	}
	o, err := r.observe(ctx, cluster, r.Client)
	if err != nil {
		return ctrl.Result{}, true, err
	}
	if r.secondLook(req.NamespacedName, o) {
		return ctrl.Result{RequeueAfter: blink}, true, nil
	}
	out := r.decide(ctx, o)
	if errors.Is(out.failed, errDeleted) {
		return ctrl.Result{}, false, nil
	}
	if err := r.markInSync(ctx, o); err != nil && out.failed == nil {
		out.failed = err
	}
	outran, err := r.writeStatus(ctx, o, out)
	if err != nil {
		return ctrl.Result{}, true, err
	}
	if !outran {
		r.lossReported(o, out.lost)
	}
	acted := out.failed == nil && out.acted || out.outside.acted
	next := r.pace.next(req.NamespacedName, acted || outran, out.waiting() || o.outside.waiting(out.outside), time.Now())
	log.FromContext(ctx).V(1).Info("looked at the cluster", "acted", out.acted, "summary", out.summary(), "next", next.String())
	return ctrl.Result{RequeueAfter: next}, true, nil
}

const (
	// blink is when a node that missed one answer is asked again.
	blink = 500 * time.Millisecond
	// patience is how long later misses are believed at once.
	patience = 10 * time.Second
)

// secondLook reports whether to look once more before anything is concluded: one
// answer that comes too late, on a busy machine, is no reason to call a cluster
// degraded and well again. A node whose container ended is not asked, so nothing
// that is known for sure waits for this, nor does a primary that was told to stop:
// it has to be handed over at once.
func (r *Reconciler) secondLook(key types.NamespacedName, o *observation) bool {
	if len(o.blinked) == 0 {
		return false
	}
	if slices.ContainsFunc(o.planNodes(), func(n plan.Node) bool { return n.Terminating && n.TerminatingFor < time.Second }) {
		return false
	}
	if ago, ok := r.moments.ago(key, "blink", o.now); ok && ago < patience {
		return false
	}
	r.moments.mark(key, "blink", o.now)
	return true
}

// outcome is what one pass decided and did.
type outcome struct {
	decision plan.Decision
	// blocked says why nothing may be changed: paused, or a reference is missing.
	blocked *problem
	// failed is the error of this pass's actions, in words.
	failed error
	// acted is true if an action was carried out.
	acted bool
	// refused are settings that servers did not take.
	refused []settings.Problem
	// answers to requests, by verb.
	answers map[string]v1alpha1.RequestStatus
	// outside is about clients outside Kubernetes.
	outside outsideOutcome
	// lost says which slots are about to be given up.
	lost []string
}

// problem is a reason with its sentence, as conditions carry them.
type problem struct {
	reason, message string
}

// waiting reports whether something is still to come that only another look shows.
func (out outcome) waiting() bool {
	for _, a := range out.answers {
		if a.State == request.Running {
			return true
		}
	}
	return out.summary() != ""
}

// decide makes sure of the cluster's own objects, plans, and acts once.
func (r *Reconciler) decide(ctx context.Context, o *observation) outcome {
	out := outcome{answers: map[string]v1alpha1.RequestStatus{}, decision: o.next()}
	if o.cluster.Spec.Paused {
		out.blocked = &problem{v1alpha1.ReasonPaused, "spec.paused is true: the manager reports, but changes nothing"}
		return out
	}
	if out.blocked = o.blocking(); out.blocked != nil {
		return out
	}
	if out.failed = r.ensure(ctx, o); out.failed != nil {
		if kindsUnknown(out.failed) {
			out.decision, out.failed = plan.Decision{Waiting: "the API server does not know the kinds of valkey.gomomento.com yet, they are new"}, nil
		}
		return out
	}
	out.refused = r.applySettings(ctx, o)
	if out.failed = r.openOutside(ctx, o, &out.outside); out.failed != nil {
		return out
	}
	if out.decision.NeedsLiveView() {
		if out.failed = r.stillThere(ctx, o); out.failed != nil {
			return out
		}
		fresh, err := r.observe(ctx, o.cluster, r.Live)
		if err != nil {
			out.failed = err
			return out
		}
		*o = *fresh
		out.decision = o.next()
	}
	r.serveRequests(o, &out)
	written, err := r.writeTarget(ctx, o)
	if err != nil || !written {
		out.acted, out.failed = true, err
		return out // the snapshot is written down before the first step towards it
	}
	if out.lost = r.unreportedLoss(o, out.decision.Actions); len(out.lost) > 0 {
		out.acted = true
		return out // a loss is written down before its traces go
	}
	out.acted, out.failed = r.act(ctx, o, out.decision.Actions)
	if out.failed == nil && activates(out.decision) {
		out.decision = o.next() // nothing else has changed, and often it was the last step
	}
	return out
}

// activates reports whether a decision only marks nodes that have found their place.
func activates(d plan.Decision) bool {
	return len(d.Actions) > 0 && d.Actions[0].Kind == plan.Activate
}

// kindsUnknown reports the answer of an API server that checks owner references
// (OwnerReferencesPermissionEnforcement) and has not noticed our kinds yet, as it
// is for some seconds after they were installed.
func kindsUnknown(err error) bool { return strings.Contains(err.Error(), "cannot find RESTMapping") }

// act carries out actions of one kind together and logs each. It reports whether
// any was new.
func (r *Reconciler) act(ctx context.Context, o *observation, actions []plan.Action) (bool, error) {
	var acted atomic.Bool
	err := together(len(actions), func(i int) error {
		a := actions[i]
		err := r.execute(ctx, o, a)
		if errors.Is(err, errUnderWay) {
			return nil
		}
		acted.Store(true)
		r.Metrics.Action(client.ObjectKeyFromObject(o.cluster), string(a.Kind), err)
		logger := log.FromContext(ctx).WithValues("action", a.Kind, "node", a.Node, "reason", a.Reason)
		if err != nil {
			logger.Info("action failed", "error", err.Error())
			return fmt.Errorf("%s %s: %w", a.Kind, a.Node, err)
		}
		logger.Info("action done")
		return nil
	})
	return acted.Load(), err
}

func (r *Reconciler) event(o *observation, kind, reason, format string, args ...any) {
	r.Recorder.Eventf(o.cluster, nil, kind, reason, "Reconcile", "%s", reach.Note(fmt.Sprintf(format, args...)))
}

func (r *Reconciler) normal(o *observation, reason, format string, args ...any) {
	r.event(o, corev1.EventTypeNormal, reason, format, args...)
}
