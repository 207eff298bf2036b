//go:build e2e

package suite

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/poller/shown"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// The poller of the next test notices two steps in the wrong order on real servers, in
// each of its three questions: the outside port while clients are still given addresses,
// and names being preferred before there are any.
func TestThePollerNoticesStepsInTheWrongOrder(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	s.Create(s.Cluster("c", 2, 0))
	s.WaitActive("c")
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = true })
	s.WaitCondition("c", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	pods := s.Pods("c")
	set := func(pod corev1.Pod, setting, value string) {
		t.Helper()
		if out, err := s.Exec(t.Context(), s.Name, pod.Name, "", "valkey-cli", "CONFIG", "SET", setting, value); err != nil || strings.TrimSpace(out) != "OK" {
			t.Fatalf("CONFIG SET %s %s: %q, %v", setting, value, out, err)
		}
	}
	steps := []struct {
		setting, value, back string
		// on is the pod that it is set on; the first is asked what it gives.
		on    corev1.Pod
		shows string
	}{
		{"cluster-announce-client-port", "31000", "0", pods[1], net.JoinHostPort(pods[1].Status.PodIP, "31000")},
		{"cluster-preferred-endpoint-type", "hostname", "ip", pods[0], "?:6379"},
	}
	poller := s.Poll("c", "")
	for _, step := range steps {
		set(step.on, step.setting, step.value)
		s.Eventually(pods[0].Name+" redirects to "+step.shows, time.Minute, func() error {
			out, err := s.Exec(t.Context(), s.Name, pods[0].Name, "GET a\nGET b\nGET c\nGET d\n", "valkey-cli")
			if err != nil {
				return err
			}
			return harness.Contains(out, step.shows)
		})
		set(step.on, step.setting, step.back)
	}
	_, wrong := poller.Stop()
	for _, step := range steps {
		for _, question := range []string{shown.Slots, shown.Shards, shown.Moved} {
			if !slices.ContainsFunc(wrong, func(w string) bool { return strings.HasPrefix(w, question) && strings.Contains(w, step.shows) }) {
				t.Errorf("%s %s: the poller noticed nothing in %s: %q", step.setting, step.value, question, wrong)
			}
		}
	}
}

// S1-63, S1-64, S1-103 to S1-105, E-14: whatever is edited in whatever order, no
// client is ever given a wrong address, only turning it on and off replaces nodes, once
// each, and neither an application inside nor one outside loses what it was promised.
func TestNoClientSeesAWrongAddressWhileAccessTurnsOnAndOff(t *testing.T) {
	for _, encryption := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", encryption), func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 8)
			c := s.Cluster("c", 2, 1)
			secret := ""
			var ca []byte
			if encryption {
				cert := s.TLSSecret("cert", harness.NewAuthority(t), append(s.Names("c"), "*."+outsideDomain)...)
				s.Create(cert)
				c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
				secret, ca = "cert", cert.Data["ca.crt"]
			}
			s.Create(c)
			s.WaitActive("c")
			poller := s.Poll("c", secret)
			o := s.Outside(ca, outsideNames(2)...)
			writer := s.StartWriterThatKnows(outsideNames(2), "c", secret, "--clients", "2", "--every", "10ms", patient)
			rounds := 2
			if harness.Full() {
				rounds = 20
			}
			var outside *harness.Writer
			for i := range rounds {
				turn{t: t, s: s, oneEdit: i%2 == 0, last: i == rounds-1}.round(o, &outside)
			}
			writer.WantNothingLost(writer.Stop(), false)
			answers, wrong := poller.Stop()
			for _, w := range wrong {
				t.Error(w)
			}
			for _, question := range []string{shown.Slots, shown.Shards, shown.Moved} {
				if answers[question] < 1000 {
					t.Errorf("only %d answers to %s were looked at", answers[question], question)
				}
			}
			t.Logf("answers were looked at: %v", answers)
		})
	}
}

// turn is one round of on and off.
type turn struct {
	t *testing.T
	s *harness.Space
	// oneEdit is whether all is changed at once, or else in the wrong order.
	oneEdit bool
	last    bool
}

