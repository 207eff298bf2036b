// Package harness runs a real kube-apiserver with etcd for the tests of the API
// tier, which are built with the tag "api". There is no kubelet, no scheduler and
// no garbage collector in it: pods never run, owners don't cascade.
//
// A test package starts one server in its TestMain:
//
//	var server *harness.Server
//
//	func TestMain(m *testing.M) {
//		harness.Main(m, &server, harness.Options{CRDs: true})
//	}
//
// The binaries kube-apiserver, etcd and kubectl are found in the directory that
// KUBEBUILDER_ASSETS names or, if it is unset, in the one that
// "go run ./e2e/cluster assets" prints. A test never skips for want of them.
package harness
