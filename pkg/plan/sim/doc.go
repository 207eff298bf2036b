// Package sim runs the real planner against a model of everything around it: the
// objects of Kubernetes and their lives, Valkey servers with their gossip,
// elections, replication and slot migrations, a client that writes, and a manager
// that looks through caches that are behind, whose commands fail or get lost, and
// that is killed between any two of them.
//
// It is a discrete-event simulation: one goroutine, a virtual clock, one source of
// randomness. A seed is a whole life of a cluster, and the same seed is the same
// life in every detail. While it runs, checks compare what the manager does with
// the truth that only the simulator knows.
package sim
