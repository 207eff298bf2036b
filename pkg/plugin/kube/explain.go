package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Request is what was asked of the API server.
type Request struct {
	// Verb as in RBAC, for example list.
	Verb string
	// Resource is the plural name, for example pods.
	Resource string
	// Namespace; empty for resources of the whole cluster or of all namespaces.
	Namespace string
}

// permission is what a role has to grant for the request.
func (r Request) permission() string {
	where := "in the whole cluster"
	if r.Namespace != "" {
		where = "in namespace " + r.Namespace
	}
	resource := r.Resource
	if strings.HasPrefix(resource, "valkey") {
		resource += "." + v1alpha1.Group
	}
	return fmt.Sprintf("%s %s %s", r.Verb, resource, where)
}

// done is the verb's participle.
func (r Request) done() string {
	switch r.Verb {
	case "get", "list", "watch":
		return "read"
	case "create":
		return "created"
	case "delete":
		return "deleted"
	}
	return "changed"
}

// explained is a sentence that keeps the error it was made from.
type explained struct {
	sentence string
	err      error
}

func (e *explained) Error() string { return e.sentence }
func (e *explained) Unwrap() error { return e.err }

// Explain turns an error of client-go into a sentence that says what to do. The
// error stays wrapped, so that apierrors.IsNotFound and its like still work. What
// was explained before stays as it is.
func Explain(err error, r Request) error {
	var before *explained
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, &before) {
		return err
	}
	sentence := sentence(err, r)
	if sentence == "" {
		sentence = fmt.Sprintf("%s %s: %v", r.Verb, r.Resource, err)
	}
	return &explained{sentence: sentence, err: err}
}

func sentence(err error, r Request) string {
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err) && !isQuota(err):
		return fmt.Sprintf("%s can't be %s: needs %s", r.Resource, r.done(), r.permission())
	case apierrors.IsUnauthorized(err):
		return "the API server doesn't accept your credentials: log in again, or choose others with --context or --user"
	case NotInstalled(err):
		return fmt.Sprintf("the API server doesn't know %s.%s: the CRDs of kubectl-valkey are not installed there; install them (deploy/install.yaml), or choose another cluster with --context", r.Resource, v1alpha1.Group)
	case errors.As(err, &unreachable):
		return unreachableSentence(unreachable)
	}
	return ""
}

// isQuota tells a refusal by a quota or another admission plugin from a missing
// permission; both are 403.
func isQuota(err error) bool {
	return !strings.Contains(err.Error(), " cannot ")
}

// NotInstalled is whether the API server doesn't serve the kind at all, rather
// than not having the object.
func NotInstalled(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func unreachableSentence(err *url.Error) string {
	server := err.URL
	if u, parseErr := url.Parse(err.URL); parseErr == nil {
		server = u.Scheme + "://" + u.Host
	}
	var timeout net.Error
	switch {
	case strings.HasPrefix(err.Err.Error(), "getting credentials"):
		return fmt.Sprintf("can't log in to the API server %s: %v", server, err.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("the API server %s did not answer in time: %v; check the network, or allow more with --request-timeout", server, err.Err)
	}
	return fmt.Sprintf("can't reach the API server %s: %v; check --context and the network", server, err.Err)
}
