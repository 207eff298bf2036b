package operation

import (
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// States of a Result beside those of answers.
const (
	// StateAsked: the manager is asked, and has not answered for good.
	StateAsked = "Asked"
	// StateChanged: the cluster's spec was changed.
	StateChanged = "Changed"
	// StateUnchanged: nothing was left to do.
	StateUnchanged = "Unchanged"
)

// Result is what a command prints as JSON or YAML. The form is stable.
type Result struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Operation is the name of the command.
	Operation string `json:"operation"`
	// ID of the request to the manager, if there is one.
	ID string `json:"id,omitempty"`
	// State is Asked, Running, Done, Failed, Changed or Unchanged.
	State string `json:"state"`
	// Message explains the state.
	Message string `json:"message,omitempty"`
	// DryRun is client or server when nothing was stored.
	DryRun string `json:"dryRun,omitempty"`
}

// Print writes a result in the format that was asked for; as text it is the line
// that kubectl writes of what it changed.
func (o *Options) Print(r Result, done string) error {
	switch o.DryRun {
	case DryRunClient:
		r.DryRun, done = o.DryRun, done+" (dry run)"
	case DryRunServer:
		r.DryRun, done = o.DryRun, done+" (server dry run)"
	}
	text := fmt.Sprintf("valkeycluster.%s/%s", v1alpha1.Group, o.Name)
	switch o.Output {
	case output.Name:
	case output.Text:
		text += " " + done
	default:
		var err error
		if text, err = output.Data(o.Output, r); err != nil {
			return err
		}
		_, err = fmt.Fprint(o.Streams.Out, text)
		return err
	}
	_, err := fmt.Fprintln(o.Streams.Out, text)
	return err
}
