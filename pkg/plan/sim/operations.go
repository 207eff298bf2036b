package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// operations are all that can happen, with how often.
var operations = []operation{
	{name: "delete a pod", weight: 4, gentle: true, run: deleteAPod},
	{name: "kill a container", weight: 4, run: killAContainer},
	{name: "delete a pod by force", weight: 3, run: forceDeleteAPod},
	{name: "kill the manager", weight: 3, gentle: true, run: killTheManager},
}

// pods returns the pods that run and were not told to stop.
func (w *world) runningPods() []*podObject {
	var out []*podObject
	for _, p := range w.api.sortedPods() {
		if p.phase == plan.PodRunning && p.deleted == never && p.process != nil && p.process.running {
			out = append(out, p)
		}
	}
	return out
}

// onePod picks a pod, more often a primary's than chance would have it.
func (w *world) onePod() *podObject {
	pods := w.runningPods()
	if len(pods) == 0 {
		return nil
	}
	for range 3 {
		if p := pods[w.rand.IntN(len(pods))]; !p.process.isReplica() {
			return p
		}
	}
	return pods[w.rand.IntN(len(pods))]
}

func deleteAPod(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	w.deletePod(p.name, "somebody deletes it")
	w.after(time.Second, done)
	return true
}

func killAContainer(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	p.process.kill("kill -9")
	w.after(time.Second, done)
	return true
}

func forceDeleteAPod(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	w.say("pod %s is deleted by force", p.name)
	w.forceDelete(p)
	w.after(3*time.Second, done)
	return true
}

func killTheManager(w *world, done func()) bool {
	if !w.m.alive {
		return false
	}
	w.m.crash("somebody kills it")
	w.after(12*time.Second, done)
	return true
}
