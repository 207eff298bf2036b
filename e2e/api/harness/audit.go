//go:build api

package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// auditPolicy logs who did what to which object, never contents: they could be
// Secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// AuditEvent is one finished request.
type AuditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	// ImpersonatedUser is set for clients of Server.As.
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (s *Server) auditLog() string { return filepath.Join(s.dir, "audit.log") }

func (s *Server) configureAudit() error {
	policy := filepath.Join(s.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	s.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", s.auditLog()).
		Set("audit-log-mode", "blocking")
	return nil
}

// AuditEvents of all requests so far, oldest first. The server must have been
// started with Options.Audit.
func (s *Server) AuditEvents(t testing.TB) []AuditEvent {
	t.Helper()
	file, err := os.Open(s.auditLog())
	if err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	defer func() { _ = file.Close() }()
	var events []AuditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e AuditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	return events
}
