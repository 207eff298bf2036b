// Package objects builds the Kubernetes objects of a cluster: their names,
// labels, owners and contents. Every builder is a pure function of its inputs,
// so the same wish always renders the same bytes.
package objects
