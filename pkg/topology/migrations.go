package topology

import (
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Migration is one job of CLUSTER GETSLOTMIGRATIONS.
type Migration struct {
	// Name of the job, 40 hex digits.
	Name string
	// Export is true on the source, false on the target.
	Export bool
	Slots  slots.Set
	// SourceID and TargetID are node IDs; replicas leave them out.
	SourceID, TargetID string
	// State as the server words it.
	State string
	// Message says why a job failed.
	Message string
	// Created is when the job was asked for, in Unix seconds: the same for all jobs of
	// one command.
	Created int64
}

// Done reports whether the job is over. Only three states are; any other word,
// also one that a later server adds, is an active job.
func (m Migration) Done() bool {
	return m.State == "success" || m.State == "failed" || m.State == "cancelled"
}

// Failed reports whether the job is over and moved nothing.
func (m Migration) Failed() bool { return m.Done() && m.State != "success" }

// ParseMigrations decodes the reply of CLUSTER GETSLOTMIGRATIONS, jobs of
// the newest command first, in the same forms as ParseShards.
func ParseMigrations(reply any) ([]Migration, error) {
	list, err := asList(reply)
	if err != nil {
		return nil, fmt.Errorf("read CLUSTER GETSLOTMIGRATIONS: %w", err)
	}
	jobs := make([]Migration, 0, len(list))
	for i, entry := range list {
		values, err := asMap(entry)
		if err != nil {
			return nil, fmt.Errorf("read CLUSTER GETSLOTMIGRATIONS entry %d: %w", i, err)
		}
		moved, err := slots.ParseSet(asText(values["slot_ranges"]))
		if err != nil {
			return nil, fmt.Errorf("read CLUSTER GETSLOTMIGRATIONS entry %d: %w", i, err)
		}
		jobs = append(jobs, Migration{
			Name: asText(values["name"]), Export: asText(values["operation"]) == "EXPORT", Slots: moved,
			SourceID: asText(values["source_node"]), TargetID: asText(values["target_node"]),
			State: asText(values["state"]), Message: asText(values["message"]), Created: asNumber(values["create_time"]),
		})
	}
	return jobs, nil
}
