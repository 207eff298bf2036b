// Package checklist holds the outcome of checks: a row for each, with the reason and
// the fix, and how they are shown.
package checklist

import (
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Results of a check.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Row is the outcome of one check. Its JSON form is stable.
type Row struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Where it was made: a node, a shard, an address outside; empty for the cluster.
	Where string `json:"where,omitempty"`
	// Result is passed, failed or skipped.
	Result string `json:"result"`
	// Reason for the result.
	Reason string `json:"reason,omitempty"`
	// Fix is what to do about it.
	Fix string `json:"fix,omitempty"`
}

// Rows collects the checks of one place.
type Rows struct {
	// Where the checks are made; empty for the whole.
	Where string
	// List of the checks made so far.
	List []Row
}

func (r *Rows) add(check, result, reason, fix string) {
	r.List = append(r.List, Row{Check: check, Where: r.Where, Result: result, Reason: output.Clean(reason), Fix: output.Clean(fix)})
}

// Pass notes that a check passed.
func (r *Rows) Pass(check, reason string) { r.add(check, Passed, reason, "") }

// Fail notes that a check failed, and what to do about it.
func (r *Rows) Fail(check, reason, fix string) { r.add(check, Failed, reason, fix) }

// Skip notes why a check was not made, and what would allow it.
func (r *Rows) Skip(check, reason, fix string) { r.add(check, Skipped, reason, fix) }
