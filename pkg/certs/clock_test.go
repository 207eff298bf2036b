package certs

import (
	"testing"
	"time"
)

func TestALeafIsVerifiedAtATimeWithinItsValidity(t *testing.T) {
	l := Leaf{NotBefore: time.Unix(100, 0), NotAfter: time.Unix(200, 0)}
	for now, want := range map[int64]int64{50: 100, 150: 150, 250: 200} {
		if got := l.validTime(time.Unix(now, 0)).Unix(); got != want {
			t.Errorf("at %d the leaf is verified at %d, want %d", now, got, want)
		}
	}
}
