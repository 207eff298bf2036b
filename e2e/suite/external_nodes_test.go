//go:build e2e

package suite

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// S1-16: when a server dies, the others log the name of its node. The cluster is paused,
// so that they find out by themselves.
func TestServersLogTheNameOfAFailedNode(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	c := s.Cluster("c", 3, 0)
	c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
	s.Create(c)
	waitOutside(s)
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = true })
	s.WaitCondition("c", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	pods := s.Pods("c")
	failed, others := pods[0], pods[1:]
	if err := s.KillServer(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the others log that "+failed.Name+" has failed", time.Minute, func() error {
		for _, pod := range others {
			log, err := s.Clientset.CoreV1().Pods(s.Name).GetLogs(pod.Name, &corev1.PodLogOptions{}).Do(t.Context()).Raw()
			if err != nil {
				return err
			}
			said := slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
				return strings.Contains(line, failed.Name) && strings.Contains(strings.ToLower(line), "fail")
			})
			if !said {
				return fmt.Errorf("%s logs nothing of it", pod.Name)
			}
		}
		return nil
	})
}

// S1-102, U-02: another manager takes clusters over as they are, whatever their access.
// No other test runs meanwhile. What an older manager rendered is compared by
// TestAnUpgradeOfTheManagerRollsNothing of pkg/objects.
func TestAnotherManagerReplacesNoNode(t *testing.T) {
	s := harness.Start(t).Space(t, 4)
	for name, access := range map[string]*v1alpha1.ExternalAccess{"inside": nil, "outside": names()} {
		c := s.Cluster(name, 1, 1)
		c.Spec.ExternalAccess = access
		s.Create(c)
	}
	identities := map[string]string{}
	for _, name := range []string{"inside", "outside"} {
		s.WaitActive(name)
		for _, pod := range s.Pods(name) {
			identities[pod.Name] = fmt.Sprint(pod.UID, pod.Labels, pod.Spec.Containers[0].Args)
		}
	}
	births := s.Births(&v1alpha1.ValkeyNodeList{})
	s.ReplaceManager(t)
	for _, name := range []string{"inside", "outside"} {
		// An edit that replaces nothing shows that the new manager is at work.
		s.Edit(name, func(spec *v1alpha1.ValkeyClusterSpec) { spec.PodAnnotations = map[string]string{"edited": "yes"} })
		s.WaitActive(name)
	}
	if err := births.Want(0); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"inside", "outside"} {
		for _, pod := range s.Pods(name) {
			if now := fmt.Sprint(pod.UID, pod.Labels, pod.Spec.Containers[0].Args); identities[pod.Name] != now {
				t.Errorf("pod %s was %q and is %q", pod.Name, identities[pod.Name], now)
			}
		}
	}
}

// Whoever is still connected since before clients were directed inside is listed, and
// neither the manager nor who connects anew.
func TestDisableListsClientsThatMayHoldTheOldNames(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	c := s.Cluster("c", 1, 1)
	c.Spec.ExternalAccess = names()
	s.Create(c)
	c = waitOutside(s, "clients are directed to the outside names")
	port := c.Status.ExternalEndpoints[0].Ports[0]
	var conn net.Conn
	// kube-proxy gathers changes for a second.
	s.Eventually("the port leads to a server", time.Minute, func() (err error) {
		conn, err = net.DialTimeout("tcp", net.JoinHostPort(s.Machine(), fmt.Sprint(port)), 10*time.Second)
		return err
	})
	defer conn.Close()
	pong := make([]byte, len("+PONG\r\n"))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, pong); err != nil || string(pong) != "+PONG\r\n" {
		t.Fatalf("answered %q: %v", pong, err)
	}
	r := s.Valkey("external", "disable", "c", "--yes")
	if r.Code != 0 {
		t.Fatal(r)
	}
	_, listed, _ := strings.Cut(r.Stderr, "may still hold the outside names")
	if strings.Count(listed, "1 connection to 1 node") != 1 || strings.Count(listed, " to ") != 1 {
		t.Errorf("one client is connected; the plugin says %s", r.Stderr)
	}
	if err := inside(s); err != nil {
		t.Error(err)
	}
}
