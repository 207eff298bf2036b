package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig for the pair's user.
func (a *Authority) WriteKubeconfig(path, server string, user Pair) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["kubectl-valkey"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.certPEM}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.Cert, ClientKeyData: user.Key}
	config.Contexts["kubectl-valkey"] = &clientcmdapi.Context{Cluster: "kubectl-valkey", AuthInfo: "user"}
	config.CurrentContext = "kubectl-valkey"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
