package sim

import "time"

// operation is something that users, machines or bad luck do to a cluster.
type operation struct {
	name   string
	weight int
	// gentle operations cost no copy and no write by themselves.
	gentle bool
	// run does it. It reports false if there is nothing to do it to. Until done is
	// called the operation is under way.
	run func(w *world, done func()) bool
}

// drill is a schedule in which nothing is left to chance but how long things take:
// one operation on a cluster that is complete.
type drill struct {
	shards, replicas int32
	operation        operation
}

// begin sets up the first wish and the schedule.
func (w *world) begin() {
	if d := w.opt.Hooks.drill; d != nil {
		w.practise(d)
		return
	}
	w.wish = wish{shards: 1 + w.rand.Int32N(4), replicas: w.rand.Int32N(3)}
	if w.chance(0.1) {
		w.wish.shards = 5 + w.rand.Int32N(2)
	}
	if w.wish.replicas == 0 && w.chance(0.6) {
		w.wish.replicas = 1
	}
	w.say("wish: %d shards with %d replicas; %+v", w.wish.shards, w.wish.replicas, w.quirks)
	w.m.start()
	w.client.start()
	gentle := w.chance(0.35)
	if gentle {
		w.stats.count("schedule gentle")
	}
	steps := 1 + w.rand.IntN(4)
	if w.chance(0.8) {
		w.whenComplete(func() { w.next(steps, gentle) })
		return
	}
	w.after(w.between(time.Second, 20*time.Second), func() { w.next(steps, gentle) })
}

// practise sets up a drill.
func (w *world) practise(d *drill) {
	w.wish = wish{shards: d.shards, replicas: d.replicas}
	w.m.start()
	w.client.start()
	w.whenComplete(func() {
		w.lastStep = w.now
		w.attempt(d.operation)
		w.whenCalm()
	})
}

// next takes the next step of the schedule, and plans the one after it: soon, so
// that it meets what the last one left, or once the cluster is complete again.
func (w *world) next(steps int, gentle bool) {
	w.lastStep = w.now
	if steps == 0 {
		w.whenCalm()
		return
	}
	w.perform(gentle)
	again := func() { w.next(steps-1, gentle) }
	switch w.rand.IntN(3) {
	case 0:
		w.whenComplete(again)
	case 1:
		w.after(w.between(100*time.Millisecond, 5*time.Second), again)
	default:
		w.after(w.between(5*time.Second, 60*time.Second), again)
	}
}

// perform does one operation by chance.
func (w *world) perform(gentle bool) {
	for range 20 {
		total := 0
		for _, op := range operations {
			if op.gentle || !gentle {
				total += op.weight
			}
		}
		pick := w.rand.IntN(total)
		for _, op := range operations {
			if !op.gentle && gentle {
				continue
			}
			if pick -= op.weight; pick >= 0 {
				continue
			}
			if w.attempt(op) {
				return
			}
			break
		}
	}
}

// attempt does an operation, and reports false if there is nothing to do it to.
func (w *world) attempt(op operation) bool {
	w.underWay++
	w.say("operation: %s", op.name)
	if !op.run(w, func() { w.underWay-- }) {
		w.underWay--
		return false
	}
	w.stats.count("op " + op.name)
	return true
}

// whenComplete goes on once the planner calls the cluster complete, or after a
// while all the same.
func (w *world) whenComplete(f func()) {
	until := w.now + 2*time.Minute
	var look func()
	look = func() {
		if w.m.last.Complete && w.m.lastAt > w.lastStep || w.now > until {
			w.after(w.between(0, 3*time.Second), f)
			return
		}
		w.after(500*time.Millisecond, look)
	}
	w.after(500*time.Millisecond, look)
}

// whenCalm marks the end of the schedule once nothing is under way any more.
func (w *world) whenCalm() {
	if w.underWay > 0 {
		w.after(time.Second, w.whenCalm)
		return
	}
	w.calm = w.now
	w.quirks.commandErrors, w.quirks.commandLost, w.quirks.crash = 0, 0, 0
	w.m.slow = false
	w.say("the schedule is over")
}
