package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const (
	// mostLosses is how many losses are told in full; a condition can hold no more
	// than 32768 bytes, and a cluster may have 1000 shards.
	mostLosses = 8
	// longestLoss is how much of each is told: slots may be many ranges.
	longestLoss = 512
)

// unreportedLoss says which data is given up by actions that the condition does
// not tell of yet.
func (r *Reconciler) unreportedLoss(o *observation, actions []plan.Action) []string {
	known := ""
	if c := meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss); c != nil {
		known = c.Message
	}
	var losses []string
	for _, a := range actions {
		if a.Kind != plan.ReplaceLost || strings.Contains(known, a.Reason) {
			continue
		}
		// Those that the condition only counts.
		if _, told := r.moments.ago(client.ObjectKeyFromObject(o.cluster), "loss "+a.Reason, o.now); !told {
			losses = append(losses, a.Reason)
		}
	}
	return losses
}

// lossReported notes that losses are written down. A manager that was restarted
// counts those again that are not told in full, and no more.
func (r *Reconciler) lossReported(o *observation, losses []string) {
	for _, loss := range losses {
		r.moments.mark(client.ObjectKeyFromObject(o.cluster), "loss "+loss, o.now)
	}
}

// dataLoss keeps the condition that slots lost their data until somebody has
// acknowledged it.
func dataLoss(s *v1alpha1.ValkeyClusterStatus, o *observation, out outcome) {
	for _, a := range s.Requests {
		if a.Verb == request.Acknowledge && a.State == request.Done && o.lossAccepted() {
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDataLoss)
		}
	}
	if len(out.lost) == 0 {
		return
	}
	before := ""
	if old := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDataLoss); old != nil {
		before = old.Message
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDataLoss, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonDataLoss, Message: withLosses(before, out.lost), ObservedGeneration: o.cluster.Generation,
	})
}

var countedLosses = regexp.MustCompile(`^and (\d+) more$`)

// withLosses adds losses to a message that may tell of some already: the first in
// full, the others counted.
func withLosses(message string, losses []string) string {
	var told []string
	counted := 0
	if message != "" {
		told = strings.Split(message, "; ")
		if n := countedLosses.FindStringSubmatch(told[len(told)-1]); n != nil {
			counted, _ = strconv.Atoi(n[1])
			told = told[:len(told)-1]
		}
	}
	for _, loss := range losses {
		if len(told) < mostLosses {
			told = append(told, reach.Cut(loss, longestLoss))
		} else {
			counted++
		}
	}
	if counted > 0 {
		told = append(told, fmt.Sprintf("and %d more", counted))
	}
	return strings.Join(told, "; ")
}
