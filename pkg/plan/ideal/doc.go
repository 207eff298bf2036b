// Package ideal is a Kubernetes with Valkey servers in memory in which every
// action of the planner works at once: pods start, gossip is heard by everybody,
// copies are whole in a moment. The planner's tests run on it, and forecasts: what
// the planner would do from some state on, if all went well. What really goes
// wrong, and when, is the simulator's to try (pkg/plan/sim).
package ideal
