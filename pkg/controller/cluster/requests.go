package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

func answer(req request.Request, state, message string) v1alpha1.RequestStatus {
	return v1alpha1.RequestStatus{Verb: req.Verb, ID: req.ID, State: state, Message: message}
}

// lossAccepted reports whether the user asks to go on without copies that don't
// answer.
func (o *observation) lossAccepted() bool {
	_, ok := request.Open(o.cluster, request.Acknowledge)
	return ok
}

// moment is the time that a restart request carries: nodes made before it are to
// be replaced. A request without a readable time concerns no node.
func moment(req request.Request) *metav1.Time {
	at, err := req.Moment()
	if err != nil {
		return &metav1.Time{}
	}
	return &metav1.Time{Time: at}
}

// serveRequests answers requests for a restart, which is a roll, and for a
// failover, which is asked for once the cluster is well.
func (r *Reconciler) serveRequests(o *observation, out *outcome) {
	if req, ok := request.Open(o.cluster, request.Restart); ok {
		out.answers[req.Verb] = restarted(o, req)
	}
	req, ok := request.Open(o.cluster, request.Failover)
	if !ok || len(out.decision.Actions) > 0 {
		return
	}
	shard, node, err := req.Shard()
	if err != nil {
		out.answers[req.Verb] = answer(req, request.Failed, err.Error())
		return
	}
	state := o.state()
	for _, old := range o.cluster.Status.Requests {
		if was, under := strings.CutPrefix(old.Message, handoverFrom); under && old.Verb == req.Verb && old.ID == req.ID && old.State == request.Running {
			out.answers[req.Verb] = followed(state, req, shard, was)
			return
		}
	}
	if !out.decision.Complete {
		out.answers[req.Verb] = answer(req, request.Running, "waiting: "+out.decision.Waiting)
		return
	}
	action, err := plan.Handover(state, shard, node)
	if err != nil {
		out.answers[req.Verb] = answer(req, request.Failed, err.Error())
		return
	}
	out.decision = plan.Decision{Actions: []plan.Action{action}}
	out.answers[req.Verb] = answer(req, request.Running, handoverFrom+action.Target)
}

const handoverFrom = "handing over from "

// followed answers a failover that was asked for: it is done when another node is
// the primary, and has failed when that takes longer than a failover can.
func followed(s plan.State, req request.Request, shard int32, was string) v1alpha1.RequestStatus {
	now, ok := plan.Primary(s, shard)
	if ok && now != was {
		return answer(req, request.Done, fmt.Sprintf("%s took over shard %d from %s", now, shard, was))
	}
	if ago, known := s.Failovers[shard]; !known || ago > plan.FailoverTimeout {
		return answer(req, request.Failed, fmt.Sprintf("%s is still the primary of shard %d: the failover timed out, ask again", was, shard))
	}
	return answer(req, request.Running, handoverFrom+was)
}

// restarted answers a restart: it is done when no node is older than the request.
func restarted(o *observation, req request.Request) v1alpha1.RequestStatus {
	if _, err := req.Moment(); err != nil {
		return answer(req, request.Failed, err.Error())
	}
	old := 0
	for i := range o.nodes {
		if o.nodes[i].CreationTimestamp.Before(moment(req)) {
			old++
		}
	}
	if old == 0 {
		return answer(req, request.Done, "every node was replaced")
	}
	return answer(req, request.Running, fmt.Sprintf("%d nodes are still to be replaced", old))
}

// answers returns the answers to all requests: what is known already stays, new
// answers replace those of the same verb, and a verb that nobody knows is refused.
func answers(o *observation, out outcome) []v1alpha1.RequestStatus {
	byVerb := map[string]v1alpha1.RequestStatus{}
	for _, old := range o.cluster.Status.Requests {
		byVerb[old.Verb] = old
	}
	for _, req := range request.Of(o.cluster) {
		if old, ok := byVerb[req.Verb]; ok && old.ID == req.ID && old.State != request.Running {
			continue
		}
		switch req.Verb {
		case request.Acknowledge:
			byVerb[req.Verb] = acknowledged(o, req)
		case request.Failover, request.Restart:
			if a, ok := out.answers[req.Verb]; ok {
				byVerb[req.Verb] = a
			}
		default:
			byVerb[req.Verb] = answer(req, request.Failed, fmt.Sprintf("this manager knows no request %q", req.Verb))
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
func acknowledged(o *observation, req request.Request) v1alpha1.RequestStatus {
	if len(o.awaited) > 0 || !o.creating && !o.view.UnassignedSlots().Empty() {
		return answer(req, request.Running, "the lost slots are being given to empty nodes")
	}
	return answer(req, request.Done, "")
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
		if a.Verb == request.Acknowledge && a.State == request.Done && o.lossAccepted() {
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
