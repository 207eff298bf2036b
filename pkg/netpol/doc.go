// Package netpol makes NetworkPolicies from the network contract: the connections
// of Matrix, and no others. It knows nothing of a running cluster; what has to be
// found out there (addresses of the API server, whether a cluster has TLS) is part
// of what it is given.
package netpol
