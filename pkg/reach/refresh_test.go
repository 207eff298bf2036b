package reach

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const annotation = "valkey.gomomento.com/refresh-tls"

func TestAPodIsTouchedForEachContentAndMoreAndMoreRarelyForTheSame(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0", UID: "u"}}
	c := fake.NewClientBuilder().WithObjects(pod).Build()
	r := &Refresher{Client: c, Annotation: annotation}
	start := time.Now()
	touch := func(content string, after time.Duration) string {
		t.Helper()
		live := &corev1.Pod{}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(pod), live); err != nil {
			t.Fatal(err)
		}
		if err := r.Touch(context.Background(), Member{Pod: live}, content, start.Add(after)); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(pod), live); err != nil {
			t.Fatal(err)
		}
		return live.Annotations[annotation]
	}
	for _, step := range []struct {
		content string
		after   time.Duration
		want    string
	}{
		{"aa", 0, "aa.1"},
		{"aa", time.Second, "aa.1"},
		{"aa", 2 * time.Second, "aa.2"},
		{"aa", 5 * time.Second, "aa.2"},
		{"aa", 6 * time.Second, "aa.3"},
		{"bb", 6100 * time.Millisecond, "bb.1"},
		{"bb", 7 * time.Second, "bb.1"},
		{"bb", 9 * time.Second, "bb.2"},
	} {
		if got := touch(step.content, step.after); got != step.want {
			t.Errorf("%s after %s: %q, want %q", step.content, step.after, got, step.want)
		}
	}
	// A manager that was restarted goes on counting.
	r = &Refresher{Client: c, Annotation: annotation}
	if got := touch("bb", 10*time.Second); got != "bb.3" {
		t.Errorf("after a restart: %q", got)
	}
}

func TestWhatIsMissingIsAskedForSoonAndLessAndLessOften(t *testing.T) {
	p := &Pace{}
	key := client.ObjectKey{Name: "c"}
	start := time.Now()
	if !p.Due(key, start) || p.Due(key, start.Add(29*time.Second)) || !p.Due(key, start.Add(31*time.Second)) {
		t.Error("everything is verified once in 30 s")
	}
	start = start.Add(31 * time.Second)
	for after, want := range map[time.Duration]time.Duration{0: quickest, time.Second: quickest, 10 * time.Second: time.Second, time.Hour: slowestRetry} {
		p.Next(key, true, start)
		if got := p.Next(key, true, start.Add(after)); got != want {
			t.Errorf("missing for %s: again in %s, want %s", after, got, want)
		}
	}
	if got := p.Next(key, false, start.Add(10*time.Second)); got != 20*time.Second {
		t.Errorf("with nothing missing the next look is in %s", got)
	}
}
