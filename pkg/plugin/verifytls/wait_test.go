package verifytls

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

var fingerprints = regexp.MustCompile(`\b[0-9a-f]{12}\b`)

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// presentClock ticks as real time does and always tells the time of the fixtures.
type presentClock struct{ clock.RealClock }

func (presentClock) Now() time.Time                  { return plugintest.Now }
func (presentClock) Since(t time.Time) time.Duration { return plugintest.Now.Sub(t) }

// rotating has one node that serves another leaf than the Secret's.
func rotating(t *testing.T) (s *setup, lagging *server) {
	t.Helper()
	s = newSetup(t)
	s.clock = presentClock{}
	lagging = s.servers[2]
	lagging.leaf = s.ca.leaf(t, nil)
	return s, lagging
}

// waits until the command says so.
func untilSaid(t *testing.T, session *plugintest.Session, words string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !strings.Contains(session.ErrOut.String(), words) {
		select {
		case <-limit:
			t.Fatalf("%q was not said: %q", words, session.ErrOut)
		case <-ticker.C:
		}
	}
}

func TestWaitEndsWhenTheLastNodeServesTheNewLeaf(t *testing.T) {
	plugintest.Kubeconfig(t)
	s, lagging := rotating(t)
	session := plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait", "--timeout", "1m")
	untilSaid(t, session, "5 of 6 nodes serve the new certificate; missing: "+lagging.name)
	lagging.rotate(s.leaf)
	if code := session.Wait(); code != exit.OK || !strings.Contains(session.Out.String(), " 0 failed") {
		t.Errorf("exit %d, %s%s", code, session.Out, session.ErrOut)
	}
}

func TestWaitEndsInTimeAndNamesWhatIsMissing(t *testing.T) {
	plugintest.Kubeconfig(t)
	s, lagging := rotating(t)
	session := plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait", "--timeout", "1500ms")
	if code := session.Wait(); code != exit.TimedOut || !strings.Contains(session.ErrOut.String(), "missing: "+lagging.name+"\n") {
		t.Errorf("exit %d, %q", code, session.ErrOut)
	}
}

// In the last step of a swap to another CA every node serves the new leaf already.
func TestWaitEndsWhenTheManagerHasTakenTheOldCAAway(t *testing.T) {
	plugintest.Kubeconfig(t)
	s := newSetup(t)
	s.clock = presentClock{}
	s.fixture.Condition(v1alpha1.ConditionTLSReady, false, v1alpha1.ReasonTLSRotating, "next: what the Secret holds")
	session := plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait", "--timeout", "1500ms")
	if code := session.Wait(); code != exit.TimedOut || !strings.Contains(session.ErrOut.String(), "every node serves the new certificate; TLSReady is not true yet: next: what the Secret holds") {
		t.Errorf("exit %d, %s%s", code, session.Out, session.ErrOut)
	}
	s.fixture.Condition(v1alpha1.ConditionTLSReady, true, v1alpha1.ReasonTLSServed, "6 of 6 nodes serve the certificate")
	session = plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait", "--timeout", "1m")
	if code := session.Wait(); code != exit.OK {
		t.Errorf("exit %d, %s%s", code, session.Out, session.ErrOut)
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	plugintest.Kubeconfig(t)
	s, _ := rotating(t)
	session := plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait")
	untilSaid(t, session, "5 of 6 nodes")
	session.Stop()
	if code := session.Wait(); code != exit.Interrupted || !strings.Contains(session.ErrOut.String(), "the rotation goes on") {
		t.Errorf("exit %d, %q", code, session.ErrOut)
	}
}

func TestWaitDoesNotWaitForWhatOnlyAPersonCanMend(t *testing.T) {
	plugintest.Kubeconfig(t)
	s, _ := rotating(t)
	delete(s.secret.Data, certs.CAKey)
	session := plugintest.Start(t, s.build(), strings.NewReader(""), false, "demo", "--wait")
	if code := session.Wait(); code != exit.Failed || !strings.Contains(session.Out.String(), "it has no ca.crt") {
		t.Errorf("exit %d, %s%s", code, session.Out, session.ErrOut)
	}
}
