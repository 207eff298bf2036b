//go:build e2e

package harness

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Record is what e2e/verdict, which runs after the suite, has to know of its run.
type Record struct {
	// AuditLog is the path of the audit log, empty where it can't be had.
	AuditLog string `json:"auditLog"`
	// AuditFrom is how long the log was before the manager was installed.
	AuditFrom Mark `json:"auditFrom"`
	// Ended is when the tests were over and the manager's rights were taken away.
	Ended time.Time `json:"ended"`
	// Complete is true if every test of the suite ran and passed: what the manager
	// never did can only be told from such a run.
	Complete bool `json:"complete"`
}

func recordFile(logs string) string { return filepath.Join(logs, "suite.json") }

// LoadRecord reads what the suite noted.
func LoadRecord(logs string) (Record, error) {
	var r Record
	data, err := os.ReadFile(recordFile(logs))
	if err != nil {
		return r, fmt.Errorf("read what the suite noted: %w; run make test-e2e, in which the suite runs first", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read what the suite noted: %w", err)
	}
	return r, nil
}

// Audit reads the requests since the manager was installed whose line in the audit
// log holds a text and that are to be kept.
func (r Record) Audit(text string, keep func(AuditEntry) bool) ([]AuditEntry, error) {
	return (&AuditLog{path: r.AuditLog}).Select(r.AuditFrom, text, keep)
}

func (e *Env) beginRecord() error {
	e.record = &Record{}
	if e.audit != nil {
		e.record.AuditLog = e.audit.path
		mark, err := e.audit.Mark()
		if err != nil {
			return err
		}
		e.record.AuditFrom = mark
	}
	return e.writeRecord()
}

func (e *Env) endRecord(passed bool) error {
	run := flag.Lookup("test.run")
	e.record.Complete = passed && (run == nil || run.Value.String() == "")
	e.record.Ended = time.Now()
	return e.writeRecord()
}

func (e *Env) writeRecord() error {
	data, err := json.MarshalIndent(e.record, "", "  ")
	if err != nil {
		return fmt.Errorf("note the run: %w", err)
	}
	if err := os.WriteFile(recordFile(e.Logs), data, 0o644); err != nil {
		return fmt.Errorf("note the run: %w", err)
	}
	return nil
}
