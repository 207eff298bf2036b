package sim

import "time"

// event is something that happens at a moment of virtual time.
type event struct {
	at  time.Duration
	seq uint64 // order of events of the same moment: first planned, first run
	run func()
}

func (e event) before(other event) bool {
	return e.at < other.at || e.at == other.at && e.seq < other.seq
}

// clock is virtual time with what is going to happen, a binary heap.
type clock struct {
	now   time.Duration
	seq   uint64
	queue []event
}

// after plans f for d from now.
func (c *clock) after(d time.Duration, f func()) {
	c.seq++
	c.queue = append(c.queue, event{at: c.now + max(d, 0), seq: c.seq, run: f})
	for i := len(c.queue) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.queue[i].before(c.queue[parent]) {
			break
		}
		c.queue[i], c.queue[parent] = c.queue[parent], c.queue[i]
		i = parent
	}
}

// step runs the next event. It reports false when there is none.
func (c *clock) step() bool {
	if len(c.queue) == 0 {
		return false
	}
	next := c.queue[0]
	last := len(c.queue) - 1
	c.queue[0] = c.queue[last]
	c.queue[last] = event{}
	c.queue = c.queue[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if c.queue[child].before(c.queue[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		c.queue[i], c.queue[least] = c.queue[least], c.queue[i]
		i = least
	}
	c.now = next.at
	next.run()
	return true
}
