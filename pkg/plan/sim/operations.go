package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// operations are all that can happen, with how often.
var operations = []operation{
	{name: "scale shards", weight: 5, gentle: true, run: scaleShards},
	{name: "scale replicas", weight: 5, gentle: true, run: scaleReplicas},
	{name: "scale and revert", weight: 4, gentle: true, run: scaleAndRevert},
	{name: "roll", weight: 7, gentle: true, run: roll},
	{name: "roll and revert", weight: 2, gentle: true, run: rollAndRevert},
	{name: "roll to a bad image and revert", weight: 3, gentle: true, run: rollToBadImage},
	{name: "delete a pod", weight: 5, gentle: true, run: deleteAPod},
	{name: "kill the manager", weight: 4, gentle: true, run: killTheManager},
	{name: "caches fall behind", weight: 3, gentle: true, run: slowWatches},
	{name: "no room for pods", weight: 2, gentle: true, run: noRoom},
	{name: "cut off the manager", weight: 3, gentle: true, run: cutOffTheManager},
	{name: "kill a container", weight: 5, run: killAContainer},
	{name: "delete a pod by force", weight: 4, run: forceDeleteAPod},
	{name: "delete a node object", weight: 2, run: deleteANodeObject},
	{name: "kill a shard", weight: 2, run: killAShard},
	{name: "kill everything", weight: 1, run: killEverything},
	{name: "hang a server", weight: 4, run: hangAServer},
	{name: "stop a host", weight: 4, run: stopAHost},
	{name: "cut off a host", weight: 3, run: cutOffAHost},
	{name: "lose a host for good", weight: 2, run: loseAHost},
	{name: "part the network", weight: 4, run: partTheNetwork},
}

// scaleTo changes the wished shape.
func (w *world) scaleTo(shards, replicas int32) {
	w.say("wish: %d shards with %d replicas", shards, replicas)
	w.wish.shards, w.wish.replicas = shards, replicas
	w.m.wake(5 * time.Millisecond)
}

// otherThan returns a number from low to high that differs from the one given.
func (w *world) otherThan(now, low, high int32) int32 {
	n := low + w.rand.Int32N(high-low)
	if n >= now {
		n++
	}
	return n
}

func scaleShards(w *world, done func()) bool {
	high := int32(4)
	if w.chance(0.2) {
		high = 6
	}
	w.scaleTo(w.otherThan(min(w.wish.shards, high), 1, high), w.wish.replicas)
	w.after(time.Second, done)
	return true
}

func scaleReplicas(w *world, done func()) bool {
	w.scaleTo(w.wish.shards, w.otherThan(w.wish.replicas, 0, 2))
	w.after(time.Second, done)
	return true
}

func scaleAndRevert(w *world, done func()) bool {
	shards, replicas := w.wish.shards, w.wish.replicas
	if w.chance(0.5) {
		w.scaleTo(w.otherThan(min(shards, 4), 1, 4), replicas)
	} else {
		w.scaleTo(shards, w.otherThan(replicas, 0, 2))
	}
	w.after(w.between(200*time.Millisecond, 20*time.Second), func() {
		w.scaleTo(shards, replicas)
		done()
	})
	return true
}

// rollTo changes the wished image.
func (w *world) rollTo(to image) {
	w.say("wish: image %+v", to)
	w.wish.image = to
	w.m.wake(5 * time.Millisecond)
}

func (w *world) newImage(bad bool) image {
	w.images++
	return image{generation: w.images, bad: bad}
}

func roll(w *world, done func()) bool {
	w.rollTo(w.newImage(false))
	w.after(time.Second, done)
	return true
}

func rollAndRevert(w *world, done func()) bool {
	return w.rollBack(false, done)
}

func rollToBadImage(w *world, done func()) bool {
	return w.rollBack(true, done)
}

func (w *world) rollBack(bad bool, done func()) bool {
	before := w.wish.image
	if before.bad {
		return false
	}
	w.rollTo(w.newImage(bad))
	w.after(w.between(500*time.Millisecond, 40*time.Second), func() {
		w.rollTo(before)
		done()
	})
	return true
}

// runningPods returns the pods that run and were not told to stop.
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
	w.truth.fault()
	w.deletePod(p.name, "somebody deletes it")
	w.after(time.Second, done)
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

func slowWatches(w *world, done func()) bool {
	w.m.slow = true
	w.after(w.between(5*time.Second, 40*time.Second), func() {
		w.m.slow = false
		done()
	})
	return true
}

func noRoom(w *world, done func()) bool {
	for _, h := range w.hosts {
		h.full = true
	}
	w.after(w.between(5*time.Second, 40*time.Second), func() {
		for _, h := range w.hosts {
			h.full = false
		}
		done()
	})
	return true
}

func cutOffTheManager(w *world, done func()) bool {
	if w.net.managerCut {
		return false
	}
	w.net.managerCut = true
	w.after(w.between(3*time.Second, 90*time.Second), func() {
		w.net.managerCut = false
		w.reachChanged()
		done()
	})
	return true
}
