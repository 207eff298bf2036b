package reach

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the time between two attempts to make a kubelet refresh files: it may
// have looked before the change got to it.
const (
	firstRefresh = 2 * time.Second
	slowRefresh  = 30 * time.Second
)

// Refresher makes kubelets refresh the mounted files of pods: they do when an
// annotation of the pod changes, and else only about once a minute.
type Refresher struct {
	// Client writes pods.
	Client client.Client
	// Annotation that is touched.
	Annotation string

	mu   sync.Mutex
	last map[types.UID]time.Time
}

// Touch makes the kubelet of a pod look for a content, which is named by a hash. It
// does nothing when that was asked for a moment ago.
func (r *Refresher) Touch(ctx context.Context, m Member, content string, now time.Time) error {
	value, n, known := strings.Cut(m.Pod.Annotations[r.Annotation], ".")
	attempt, err := strconv.Atoi(n)
	if err != nil || value != content {
		attempt, known = 0, false
	}
	wait := time.Duration(0)
	if known {
		wait = min(firstRefresh<<min(attempt-1, 4), slowRefresh)
	}
	if !r.due(m.Pod.UID, wait, now) {
		return nil
	}
	pod := m.Pod.DeepCopy()
	pod.Annotations = maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[r.Annotation] = content + "." + strconv.Itoa(attempt+1)
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, pod, client.MergeFrom(m.Pod))); err != nil {
		return fmt.Errorf("touch pod %s: %w", pod.Name, err)
	}
	return nil
}

// due reports whether the last attempt was long enough ago, and notes one if so.
func (r *Refresher) due(pod types.UID, wait time.Duration, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[types.UID]time.Time{}
	}
	// The cache may not show the last attempt yet.
	if at, ok := r.last[pod]; ok && now.Sub(at) < max(wait, firstRefresh/2) && wait > 0 {
		return false
	}
	maps.DeleteFunc(r.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) > time.Hour })
	r.last[pod] = now
	return true
}
