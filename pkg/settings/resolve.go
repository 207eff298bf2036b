package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// MaxChain is the number of ValkeyConfigs that a chain may have.
const MaxChain = 10

// MaxMemoryPercent is the share of the memory limit that maxmemory gets when the
// configuration doesn't set it: the rest is for replication buffers, clients and
// the copy-on-write of a full sync. Without it the kernel would kill the server
// where it could have evicted or refused writes.
const MaxMemoryPercent = 75

// Catalog is the menu as it is found in the cluster, by name.
type Catalog struct {
	Configs map[string]*v1alpha1.ValkeyConfig
	Images  map[string]*v1alpha1.ValkeyImage
	Roles   map[string]*v1alpha1.ValkeyRole
}

// Source says where a setting was written.
type Source struct {
	// Config is the name of the ValkeyConfig, Key its key as written there.
	Config, Key string
}

// Resolved is what a chain of configurations comes to.
type Resolved struct {
	// ImageName is the ValkeyImage; Image its repository:tag; Version the Valkey in
	// it.
	ImageName, Image, Version string
	// PullSecrets of the image.
	PullSecrets []string
	// CPU and Memory of each node; nil for no limit.
	CPU, Memory *resource.Quantity
	// Valkey are the server's directives by lower-case name. With a memory limit
	// there is always a maxmemory, see MaxMemoryPercent.
	Valkey map[string]string
	// Sources of the directives in Valkey; one that was added has none.
	Sources map[string]Source
	// ACL are the bindings of the config.
	ACL []v1alpha1.ACLBinding
	// Chain are the names of the configurations, the child first.
	Chain []string
}

// Resolve follows the chain of configurations from configRef on. The child wins
// for image, cpu and memory; valkey merges per key; acl replaces the base's list
// as a whole, also by an empty one. With a problem the result is incomplete and
// not to be used.
func Resolve(c Catalog, configRef string) (Resolved, []Problem) {
	chain, problems := c.chain(configRef)
	r := Resolved{Valkey: map[string]string{}, Sources: map[string]Source{}}
	for _, config := range chain {
		r.Chain = append(r.Chain, config.Name)
	}
	hasACL := false
	for _, config := range chain {
		if r.ImageName == "" {
			r.ImageName = config.Spec.ImageRef
		}
		if resources := config.Spec.Resources; resources != nil {
			r.CPU, r.Memory = either(r.CPU, resources.CPU), either(r.Memory, resources.Memory)
		}
		if !hasACL && config.Spec.ACL != nil {
			hasACL = true
			r.ACL = config.Spec.ACL
		}
		problems = append(problems, r.addSettings(config)...)
	}
	if len(problems) > 0 {
		return r, problems
	}
	r.defaultMaxMemory()
	problems = r.setImage(c)
	return r, problems
}

// chain collects the configurations, the child first.
func (c Catalog) chain(configRef string) ([]*v1alpha1.ValkeyConfig, []Problem) {
	var chain []*v1alpha1.ValkeyConfig
	var names []string
	for name := configRef; name != ""; {
		if slices.Contains(names, name) {
			return chain, []Problem{problemf(v1alpha1.ReasonConfigChainInvalid,
				"ValkeyConfigs build on each other in a circle: %s: remove one baseRef", strings.Join(append(names, name), " → "))}
		}
		names = append(names, name)
		config, ok := c.Configs[name]
		if !ok {
			text := fmt.Sprintf("ValkeyConfig %q doesn't exist", name)
			if len(chain) > 0 {
				text = fmt.Sprintf("ValkeyConfig %q, the baseRef of %q, doesn't exist", name, chain[len(chain)-1].Name)
			}
			return chain, []Problem{problemf(v1alpha1.ReasonConfigNotFound, "%s; %s", text, Existing(slices.Collect(maps.Keys(c.Configs))))}
		}
		if len(names) > MaxChain {
			return chain, []Problem{problemf(v1alpha1.ReasonConfigChainInvalid,
				"the chain of ValkeyConfigs is longer than %d: %s: merge some of them", MaxChain, strings.Join(names, " → "))}
		}
		chain = append(chain, config)
		name = config.Spec.BaseRef
	}
	return chain, nil
}

func either(child, base *resource.Quantity) *resource.Quantity {
	if child != nil {
		return child
	}
	return base
}

// addSettings adds the directives of one more base. Names are compared as the
// server does, so that a child's PORT and a base's port are one.
func (r *Resolved) addSettings(config *v1alpha1.ValkeyConfig) []Problem {
	var problems []Problem
	for _, key := range slices.SortedFunc(maps.Keys(config.Spec.Valkey), byDirective) {
		name := strings.ToLower(key)
		source, taken := r.Sources[name]
		switch {
		case taken && source.Config == config.Name:
			problems = append(problems, problemf(v1alpha1.ReasonSettingRefused,
				"ValkeyConfig %q sets %s twice, as %q and %q: keep one", config.Name, name, source.Key, key))
		case !taken:
			r.Valkey[name] = string(config.Spec.Valkey[key])
			r.Sources[name] = Source{Config: config.Name, Key: key}
		}
	}
	return problems
}

// defaultMaxMemory bounds the server's memory when nothing else does.
func (r *Resolved) defaultMaxMemory() {
	if r.Memory == nil {
		return
	}
	if value, set := r.Valkey[maxmemory]; set {
		if size, err := parseMaxMemory(value); err != nil || size != 0 {
			return
		}
	}
	delete(r.Sources, maxmemory)
	limit := r.Memory.Value()
	r.Valkey[maxmemory] = strconv.FormatInt(limit/100*MaxMemoryPercent+limit%100*MaxMemoryPercent/100, 10)
}

// setImage looks the image up.
func (r *Resolved) setImage(c Catalog) []Problem {
	if r.ImageName == "" {
		return []Problem{problemf(v1alpha1.ReasonImageNotSet,
			"no ValkeyConfig of the chain %s sets imageRef; %s", strings.Join(r.Chain, " → "), existingImages(c))}
	}
	image, ok := c.Images[r.ImageName]
	if !ok {
		return []Problem{problemf(v1alpha1.ReasonImageNotFound, "ValkeyImage %q doesn't exist; %s", r.ImageName, existingImages(c))}
	}
	r.Image = image.Spec.Repository + ":" + image.Spec.Tag
	r.Version = image.Spec.Version
	r.PullSecrets = image.Spec.PullSecrets
	v, err := ParseVersion(r.Version)
	if err != nil {
		return []Problem{problemf(v1alpha1.ReasonVersionNotSupported, "ValkeyImage %q: version %v", r.ImageName, err)}
	}
	if !v.AtLeast(minVersion) {
		return []Problem{problemf(v1alpha1.ReasonVersionNotSupported,
			"ValkeyImage %q has Valkey %s, but %s or newer is needed: choose another image, or correct its version", r.ImageName, r.Version, MinVersion)}
	}
	return nil
}

func existingImages(c Catalog) string { return Existing(slices.Collect(maps.Keys(c.Images))) }
