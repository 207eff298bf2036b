package cluster

import (
	"fmt"
	"strings"
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
	return joined(errs)
}

// failures are several errors in one sentence, as conditions and events show them.
type failures []error

// joined is nil without an error.
func joined(errs []error) error {
	var all failures
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

func (f failures) Error() string {
	const most = 3
	var texts []string
	for _, err := range f[:min(most, len(f))] {
		texts = append(texts, err.Error())
	}
	if n := len(f) - most; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is and errors.As look at each.
func (f failures) Unwrap() []error { return f }
