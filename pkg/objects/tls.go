package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// contentDigits of a SHA-256 tell one version of a file from the next.
const contentDigits = 16

// TLSMaterial is what nodes load: PEM, checked before it gets here.
type TLSMaterial struct {
	CA, Certificate, Key []byte
}

// TLSFiles are the names, within TLSDir, of the three files that belong together.
type TLSFiles struct {
	CA, Certificate, Key string
}

// Files names the files of the material. Each name holds a hash of the content,
// so that a server that accepts the names proves that it has read the content:
// one path for all times could still show the file before.
func (m TLSMaterial) Files() TLSFiles {
	return TLSFiles{
		CA:          "ca-" + contentHash(m.CA) + ".crt",
		Certificate: "tls-" + contentHash(m.Certificate) + ".crt",
		Key:         "tls-" + contentHash(m.Key) + ".key",
	}
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:contentDigits]
}

// TLSCurrentFile is the key of the copy that names the three files that belong
// together, one a line: CA, certificate, key.
const TLSCurrentFile = "current"

// TLSSecret is the manager's checked copy of the TLS Secret. Its type is Opaque,
// because kubernetes.io/tls fixes the names of the files.
func TLSSecret(cluster *v1alpha1.ValkeyCluster, material TLSMaterial) *corev1.Secret {
	files := material.Files()
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: clusterMeta(cluster, TLSSecretName(cluster.Name), Labels(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			TLSCurrentFile:    []byte(files.CA + "\n" + files.Certificate + "\n" + files.Key + "\n"),
			files.CA:          material.CA,
			files.Certificate: material.Certificate,
			files.Key:         material.Key,
		},
	}
}

// TLSData is the content of a copy that replaces another: the new files, and beside
// them the current ones of the copy before. A pod whose valkey.conf was rendered a
// moment ago names those, and would not start without them.
func TLSData(material TLSMaterial, before *corev1.Secret) map[string][]byte {
	data := TLSSecret(&v1alpha1.ValkeyCluster{}, material).Data
	files, err := TLSFilesOf(before)
	if err != nil {
		return data
	}
	for _, name := range files.names() {
		if _, taken := data[name]; !taken {
			data[name] = before.Data[name]
		}
	}
	return data
}

func (f TLSFiles) names() []string { return []string{f.CA, f.Certificate, f.Key} }

// TLSFilesOf finds the current files in the manager's copy. It fails unless all
// three are there.
func TLSFilesOf(secret *corev1.Secret) (TLSFiles, error) {
	lines := strings.Fields(string(secret.Data[TLSCurrentFile]))
	if len(lines) != 3 {
		return TLSFiles{}, fmt.Errorf("secret %s/%s does not name its three files under %s: delete it, and it is made again",
			secret.Namespace, secret.Name, TLSCurrentFile)
	}
	files := TLSFiles{CA: lines[0], Certificate: lines[1], Key: lines[2]}
	for _, name := range files.names() {
		if len(secret.Data[name]) == 0 {
			return TLSFiles{}, fmt.Errorf("secret %s/%s lacks its file %s: delete it, and it is made again", secret.Namespace, secret.Name, name)
		}
	}
	return files, nil
}

// TLSMaterialOf reads the current material of the manager's copy. It fails when a
// file holds something else than its name says.
func TLSMaterialOf(secret *corev1.Secret) (TLSMaterial, error) {
	files, err := TLSFilesOf(secret)
	if err != nil {
		return TLSMaterial{}, err
	}
	material := TLSMaterial{CA: secret.Data[files.CA], Certificate: secret.Data[files.Certificate], Key: secret.Data[files.Key]}
	if material.Files() != files {
		return TLSMaterial{}, fmt.Errorf("secret %s/%s was changed by hand: delete it, and it is made again", secret.Namespace, secret.Name)
	}
	return material, nil
}
