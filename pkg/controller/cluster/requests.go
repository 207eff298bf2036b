package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	asked "github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// Verbs of the requests that the plugin makes.
const (
	verbAcknowledge = "acknowledge"
	verbFailover    = "failover"
	verbRestart     = "restart"
	verbRotate      = asked.RotateCredentials
)

// request is an operation that somebody asked for by an annotation.
type request struct {
	verb, id string
	args     []string
}

// requests returns the cluster's requests by verb. The first word of a value is an
// ID that the answer repeats; a value without one asks for nothing.
func (o *observation) requests() []request {
	var out []request
	for key, value := range o.cluster.Annotations {
		verb, ok := strings.CutPrefix(key, v1alpha1.AnnotationRequestPrefix)
		words := strings.Fields(value)
		if !ok || len(words) == 0 {
			continue
		}
		out = append(out, request{verb: verb, id: words[0], args: words[1:]})
	}
	slices.SortFunc(out, func(a, b request) int { return strings.Compare(a.verb, b.verb) })
	return out
}

// open returns the request of a verb unless it was answered for good.
func (o *observation) open(verb string) (request, bool) {
	for _, req := range o.requests() {
		if req.verb != verb {
			continue
		}
		for _, answer := range o.cluster.Status.Requests {
			if answer.Verb == verb && answer.ID == req.id && answer.State != requestRunning {
				return request{}, false
			}
		}
		return req, true
	}
	return request{}, false
}

// States of an answer.
const (
	requestRunning = "Running"
	requestDone    = "Done"
	requestFailed  = "Failed"
)

func answer(req request, state, message string) v1alpha1.RequestStatus {
	return v1alpha1.RequestStatus{Verb: req.verb, ID: req.id, State: state, Message: message}
}

// lossAccepted reports whether the user asks to go on without copies that don't
// answer.
func (o *observation) lossAccepted() bool {
	_, ok := o.open(verbAcknowledge)
	return ok
}

// moment is the time that a restart request carries: nodes made before it are to
// be replaced. A request without a readable time concerns no node.
func (r request) moment() *metav1.Time {
	at := metav1.Time{}
	if len(r.args) > 0 {
		if parsed, err := time.Parse(time.RFC3339, r.args[0]); err == nil {
			at = metav1.NewTime(parsed)
		}
	}
	return &at
}

// serveRequests answers requests for a restart, which is a roll, and for a
// failover, which is asked for once the cluster is well.
func (r *Reconciler) serveRequests(o *observation, out *outcome) {
	if req, ok := o.open(verbRestart); ok {
		out.answers[req.verb] = restarted(o, req)
	}
	req, ok := o.open(verbFailover)
	if !ok || len(out.decision.Actions) > 0 {
		return
	}
	shard, node, err := failoverArgs(req)
	if err != nil {
		out.answers[req.verb] = answer(req, requestFailed, err.Error())
		return
	}
	state := o.state()
	for _, old := range o.cluster.Status.Requests {
		if was, under := strings.CutPrefix(old.Message, handoverFrom); under && old.Verb == req.verb && old.ID == req.id && old.State == requestRunning {
			out.answers[req.verb] = followed(state, req, shard, was)
			return
		}
	}
	if !out.decision.Complete {
		out.answers[req.verb] = answer(req, requestRunning, "waiting: "+out.decision.Waiting)
		return
	}
	action, err := plan.Handover(state, shard, node)
	if err != nil {
		out.answers[req.verb] = answer(req, requestFailed, err.Error())
		return
	}
	out.decision = plan.Decision{Actions: []plan.Action{action}}
	out.answers[req.verb] = answer(req, requestRunning, handoverFrom+action.Target)
}

const handoverFrom = "handing over from "

// followed answers a failover that was asked for: it is done when another node is
// the primary, and has failed when that takes longer than a failover can.
func followed(s plan.State, req request, shard int32, was string) v1alpha1.RequestStatus {
	now, ok := plan.Primary(s, shard)
	if ok && now != was {
		return answer(req, requestDone, fmt.Sprintf("%s took over shard %d from %s", now, shard, was))
	}
	if ago, known := s.Failovers[shard]; !known || ago > plan.FailoverTimeout {
		return answer(req, requestFailed, fmt.Sprintf("%s is still the primary of shard %d: the failover timed out, ask again", was, shard))
	}
	return answer(req, requestRunning, handoverFrom+was)
}

