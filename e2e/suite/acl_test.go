//go:build e2e

package suite

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// bound is a binding with one password and one role to every key.
func bound(user, password, role string) v1alpha1.ACLBinding {
	return v1alpha1.ACLBinding{
		Username: user, PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(acl.Hash(password))},
		Permissions: []v1alpha1.Permission{{RoleRef: role, Keys: []v1alpha1.KeyPermission{{Pattern: "*", Access: v1alpha1.KeyReadWrite}}}},
	}
}

func as(user, password string) []string {
	return []string{"--user", user, "--pass", password, "--no-auth-warning"}
}

// users change on running servers, what a server would refuse is
// not given to it, and what was changed by hand is changed back.
func TestUsersChangeOnRunningServers(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 5)
	role := &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-all"}, Spec: v1alpha1.ValkeyRoleSpec{
		Categories: []v1alpha1.CategoryRule{{Name: "all", Access: v1alpha1.AccessAllow}},
	}}
	s.Publish(role)
	c := s.Cluster("c", 2, 1)
	c.Spec.ACL = []v1alpha1.ACLBinding{bound("app", "old", role.Name), bound("admin", "admin", role.Name)}
	s.Create(c)
	s.WaitActive("c")
	admin := as("admin", "admin")
	s.WaitFormed("c", 2, 1, admin...)
	s.WaitCondition("c", v1alpha1.ConditionACLApplied, metav1.ConditionTrue, v1alpha1.ReasonACLApplied)
	s.StartClient("")
	before := s.Pods("c")
	connections := s.Connect(before, admin...)

	begin := time.Now()
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ACL[0] = bound("app", "new", role.Name) })
	s.Eventually("every server takes the new password and refuses the old one", rotatedWithin, func() error {
		return logins(s, before, "new", "old")
	})
	t.Logf("another password: on every server after %s", time.Since(begin).Round(100*time.Millisecond))
	s.WaitCondition("c", v1alpha1.ConditionACLApplied, metav1.ConditionTrue, v1alpha1.ReasonACLApplied)

	revertByHand(t, s, before, admin)
	refuseBadRole(t, s, role, before)
	rotateCredentials(t, s, admin)

	if err := connections.Steady(); err != nil {
		t.Error(err)
	}
	wantSamePods(t, s, before)
	s.WaitFormed("c", 2, 1, admin...)
}

var errNoAnswer = errors.New("no answer")

// logins checks on every server that a user gets in with one password only.
func logins(s *harness.Space, pods []corev1.Pod, good, bad string) error {
	for _, pod := range pods {
		for password, refuse := range map[string]bool{good: false, bad: true} {
			// valkey-cli goes on without the login, so the answer counts, not its exit code.
			out, err := s.CLI("", append([]string{"-h", pod.Status.PodIP}, append(as("app", password), "PING")...)...)
			said := out + fmt.Sprint(err)
			refused := strings.Contains(said, "WRONGPASS") || strings.Contains(said, "NOAUTH")
			if !refused && !strings.Contains(said, "PONG") {
				return fmt.Errorf("%w from pod %s: %s", errNoAnswer, pod.Name, said)
			}
			if refused != refuse {
				return fmt.Errorf("pod %s says to the %s password: %s", pod.Name, password, said)
			}
		}
	}
	return nil
}

func revertByHand(t *testing.T, s *harness.Space, pods []corev1.Pod, admin []string) {
	t.Helper()
	host := []string{"-h", pods[0].Status.PodIP}
	s.Eventually("the users are changed by hand", time.Minute, func() error {
		if out, err := s.CLI("", append(append(host, admin...), "ACL", "SETUSER", "intruder", "on", "nopass", "~*", "+@all")...); err != nil || !strings.Contains(out, "OK") {
			return fmt.Errorf("%s%w", out, err)
		}
		return nil
	})
	s.Eventually("the users are as the bindings say", time.Minute+rotatedWithin, func() error {
		out, err := s.CLI("", append(append(host, admin...), "ACL", "LIST")...)
		if err != nil || strings.Contains(out, "intruder") || !strings.Contains(out, "user app ") {
			return fmt.Errorf("the users are %s%w", out, err)
		}
		return nil
	})
	s.Eventually("it is said that they were", rotatedWithin, func() error {
		events := s.EventsOf("c", v1alpha1.ReasonManualChange)
		if len(events) != 1 {
			return fmt.Errorf("%d events", len(events))
		}
		return harness.Contains(events[0].Message, pods[0].Name)
	})
}

