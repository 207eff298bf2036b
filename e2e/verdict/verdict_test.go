//go:build e2e

// Package verdict looks back at a whole run of e2e/suite: what the manager asked
// of the API server, compared with what deploy/install.yaml lets it do.
package verdict

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
)

// run is the record of the suite, and the place it ran at.
func run(t *testing.T) (harness.Record, *harness.Env) {
	t.Helper()
	e, err := harness.Connect(t.Context())
	if err != nil {
		t.Fatalf("end-to-end tests: %v", err)
	}
	record, err := harness.LoadRecord(e.Logs)
	if err != nil {
		t.Fatal(err)
	}
	return record, e
}

// asked are the manager's requests about resources.
func asked(t *testing.T, what string) ([]harness.AuditEntry, harness.Record, *harness.Env) {
	t.Helper()
	record, e := run(t)
	if record.AuditLog == "" {
		e.CannotCheck(t, what)
		return nil, record, e
	}
	entries, err := record.Audit(harness.ManagerUser, func(a harness.AuditEntry) bool {
		return a.User.Username == harness.ManagerUser && a.ObjectRef != nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatal("the audit log holds no request of the manager")
	}
	return entries, record, e
}

// right is one verb on one resource, as "verb resource.group".
func right(verb, group, resource string) string {
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
}

func rightOf(a harness.AuditEntry) string {
	resource := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		resource += "/" + a.ObjectRef.Subresource
	}
	return right(a.Verb, a.ObjectRef.Group, resource)
}

// M-01, M-02: the shipped rights are enough.
func TestManagerWasRefusedNothing(t *testing.T) {
	entries, record, _ := asked(t, "that the manager was refused nothing")
	for _, a := range entries {
		// Objects in a namespace that is being deleted are refused for that reason.
		terminating := strings.Contains(a.Status.Message, "because it is being terminated")
		// An API server that checks owner references finds new kinds some seconds
		// after they were installed; the manager waits for it.
		unknown := strings.Contains(a.Status.Message, "cannot find RESTMapping")
		if a.Status.Code == 403 && a.Received.Before(record.Ended) && !terminating && !unknown {
			t.Errorf("the manager was refused: %s", a)
		}
	}
}

// M-02: and they are no more than that.
func TestManagerUsedEveryRightItHas(t *testing.T) {
	entries, record, e := asked(t, "that the manager has no right that it doesn't use")
	if record.AuditLog == "" {
		return
	}
	granted := grants(t, e.Root)
	used := map[string]int{}
	for _, a := range entries {
		used[rightOf(a)]++
	}
	for _, r := range slices.Sorted(maps.Keys(used)) {
		if !granted[r] {
			t.Errorf("the manager did what install.yaml doesn't grant: %s (%d times)", r, used[r])
		}
	}
	if !record.Complete {
		t.Log("NOT CHECKED: which rights are never used shows only in a run of the whole suite that passes")
		return
	}
	for _, r := range slices.Sorted(maps.Keys(granted)) {
		if used[r] == 0 && !silent(r, used) {
			t.Errorf("install.yaml grants what the manager never did: %s", r)
		}
	}
}

// silent are rights that a run need not show.
func silent(r string, used map[string]int) bool {
	verb, resource, _ := strings.Cut(r, " ")
	switch {
	case strings.HasSuffix(strings.Split(resource, ".")[0], "/finalizers"):
		// The admission plugin OwnerReferencesPermissionEnforcement asks about it when an
		// owned object is made. It is never a request of its own; the tests of the API
		// server show that it takes it.
		return true
	case verb == "list":
		// Where the API server can stream a list as part of a watch, nothing is listed;
		// before Kubernetes 1.32 it couldn't.
		return used["watch "+resource] > 0
	case verb == "patch" && strings.HasPrefix(resource, "events"):
		// An event that repeats is counted, not made again: nothing may repeat in a run
		// in which all is well.
		return used["create "+resource] > 0
	}
	return false
}

// grants are the rights that the manager's own roles give.
func grants(t *testing.T, root string) map[string]bool {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(root, "deploy", "install.yaml"))
	if err != nil {
		t.Fatalf("read the manifest: %v", err)
	}
	rules, bound := map[string][]rbacv1.PolicyRule{}, []string{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read the manifest: %v", err)
		}
		switch obj.GetKind() {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole // a Role has the same fields
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
				t.Fatalf("read %s: %v", obj.GetName(), err)
			}
			rules[obj.GetKind()+" "+obj.GetName()] = role.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var binding rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &binding); err != nil {
				t.Fatalf("read %s: %v", obj.GetName(), err)
			}
			for _, s := range binding.Subjects {
				if s.Kind == "ServiceAccount" && s.Name == harness.ManagerName {
					bound = append(bound, binding.RoleRef.Kind+" "+binding.RoleRef.Name)
				}
			}
		}
	}
	out := map[string]bool{}
	for _, role := range bound {
		for _, rule := range rules[role] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[right(verb, group, resource)] = true
					}
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("install.yaml grants the manager nothing")
	}
	return out
}

// O-01: nothing that was made would break the restricted Pod Security Standard.
func TestNoPodWasAgainstPodSecurity(t *testing.T) {
	record, e := run(t)
	if record.AuditLog == "" {
		e.CannotCheck(t, "that no pod was against the restricted Pod Security Standard")
		return
	}
	const violations = "pod-security.kubernetes.io/audit-violations"
	entries, err := record.Audit(violations, func(a harness.AuditEntry) bool { return a.Annotations[violations] != "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range entries {
		t.Errorf("%s: %s", a, a.Annotations[violations])
	}
}

// What goes wrong in the clusters is said in conditions; an error in the log is a
// fault of the manager.
func TestManagerLoggedNoError(t *testing.T) {
	record, e := run(t)
	files, err := filepath.Glob(filepath.Join(e.Logs, "manager-*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("find the manager's logs in %s: %v", e.Logs, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var entry struct {
				Level, Logger, Msg, Error string
				TS                        time.Time
			}
			if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
				if strings.Contains(lines.Text(), "panic") {
					t.Errorf("%s: %s", filepath.Base(file), lines.Text())
				}
				continue // what client-go writes has another form
			}
			// The last words of a cluster whose namespace goes or has gone (how often an event
			// was seen is written minutes later), and those of a manager that is told to stop.
			gone := entry.Logger == "events" && strings.HasPrefix(entry.Error, "namespaces ") && strings.HasSuffix(entry.Error, " not found")
			late := gone || strings.Contains(entry.Error, "because it is being terminated") || !entry.TS.Before(record.Ended.Truncate(time.Second)) ||
				strings.Contains(entry.Error, "context canceled") ||
				// What controller-runtime says when a manager that stops has given its lease back; of
				// one that loses it while it works, Start returns the error instead.
				(entry.Msg == "error received after stop sequence was engaged" && entry.Error == "leader election lost")
			if entry.Level == "error" && !late {
				t.Errorf("%s: %s", filepath.Base(file), fmt.Sprintf("%.1000s", lines.Text()))
			}
		}
	}
}