func failoverArgs(req request) (shard int32, node string, err error) {
	if len(req.args) == 0 {
		return 0, "", fmt.Errorf("the request names no shard: <id> <shard> [<node>]")
	}
	n, err := strconv.ParseInt(req.args[0], 10, 32)
	if err != nil {
		return 0, "", fmt.Errorf("%q is no shard index", req.args[0])
	}
	if len(req.args) > 1 {
		node = req.args[1]
	}
	return int32(n), node, nil
}

// restarted answers a restart: it is done when no node is older than the request.
func restarted(o *observation, req request) v1alpha1.RequestStatus {
	if req.moment().IsZero() {
		return answer(req, requestFailed, "the request names no time: <id> <RFC 3339 time>")
	}
	old := 0
	for i := range o.nodes {
		if o.nodes[i].CreationTimestamp.Before(req.moment()) {
			old++
		}
	}
	if old == 0 {
		return answer(req, requestDone, "every node was replaced")
	}
	return answer(req, requestRunning, fmt.Sprintf("%d nodes are still to be replaced", old))
}

// answers returns the answers to all requests: what is known already stays, new
// answers replace those of the same verb, and a verb that nobody knows is refused.
func answers(o *observation, out outcome) []v1alpha1.RequestStatus {
	byVerb := map[string]v1alpha1.RequestStatus{}
	for _, old := range o.cluster.Status.Requests {
		byVerb[old.Verb] = old
	}
	for _, req := range o.requests() {
		if old, ok := byVerb[req.verb]; ok && old.ID == req.id && old.State != requestRunning {
			continue
		}
		switch req.verb {
		case verbAcknowledge:
			byVerb[req.verb] = acknowledged(o, req)
		case verbRotate:
			// The acl controller answers.
		case verbFailover, verbRestart:
			if a, ok := out.answers[req.verb]; ok {
				byVerb[req.verb] = a
			}
		default:
			byVerb[req.verb] = answer(req, requestFailed, fmt.Sprintf("this manager knows no request %q", req.verb))
		}
	}
	list := make([]v1alpha1.RequestStatus, 0, len(byVerb))
	for _, a := range byVerb {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b v1alpha1.RequestStatus) int { return strings.Compare(a.Verb, b.Verb) })
	if len(list) == 0 {
		return nil
	}
	return list
}

// acknowledged answers an acknowledgement: it is done once no shard waits for a
// copy any more.
func acknowledged(o *observation, req request) v1alpha1.RequestStatus {
	if len(o.awaited) > 0 || !o.creating && !o.view.UnassignedSlots().Empty() {
		return answer(req, requestRunning, "the lost slots are being given to empty nodes")
	}
	return answer(req, requestDone, "")
}

// unreportedLoss says which data is given up by actions that the condition does
// not tell of yet.
func (o *observation) unreportedLoss(actions []plan.Action) string {
	known := ""
	if c := meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss); c != nil {
		known = c.Message
	}
	var losses []string
	for _, a := range actions {
		if a.Kind == plan.ReplaceLost && !strings.Contains(known, a.Reason) {
			losses = append(losses, a.Reason)
		}
	}
	return strings.Join(losses, "; ")
}

// dataLoss keeps the condition that slots lost their data until somebody has
// acknowledged it.
func dataLoss(s *v1alpha1.ValkeyClusterStatus, o *observation, out outcome) {
	for _, a := range s.Requests {
		if a.Verb == verbAcknowledge && a.State == requestDone && o.lossAccepted() {
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDataLoss)
		}
	}
	if out.lost == "" {
		return
	}
	message := out.lost
	if old := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDataLoss); old != nil && !strings.Contains(old.Message, message) {
		message = old.Message + "; " + message
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDataLoss, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonDataLoss, Message: message, ObservedGeneration: o.cluster.Generation,
	})
}
