package ideal

import (
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// Forecast is what the planner would do from a state on, if all went well.
type Forecast struct {
	// Steps in their order.
	Steps []plan.Action
	// Waiting is why the forecast ends before the cluster is as wished: what only
	// somebody or something else can change. Empty when it gets there.
	Waiting string
	// End is how things are then.
	End plan.State
}

// Steps plans and acts until the cluster is as wished or nothing is left that the
// planner could do, however long that may take in reality.
func Steps(s plan.State) Forecast {
	w := From(s)
	var f Forecast
	// Far more rounds than replacing every node takes: a planner that goes in circles
	// is to be noticed, not followed.
	rounds := 100 + 20*(len(s.Nodes)+int(s.Target.Shards*(s.Target.ReplicasPerShard+1)))
	for range rounds {
		d := plan.Next(w.Observe())
		switch {
		case d.Complete:
			w.State.Creating = false
			f.End = w.Observe()
			return f
		case len(d.Actions) == 0 && !w.Pass():
			f.Waiting, f.End = d.Waiting, w.State
			return f
		}
		for _, a := range d.Actions {
			if err := w.Do(a); err != nil {
				f.Waiting, f.End = err.Error(), w.Observe()
				return f
			}
			f.Steps = append(f.Steps, a)
		}
	}
	f.Waiting, f.End = fmt.Sprintf("no end is in sight after %d steps", len(f.Steps)), w.Observe()
	return f
}
