package objects_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func TestPasswordsAre128HexDigitsAndNotAlike(t *testing.T) {
	passwords, err := objects.NewPasswords(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shape := regexp.MustCompile(`^[0-9a-f]{128}$`)
	if !shape.MatchString(passwords.Operator) || !shape.MatchString(passwords.Replication) {
		t.Error("a password is not 128 hex digits")
	}
	if passwords.Operator == passwords.Replication {
		t.Error("both users have one password")
	}
	if _, err := objects.NewPasswords(bytes.NewReader(make([]byte, 127))); err == nil {
		t.Error("passwords from too little randomness")
	}
}

func TestPasswordsPrintAsAPlaceholder(t *testing.T) {
	passwords := objects.Passwords{Operator: "hunter2", Replication: "swordfish"}
	encoded, err := json.Marshal(map[string]any{"passwords": passwords})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := fmt.Errorf("%w: %v", errors.New("failed"), passwords)
	for _, text := range []string{
		fmt.Sprint(passwords), fmt.Sprintf("%+v", &passwords), fmt.Sprintf("%#v", passwords),
		fmt.Sprintf("%s %q %x", passwords, passwords, passwords),
		fmt.Sprintf("%v", struct{ P objects.Passwords }{passwords}), string(encoded), wrapped.Error(),
	} {
		for _, secret := range []string{"hunter2", "swordfish", fmt.Sprintf("%x", "hunter2")} {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows a password", text)
			}
		}
	}
}

func TestAuthSecretHoldsThePasswordsAndTheDirectiveForReplicas(t *testing.T) {
	passwords := objects.Passwords{Operator: "aa", Replication: "bb"}
	secret := objects.AuthSecret(cluster(), passwords)
	golden(t, "auth-secret", secret)
	if got, want := string(secret.Data["primaryauth.conf"]), "primaryauth \"bb\"\n"; got != want {
		t.Errorf("primaryauth.conf is %q, want %q", got, want)
	}
	got, err := objects.PasswordsOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	if got != passwords {
		t.Error("the Secret doesn't give back the passwords")
	}
}

func TestAnAuthSecretWithoutAPasswordIsNamed(t *testing.T) {
	for _, key := range []string{objects.AuthKeyOperator, objects.AuthKeyReplication} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-operator-auth"},
			Data:       map[string][]byte{objects.AuthKeyOperator: []byte("a"), objects.AuthKeyReplication: []byte("b")},
		}
		delete(secret.Data, key)
		_, err := objects.PasswordsOf(secret)
		if err == nil || !strings.Contains(err.Error(), "n/c-operator-auth") || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", key, err)
		}
	}
}
