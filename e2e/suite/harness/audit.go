//go:build e2e

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// ManagerUser is the manager's identity in the audit log.
const ManagerUser = "system:serviceaccount:" + ManagerNamespace + ":" + ManagerName

// AuditEntry is one finished request.
type AuditEntry struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent string     `json:"userAgent"`
	ObjectRef *ObjectRef `json:"objectRef"`
	Status    struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// ObjectRef is what a request was about.
type ObjectRef struct {
	Group       string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// Writes is whether the request changes something.
func (a AuditEntry) Writes() bool {
	switch a.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

func (a AuditEntry) String() string {
	text := fmt.Sprintf("%s %s %s -> %d", a.Received.Format("15:04:05.000"), a.Verb, a.RequestURI, a.Status.Code)
	if a.Status.Message != "" {
		text += " " + a.Status.Message
	}
	return text
}

// AuditLog is the API server's log of all requests.
type AuditLog struct {
	path string
}

// Mark is a moment of an audit log.
type Mark int64

// Audit returns the audit log. It is false on a Kubernetes whose log is out of
// reach; then it is said what could not be checked.
func (e *Env) Audit(t testing.TB, what string) (*AuditLog, bool) {
	t.Helper()
	if e.audit == nil {
		e.CannotCheck(t, what)
		return nil, false
	}
	return e.audit, true
}

// Mark notes how far the log has come.
func (l *AuditLog) Mark() (Mark, error) {
	info, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	return Mark(info.Size()), nil
}

// Since reads a user's requests after a mark, oldest first.
func (l *AuditLog) Since(m Mark, user string) ([]AuditEntry, error) {
	return l.Select(m, user, func(a AuditEntry) bool { return a.User.Username == user })
}

// Select reads the requests after a mark whose line holds a text and that are to
// be kept, oldest first.
func (l *AuditLog) Select(m Mark, text string, keep func(AuditEntry) bool) ([]AuditEntry, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if _, err := file.Seek(int64(m), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var out []AuditEntry
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // the last line may be half written
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if !bytes.Contains(line, []byte(text)) {
			continue
		}
		var entry AuditEntry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if keep(entry) {
			out = append(out, entry)
		}
	}
}
