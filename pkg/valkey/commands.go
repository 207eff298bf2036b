package valkey

import (
	"slices"
	"strings"
)

// verb is a command, with its subcommand if it has one. Only newVerb makes verbs,
// and only verbs are sent, so CommandsSent can't miss one.
type verb struct {
	name  string // as in ACL rules: cluster|meet
	words []string
}

var verbs []verb

func newVerb(name string) verb {
	v := verb{name: name, words: strings.Split(strings.ToUpper(name), "|")}
	verbs = append(verbs, v)
	return v
}

func (v verb) String() string { return strings.Join(v.words, " ") }

var (
	ping            = newVerb("ping")
	info            = newVerb("info")
	configSet       = newVerb("config|set")
	configGet       = newVerb("config|get")
	aclLoad         = newVerb("acl|load")
	aclList         = newVerb("acl|list")
	aclCat          = newVerb("acl|cat")
	commandInfo     = newVerb("command|info")
	clusterMyID     = newVerb("cluster|myid")
	clusterNodes    = newVerb("cluster|nodes")
	clusterInfo     = newVerb("cluster|info")
	clusterMeet     = newVerb("cluster|meet")
	clusterForget   = newVerb("cluster|forget")
	clusterAddSlots = newVerb("cluster|addslotsrange")
	clusterDelSlots = newVerb("cluster|delslotsrange")
	clusterSetEpoch = newVerb("cluster|set-config-epoch")
	clusterBump     = newVerb("cluster|bumpepoch")
	clusterFollow   = newVerb("cluster|replicate")
	clusterFailover = newVerb("cluster|failover")
)

// CommandsSent lists every command that this package can send, as ACL rules name
// them, sorted. HELLO, by which connections log in, needs no grant.
func CommandsSent() []string {
	names := make([]string, 0, len(verbs))
	for _, v := range verbs {
		names = append(names, v.name)
	}
	slices.Sort(names)
	return names
}
