package inspect

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Pod phases beside those of Kubernetes and the reasons of containers.
const (
	phaseTerminating = "Terminating"
	phaseMissing     = "Missing"
	phaseCreating    = "ContainerCreating"
)

// PodState is one pod in a word, and what keeps it from running in a sentence.
type PodState struct {
	// Phase as kubectl shows it: the pod's phase, or the more telling reason of
	// its container, for example ImagePullBackOff.
	Phase string `json:"phase"`
	// Ready is the pod's own readiness.
	Ready bool `json:"ready"`
	// Problem is empty while the pod runs, or starts as pods do.
	Problem string `json:"problem,omitempty"`
}

// podState reads a pod. Of events, those about it tell why it can't start.
func podState(p *corev1.Pod, events []corev1.Event) PodState {
	s := PodState{Phase: string(p.Status.Phase), Ready: podReady(p)}
	switch {
	case p.DeletionTimestamp != nil:
		s.Phase, s.Ready = phaseTerminating, false
		return s
	case p.Status.Phase == corev1.PodPending && p.Spec.NodeName == "":
		s.Problem = unschedulable(p)
		return s
	}
	if p.Status.Reason != "" { // for example Evicted
		s.Phase, s.Problem = p.Status.Reason, orElse(p.Status.Message, p.Status.Reason)
		return s
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil:
			s.Phase, s.Problem = waiting(p, c.State.Waiting, events)
		case c.State.Terminated != nil:
			s.Phase, s.Problem = terminated(c.State.Terminated)
		}
	}
	return s
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unschedulable says why no Kubernetes node takes the pod.
func unschedulable(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return output.Clean(c.Reason + ": " + c.Message)
		}
	}
	return ""
}

func waiting(p *corev1.Pod, w *corev1.ContainerStateWaiting, events []corev1.Event) (phase, problem string) {
	phase = orElse(w.Reason, string(p.Status.Phase))
	if phase != phaseCreating && phase != "PodInitializing" {
		return phase, output.Clean(orElse(w.Message, phase))
	}
	// A container that is being created says nothing of what it waits for, a
	// missing Secret for example; the kubelet's last warning does.
	if e := lastWarning(p, events); e != nil {
		return phase, output.Clean(e.Reason + ": " + e.Message)
	}
	return phase, ""
}

func terminated(t *corev1.ContainerStateTerminated) (phase, problem string) {
	problem = fmt.Sprintf("exited with code %d", t.ExitCode)
	if t.Signal != 0 {
		problem = fmt.Sprintf("ended by signal %d", t.Signal)
	}
	if t.Message != "" {
		problem += ": " + output.Clean(t.Message)
	}
	return orElse(t.Reason, "Error"), problem
}

func lastWarning(p *corev1.Pod, events []corev1.Event) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		about := e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == p.Name &&
			(e.InvolvedObject.UID == "" || e.InvolvedObject.UID == p.UID)
		if about && e.Type == corev1.EventTypeWarning && (last == nil || !EventTime(e).Before(EventTime(last))) {
			last = e
		}
	}
	return last
}

// EventTime is when an event happened last; reporters fill in different fields.
func EventTime(e *corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	if last.IsZero() {
		last = e.EventTime.Time
	}
	if last.IsZero() {
		last = e.CreationTimestamp.Time
	}
	return last
}
