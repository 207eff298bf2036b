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
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// process is a program of the tests that runs beside them, is told what to do line by
// line, and reports in the end.
type process struct {
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

// saysWithin is how long a program may take to begin, or for its report.
const saysWithin = 5 * time.Minute

// pipes are what a program is spoken to through.
type pipes struct {
	in       io.Reader
	out, err io.Writer
}

// begin starts a program, and returns when it says that it is ready.
func begin(t testing.TB, ready string, run func(pipes) error) *process {
	t.Helper()
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	p := &process{t: t, in: toProgram, out: bufio.NewScanner(fromProgram), stderr: &lockedBuffer{}, done: make(chan error, 1)}
	p.out.Buffer(nil, 1<<22)
	go func() {
		err := run(pipes{in, out, p.stderr})
		_ = toProgram.Close() // who tells it more hears of it
		_ = out.CloseWithError(err)
		p.done <- err
	}()
	p.expect(ready)
	return p
}

// next returns the program's next line.
func (p *process) next() string {
	p.t.Helper()
	line := make(chan string, 1)
	go func() {
		if p.out.Scan() {
			line <- p.out.Text()
		}
		close(line)
	}()
	select {
	case text, ok := <-line:
		if !ok {
			p.t.Fatalf("the program ended: %v: %s", p.out.Err(), p.stderr)
		}
		return text
	case <-time.After(saysWithin):
		p.t.Fatalf("the program says nothing for %s: %s", saysWithin, p.stderr)
	case <-p.t.Context().Done():
		p.t.Fatal("the test ended before the program")
	}
	return ""
}

func (p *process) expect(want string) {
	p.t.Helper()
	if got := p.next(); got != want {
		p.t.Fatalf("the program says %q, want %q", got, want)
	}
}

// tell sends one line.
func (p *process) tell(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatalf("tell the program: %v: %s", err, p.stderr)
	}
}

// stop ends the program with a line, and reads its report.
func (p *process) stop(line string, report any) {
	p.t.Helper()
	p.tell(line)
	text := p.next()
	if err := json.Unmarshal([]byte(text), report); err != nil {
		p.t.Fatalf("the program's report is %.500q: %v", text, err)
	}
	_ = p.in.Close()
	if err := <-p.done; err != nil {
		p.t.Errorf("the program: %v: %s", err, p.stderr)
	}
}

// programIn is where runPod brings a program to.
const programIn = "/tmp/program"

// runPod starts a pod, brings a program of this repository to it and starts that.
func (s *Space) runPod(pod *corev1.Pod, source, ready string, args ...string) *process {
	s.t.Helper()
	s.Create(pod)
	s.Eventually("pod "+pod.Name+" runs", time.Minute, func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
	if _, err := s.Exec(s.t.Context(), s.Name, pod.Name, s.build(source), "sh", "-c", "cat >"+programIn+" && chmod +x "+programIn); err != nil {
		s.t.Fatalf("bring %s to its pod: %v", source, err)
	}
	return begin(s.t, ready, func(p pipes) error {
		return s.stream(s.t.Context(), pod.Name, append([]string{programIn}, args...),
			remotecommand.StreamOptions{Stdin: p.in, Stdout: p.out, Stderr: p.err})
	})
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

// build builds a program of this repository for the nodes of the cluster.
func (s *Space) build(source string) string {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(s.t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		s.t.Fatalf("list the nodes to build a program for: %v", err)
	}
	file := filepath.Join(s.t.TempDir(), "program")
	build := exec.CommandContext(s.t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, source)
	build.Dir = s.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+nodes.Items[0].Status.NodeInfo.Architecture)
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build %s: %v: %s", source, err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatalf("read what was built of %s: %v", source, err)
	}
	return string(program)
}
