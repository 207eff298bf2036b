//go:build e2e

package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Writer is an application in a pod of its own that writes all the time. See
// e2e/writer.
type Writer struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *bufio.Scanner
	stderr *lockedBuffer
	done   chan error
}

// lockedBuffer is written to by an exec while it is read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// writerWithin is how long the writer may take to begin, or to read everything back.
const writerWithin = 5 * time.Minute

// StartWriter starts the writer against a cluster, on a Kubernetes node or on any
// if that is empty, and returns when it writes.
func (s *Space) StartWriter(cluster, node string, args ...string) *Writer {
	s.t.Helper()
	return s.startWriter(cluster, node, "", args)
}

// StartTLSWriter starts the writer against a TLS cluster, whose nodes it verifies by
// the ca.crt of a Secret, wherever that is mounted: as the Secret is now.
func (s *Space) StartTLSWriter(cluster, node, secret string, args ...string) *Writer {
	s.t.Helper()
	// The name of the Service in the namespace alone is in no certificate.
	return s.startWriter(s.Names(cluster)[0], node, secret, append([]string{"--ca", "/secret/ca.crt"}, args...))
}

func (s *Space) startWriter(address, node, secret string, args []string) *Writer {
	s.t.Helper()
	pod := s.ClientPod("writer", secret)
	pod.Spec.NodeName = node
	s.Create(pod)
	s.Eventually("the writer's pod runs", time.Minute, func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
	if _, err := s.Exec(s.t.Context(), s.Name, pod.Name, s.writerProgram(), "sh", "-c", "cat >/tmp/writer && chmod +x /tmp/writer"); err != nil {
		s.t.Fatalf("bring the writer to its pod: %v", err)
	}
	return begin(s.t, func(p pipes) error {
		return s.stream(s.t.Context(), pod.Name, append([]string{"/tmp/writer", "--address", address + ":6379"}, args...),
			remotecommand.StreamOptions{Stdin: p.in, Stdout: p.out, Stderr: p.err})
	})
}

// pipes are what a writer is spoken to through.
type pipes struct {
	in       io.Reader
	out, err io.Writer
}

// begin starts a writer, and returns when it writes.
func begin(t testing.TB, run func(pipes) error) *Writer {
	t.Helper()
	in, toWriter := io.Pipe()
	fromWriter, out := io.Pipe()
	w := &Writer{t: t, in: toWriter, out: bufio.NewScanner(fromWriter), stderr: &lockedBuffer{}, done: make(chan error, 1)}
	w.out.Buffer(nil, 1<<20)
	go func() {
		err := run(pipes{in, out, w.stderr})
		_ = out.CloseWithError(err)
		w.done <- err
	}()
	w.expect(`{"writing":true}`)
	return w
}

// stream runs a command in a pod for as long as it takes.
func (s *Space) stream(ctx context.Context, pod string, argv []string, options remotecommand.StreamOptions) error {
	request := s.Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Name).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: argv, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(s.Config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("exec in pod %s: %w", pod, err)
	}
	return executor.StreamWithContext(ctx, options)
}

// writerProgram builds the writer for the nodes of the cluster.
func (s *Space) writerProgram() string {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(s.t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		s.t.Fatalf("list the nodes to build the writer for: %v", err)
	}
	file := filepath.Join(s.t.TempDir(), "writer")
	build := exec.CommandContext(s.t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./e2e/writer")
	build.Dir = s.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+nodes.Items[0].Status.NodeInfo.Architecture)
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build the writer: %v: %s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatalf("read the writer: %v", err)
	}
	return string(program)
}

// next returns the writer's next line.
func (w *Writer) next() string {
	w.t.Helper()
	line := make(chan string, 1)
	go func() {
		if w.out.Scan() {
			line <- w.out.Text()
		}
		close(line)
	}()
	select {
	case text, ok := <-line:
		if !ok {
			w.t.Fatalf("the writer ended: %v: %s", w.out.Err(), w.stderr)
		}
		return text
	case <-time.After(writerWithin):
		w.t.Fatalf("the writer says nothing for %s: %s", writerWithin, w.stderr)
	case <-w.t.Context().Done():
		w.t.Fatal("the test ended before the writer")
	}
	return ""
}

func (w *Writer) expect(want string) {
	w.t.Helper()
	if got := w.next(); got != want {
		w.t.Fatalf("the writer says %q, want %q", got, want)
	}
}

// Ranges are the slots that so many shards would own, as the writer takes them.
func Ranges(shards int) string {
	var out []string
	for _, set := range slots.Split(shards) {
		out = append(out, set.String())
	}
	return strings.Join(out, ",")
}

// Mark begins a window of this name in the report.
func (w *Writer) Mark(name string) {
	w.t.Helper()
	if _, err := fmt.Fprintln(w.in, "mark "+name); err != nil {
		w.t.Fatalf("tell the writer: %v: %s", err, w.stderr)
	}
	w.expect(fmt.Sprintf("{%q:%q}", "mark", name))
}

// Stop ends the writing, has every acknowledged key read back and returns the
// report.
func (w *Writer) Stop() *report.Report {
	w.t.Helper()
	return w.StopAt("")
}

// StopAt is Stop that has the keys read back by a new client, which starts at another
// address, as the one that the writer knows is gone.
func (w *Writer) StopAt(address string) *report.Report {
	w.t.Helper()
	if _, err := fmt.Fprintln(w.in, strings.TrimSpace("stop "+address)); err != nil {
		w.t.Fatalf("tell the writer: %v: %s", err, w.stderr)
	}
	text := w.next()
	out := &report.Report{}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		w.t.Fatalf("the writer's report is %.500q: %v", text, err)
	}
	_ = w.in.Close()
	if err := <-w.done; err != nil {
		w.t.Errorf("the writer: %v: %s", err, w.stderr)
	}
	if out.Acknowledged == 0 {
		w.t.Error("the writer wrote nothing")
	}
	return out
}

// WantNothingLost fails the test if an acknowledged write is gone, and, if none may
// fail, if an operation did.
func (w *Writer) WantNothingLost(r *report.Report, mayFail bool) {
	w.t.Helper()
	if r.Lost > 0 {
		w.t.Errorf("%d of %d acknowledged keys are lost: %s", r.Lost, r.Acknowledged, strings.Join(r.LostKeys, " "))
	}
	if n, texts := r.Failed(); n > 0 && !mayFail {
		w.t.Errorf("%d operations failed: %s", n, strings.Join(texts, "; "))
	}
}