func refuseBadRole(t *testing.T, s *harness.Space, role *v1alpha1.ValkeyRole, pods []corev1.Pod) {
	t.Helper()
	good := role.DeepCopy()
	role.Spec.Categories = append(role.Spec.Categories, v1alpha1.CategoryRule{Name: "nosuch", Access: v1alpha1.AccessAllow})
	if err := s.Client.Patch(t.Context(), role, client.MergeFrom(good)); err != nil {
		t.Fatal(err)
	}
	s.WaitCondition("c", v1alpha1.ConditionACLApplied, metav1.ConditionFalse, v1alpha1.ReasonRoleRefused, `"nosuch"`, role.Name)
	s.Eventually("every server answers while a role is refused", time.Minute, func() error {
		err := logins(s, pods, "new", "old")
		if err != nil && !errors.Is(err, errNoAnswer) {
			t.Errorf("while a role is refused: %v", err)
			return nil
		}
		return err
	})
	bad := role.DeepCopy()
	role.Spec = good.Spec
	if err := s.Client.Patch(t.Context(), role, client.MergeFrom(bad)); err != nil {
		t.Fatal(err)
	}
	s.WaitCondition("c", v1alpha1.ConditionACLApplied, metav1.ConditionTrue, v1alpha1.ReasonACLApplied)
}

// rotateCredentials asks for new passwords of the system users and checks that no
// replica had to connect again.
func rotateCredentials(t *testing.T, s *harness.Space, admin []string) {
	t.Helper()
	syncs := func() string {
		var out []string
		for _, pod := range s.Pods("c") {
			text, err := s.Exec(t.Context(), s.Name, pod.Name, "", append(append([]string{"valkey-cli"}, admin...), "INFO", "stats")...)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "sync_") {
					out = append(out, pod.Name+" "+strings.TrimSpace(line))
				}
			}
		}
		return strings.Join(out, "\n")
	}
	read := func() *corev1.Secret {
		secret := &corev1.Secret{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Name, Name: objects.AuthSecretName("c")}, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	was, links := read(), syncs()
	c := s.Get("c")
	patch := client.MergeFrom(c.DeepCopy())
	asked := request.NewRotateCredentials("r1")
	c.Annotations = map[string]string{request.Key(asked.Verb): asked.Value()}
	if err := s.Client.Patch(t.Context(), c, patch); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.Eventually("the passwords are rotated", 2*rotatedWithin, func() error {
		answer, ok := asked.Answer(s.Get("c"))
		if !ok || answer.State != request.Done {
			return fmt.Errorf("the answer is %+v", answer)
		}
		return nil
	})
	t.Logf("system passwords: rotated after %s", time.Since(begin).Round(100*time.Millisecond))
	now := read()
	for _, key := range []string{objects.AuthKeyOperator, objects.AuthKeyReplication, objects.AuthKeyPrimaryAuth} {
		if bytes.Equal(now.Data[key], was.Data[key]) {
			t.Errorf("%s of the Secret is as it was", key)
		}
	}
	if now.Data[objects.AuthKeyNextOperator] != nil || now.Data[objects.AuthKeyNextReplication] != nil {
		t.Error("the Secret still holds next passwords")
	}
	if after := syncs(); after != links {
		t.Errorf("replicas connected again:\n%s\nthey had:\n%s", after, links)
	}
	for _, pod := range s.Pods("c") {
		for name, secret := range map[string]*corev1.Secret{"OK": now, "WRONGPASS": was} {
			out, err := s.Exec(t.Context(), s.Name, pod.Name, fmt.Sprintf("AUTH %s %s\n", acl.OperatorUser, secret.Data[objects.AuthKeyOperator]), "valkey-cli")
			if !strings.Contains(out+fmt.Sprint(err), name) {
				t.Errorf("pod %s answers the manager's password with %s %v, want %s", pod.Name, out, err, name)
			}
		}
	}
}
