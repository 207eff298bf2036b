package cluster

import (
	"testing"
	"time"
)

func TestANodeWithoutPodIsDeadOnceItsHostHadTheTimeToEndIt(t *testing.T) {
	now := time.Unix(10000, 0)
	long, lately := now.Add(-time.Hour), now.Add(-10*time.Second)
	for _, c := range []struct {
		what    string
		host    host
		name    string
		without time.Duration
		want    bool
	}{
		{"it never had a host", host{}, "", 0, true},
		{"its host is gone", host{gone: true}, "h", 0, true},
		{"its host is silent", host{}, "h", time.Hour, false},
		{"its host is at work, the pod went lately", host{readySince: long}, "h", 89 * time.Second, false},
		{"its host is at work, the pod went long ago", host{readySince: long}, "h", 90 * time.Second, true},
		{"its host is just back", host{readySince: lately}, "h", time.Hour, false},
	} {
		if got := c.host.hostGone(c.name, c.without, now); got != c.want {
			t.Errorf("%s: dead %v, want %v", c.what, got, c.want)
		}
	}
}
