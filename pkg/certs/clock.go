package certs

import "time"

// Clock is a clock for verifying this leaf: the real time while that is within the
// leaf's validity, else the nearest moment that is. An expired certificate only
// warns: chain and names are still verified, and the cluster stays managed.
func (l Leaf) Clock() func() time.Time {
	return func() time.Time { return l.validTime(time.Now()) }
}

func (l Leaf) validTime(now time.Time) time.Time {
	switch {
	case now.After(l.NotAfter):
		return l.NotAfter
	case now.Before(l.NotBefore):
		return l.NotBefore
	}
	return now
}
