package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// pruned remembers which status was written last. When the CRDs are older than the
// manager, the API server drops the fields that they lack, and every look at the
// cluster would write them again.
type pruned struct {
	mu sync.Mutex
	// last has, by cluster and object, what was written and as which version it was
	// taken.
	last map[types.NamespacedName]map[types.UID][sha256.Size]byte
	told map[string]bool
}

func newPruned() *pruned {
	return &pruned{last: map[types.NamespacedName]map[types.UID][sha256.Size]byte{}, told: map[string]bool{}}
}

// written notes that a status was written, and as which version it was taken. What
// the API server has dropped shows only when the object is read again: its answer is
// decoded over what was sent.
func (p *pruned) written(o *observation, obj client.Object, wish any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cluster := client.ObjectKeyFromObject(o.cluster)
	if p.last[cluster] == nil || len(p.last[cluster]) > 2*len(o.nodes)+1 {
		p.last[cluster] = map[types.UID][sha256.Size]byte{} // most were nodes that are gone
	}
	p.last[cluster][obj.GetUID()] = digest(obj, wish)
}

// again reports whether to write a status would have no effect, as it had none when
// it was written to this version of the object. First is true once for each kind.
func (p *pruned) again(o *observation, obj client.Object, wish any) (again, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[client.ObjectKeyFromObject(o.cluster)][obj.GetUID()]
	if !ok || last != digest(obj, wish) {
		return false, false
	}
	kind := objects.KindOf(obj)
	first = !p.told[kind]
	p.told[kind] = true
	return true, first
}

func (p *pruned) forget(cluster types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, cluster)
}

func digest(obj client.Object, wish any) [sha256.Size]byte {
	// As it is sent: times without fractions of a second, for one.
	sent, err := json.Marshal(wish)
	if err != nil {
		panic(err) // the API's own types can be written
	}
	return sha256.Sum256(append([]byte(obj.GetResourceVersion()+" "), sent...))
}
