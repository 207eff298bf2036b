package cluster

import (
	"errors"
	"sync"
)

// parallel bounds how many servers or objects are spoken to at once for one
// cluster.
const parallel = 32

// together calls f for 0 to n-1, many at once, and joins the errors.
func together(n int, f func(int) error) error {
	errs := make([]error, n)
	slot := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for i := range n {
		slot <- struct{}{}
		group.Go(func() {
			defer func() { <-slot }()
			errs[i] = f(i)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
