package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// patience with clocks: a restart is dated by the API server, whose clock may be
// somewhat ahead of the manager's.
const clocksDiffer = time.Minute

// restartOf returns the moment that a restart request carries: nodes made before it
// are to be replaced. One that lies ahead would also concern the nodes that take
// their place, again and again, so it concerns none before its time has come.
func restartOf(req request.Request, now time.Time) (moment time.Time, come bool, err error) {
	moment, err = req.Moment()
	switch {
	case err != nil:
		return time.Time{}, false, err
	case moment.Sub(now) > clocksDiffer:
		return time.Time{}, false, fmt.Errorf("%s is yet to come: a restart takes effect at once, ask for it with: kubectl valkey restart", moment.UTC().Format(time.RFC3339))
	}
	return moment, !moment.After(now), nil
}

// olderThanRestart reports whether a node is to be replaced because somebody asked
// for a restart.
func (o *observation) olderThanRestart(n *v1alpha1.ValkeyNode) bool {
	req, open := request.Open(o.cluster, request.Restart)
	if !open {
		return false
	}
	moment, come, err := restartOf(req, o.now)
	return err == nil && come && n.CreationTimestamp.Time.Before(moment)
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
	moment, come, err := restartOf(req, o.now)
	switch {
	case err != nil:
		return answer(req, request.Failed, err.Error())
	case !come:
		return answer(req, request.Running, "waiting for "+moment.UTC().Format(time.RFC3339)+" by the manager's clock")
	}
	old := 0
	for i := range o.nodes {
		if o.olderThanRestart(&o.nodes[i]) {
			old++
		}
	}
	if old == 0 {
		return answer(req, request.Done, "every node was replaced")
	}
	return answer(req, request.Running, fmt.Sprintf("nodes still to be replaced: %d", old))
}

// answers returns the answers to all requests: what is known already stays, unless
// it is about one that was taken back before it was done; new answers replace those
// of the same verb, and a verb that nobody knows is refused.
func answers(o *observation, out outcome) []v1alpha1.RequestStatus {
	byVerb := map[string]v1alpha1.RequestStatus{}
	asked := request.Of(o.cluster)
	for _, old := range o.cluster.Status.Requests {
		there := slices.ContainsFunc(asked, func(req request.Request) bool { return req.Verb == old.Verb && req.ID == old.ID })
		if there || old.State != request.Running {
			byVerb[old.Verb] = old
		}
	}
	for _, req := range asked {
		if old, ok := byVerb[req.Verb]; ok && old.ID == req.ID && old.State != request.Running {
			continue
		}
		switch req.Verb {
		case request.Acknowledge:
			byVerb[req.Verb] = acknowledged(o, req)
		case request.RotateCredentials:
			// The acl controller answers.
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
// copy any more and all slots have an owner that lives. Until then the acceptance
// counts: while the tables still list a lost owner its slots are not free, and what
// is about to be given up would be reported as one more loss.
func acknowledged(o *observation, req request.Request) v1alpha1.RequestStatus {
	switch {
	case len(o.awaited) > 0:
		return answer(req, request.Running, join(o.awaited)+"; a node is given up once it has been silent for a minute and the others call it failed")
	case !o.creating && !o.uncovered().Empty():
		return answer(req, request.Running, "the lost slots are being given to empty nodes")
	}
	return answer(req, request.Done, "")
}
