//go:build e2e

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passMessage is the line that the manager logs of each look at a cluster, at the
// level debug.
const passMessage = "looked at the cluster"

// Passes counts, for the clusters of a namespace, how often the manager has looked
// at each since a moment. It is read from the log of the manager that leads.
func (e *Env) Passes(ctx context.Context, since time.Time, namespace string) (map[string]int, error) {
	leader, err := e.WaitForManager(ctx, "")
	if err != nil {
		return nil, err
	}
	from := metav1.NewTime(since)
	stream, err := e.Clientset.CoreV1().Pods(ManagerNamespace).GetLogs(leader.Name, &corev1.PodLogOptions{SinceTime: &from}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the manager's log: %w", err)
	}
	defer func() { _ = stream.Close() }() // it was only read
	passes := map[string]int{}
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return passes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manager's log: %w", err)
		}
		var entry struct {
			Msg             string `json:"msg"`
			Namespace, Name string
		}
		if json.Unmarshal(line, &entry) == nil && entry.Msg == passMessage && entry.Namespace == namespace {
			passes[entry.Name]++
		}
	}
}
