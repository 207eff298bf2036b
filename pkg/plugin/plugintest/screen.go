package plugintest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Stream collects what a command writes; as a terminal it has a size. It is safe
// for use by several goroutines.
type Stream struct {
	mu       sync.Mutex
	buf      bytes.Buffer
	terminal bool
}

// TerminalSize makes a Stream an output.Sized.
func (s *Stream) TerminalSize() (width, height int, ok bool) { return 120, 40, s.terminal }

func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *Stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// Streams returns streams to two new Streams, both on a terminal or neither.
func Streams(in io.Reader, terminal bool) (streams genericiooptions.IOStreams, out, errOut *Stream) {
	out, errOut = &Stream{terminal: terminal}, &Stream{terminal: terminal}
	return genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}, out, errOut
}

// Golden compares got with testdata/<name>; the flag -update writes it instead.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), go test -update accepts it:\n%s", path, diff)
	}
}
