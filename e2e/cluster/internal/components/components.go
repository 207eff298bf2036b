// Package components builds the pinned Go programs of the cluster. Each is a
// small module of its own under e2e/cluster/components, so that the product's
// go.mod doesn't carry their dependencies.
package components

// Component is one program to build.
type Component struct {
	Name string
	// Dir is relative to the checkout.
	Dir string
	// Package is what to build, "." for the module's own main.
	Package string
	// LDFlags are the linker's.
	LDFlags string
	// Links are further names of the program, for a multi-call binary.
	Links []string
	// Folders of modules that belong to it are copied beside it.
	Folders []Folder
	// Takes says how long a first build takes, for the log line.
	Takes string
}

// Folder is one of a module that the component's module requires.
type Folder struct {
	Module, Path string
	// Name of the copy.
	Name string
}

const dir = "e2e/cluster/components/"

// Kubernetes is the control plane, kubelet and kube-proxy in one program. The
// version has to be given to the linker or the API server reports v0.0.0.
var Kubernetes = Component{
	Name: "kubernetes", Dir: dir + "kubernetes", Package: ".", Takes: "about 7 minutes on 2 cores",
	LDFlags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2",
	Links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"},
}

// CoreDNS is the cluster's DNS server.
var CoreDNS = Component{Name: "coredns", Dir: dir + "coredns", Package: ".", LDFlags: "-s -w", Takes: "about 2 minutes"}

// KubeRouter enforces NetworkPolicies.
var KubeRouter = Component{
	Name: "kube-router", Dir: dir + "kube-router", LDFlags: "-s -w", Takes: "about 2 minutes",
	Package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
}

// Pause is the sandbox program of every pod; it belongs to the main module.
var Pause = Component{Name: "pause", Dir: dir + "pause", Package: ".", LDFlags: "-s -w", Takes: "seconds"}

// CertManager issues certificates in tests that ask for it; with its CRDs.
var CertManager = Component{
	Name: "cert-manager", Dir: dir + "cert-manager", Package: ".", LDFlags: "-s -w", Takes: "about 2 minutes on 2 cores",
	Folders: []Folder{{Module: "github.com/cert-manager/cert-manager", Path: "deploy/crds", Name: "crds"}},
}