// round turns external access on, changes all that is changed live, and turns it off.
// The writer outside is of the round before: what it was promised before access was
// turned off is there now that it is on again.
func (r turn) round(o *harness.Outside, outside **harness.Writer) {
	r.t.Helper()
	births := r.s.Births(&v1alpha1.ValkeyNodeList{})
	begin := time.Now()
	r.on()
	c := waitOutside(r.s, "clients are directed to the outside names")
	r.t.Logf("on after %s", time.Since(begin).Round(100*time.Millisecond))
	if err := births.Want(4); err != nil {
		r.t.Errorf("turning on: %v", err)
	}
	way := addresses(c)[0]
	if w := *outside; w != nil {
		report := w.StopAt(way)
		w.WantNothingLost(report, true)
		n, _ := report.Failed()
		r.t.Logf("outside: %d writes were acknowledged, %d failed", report.Acknowledged, n)
	}
	if *outside = nil; !r.last {
		*outside = o.StartWriter(way, "--clients", "1", "--every", "50ms", "--patience", "5s", "--prefix", fmt.Sprintf("outside-%d", begin.UnixNano()))
	}
	if r.oneEdit {
		r.live()
	}
	begin = time.Now()
	r.off()
	r.s.Eventually("nothing is left of external access", 4*time.Minute, func() error { return inside(r.s) })
	r.t.Logf("off after %s", time.Since(begin).Round(100*time.Millisecond))
	if err := births.Want(8); err != nil {
		r.t.Errorf("turning on and off: %v", err)
	}
}

// edits makes changes one right after the other.
func (r turn) edits(changes ...func(*v1alpha1.ExternalAccess)) {
	r.t.Helper()
	for _, change := range changes {
		r.s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) {
			if spec.ExternalAccess == nil {
				spec.ExternalAccess = &v1alpha1.ExternalAccess{}
			}
			change(spec.ExternalAccess)
		})
	}
}

func (r turn) on() {
	r.t.Helper()
	if r.oneEdit {
		r.edits(func(a *v1alpha1.ExternalAccess) { *a = *names() })
		return
	}
	r.edits(
		func(a *v1alpha1.ExternalAccess) { *a = *names(); a.Enabled = false },
		func(a *v1alpha1.ExternalAccess) { a.HostnamePrefix = "cache" },
		func(a *v1alpha1.ExternalAccess) { a.Enabled = true },
		func(a *v1alpha1.ExternalAccess) { a.PreferredEndpointType = v1alpha1.EndpointIP },
		func(a *v1alpha1.ExternalAccess) {
			a.HostnamePrefix, a.PreferredEndpointType = "", v1alpha1.EndpointHostname
		},
	)
}

func (r turn) off() {
	r.t.Helper()
	if !r.oneEdit {
		r.edits(
			func(a *v1alpha1.ExternalAccess) { a.Enabled = false },
			func(a *v1alpha1.ExternalAccess) { a.HostnamePrefix = "cache" },
			func(a *v1alpha1.ExternalAccess) { a.Domain, a.PreferredEndpointType = "", v1alpha1.EndpointIP },
		)
	}
	r.s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ExternalAccess = nil })
}

// live changes all that replaces no node.
func (r turn) live() {
	r.t.Helper()
	before := podUIDs(r.s)
	for _, change := range []struct {
		words string
		edit  func(*v1alpha1.ExternalAccess)
	}{
		{"addresses inside", func(a *v1alpha1.ExternalAccess) { a.PreferredEndpointType = v1alpha1.EndpointIP }},
		{"outside names", func(a *v1alpha1.ExternalAccess) { a.PreferredEndpointType = v1alpha1.EndpointHostname }},
		{"outside names", func(a *v1alpha1.ExternalAccess) { a.HostnamePrefix = "cache" }},
		{"addresses inside", func(a *v1alpha1.ExternalAccess) { a.Domain, a.PreferredEndpointType = "", v1alpha1.EndpointIP }},
		{"outside names", func(a *v1alpha1.ExternalAccess) {
			a.Domain, a.PreferredEndpointType = outsideDomain, v1alpha1.EndpointHostname
		}},
	} {
		r.edits(change.edit)
		waitOutside(r.s, change.words)
	}
	for pod, uid := range podUIDs(r.s) {
		if before[pod] != uid {
			r.t.Errorf("pod %s was replaced for what is changed live", pod)
		}
	}
}

// inside returns what is left of external access.
func inside(s *harness.Space) error {
	c := s.Get("c")
	if err := harness.Settled(c); err != nil {
		return err
	}
	if got := harness.Condition(c, v1alpha1.ConditionExternalAccessReady); got.Type != "" || len(c.Status.ExternalEndpoints) > 0 {
		return fmt.Errorf("%s: %s", got.Reason, got.Message)
	}
	for _, n := range s.Nodes("c") {
		if a := n.Status.Applied; n.Spec.External || a != nil && a.Announcement != nil && a.Announcement.ClientPort != 0 {
			return fmt.Errorf("node %s still has something of it", n.Name)
		}
	}
	var services corev1.ServiceList
	if err := s.Client.List(s.Context(), &services, client.InNamespace(s.Name), client.HasLabels{v1alpha1.LabelShardIndex}); err != nil {
		return err
	}
	if n := len(services.Items); n > 0 {
		return fmt.Errorf("%d Services are left", n)
	}
	return nil
}
