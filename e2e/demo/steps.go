package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/manifests"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const (
	clusterName = "demo"
	namespace   = "default"
	tlsSecret   = "demo-tls"
	clientPod   = "valkey-demo-client"
	wait        = "--timeout=5m"
)

// install applies the manager's manifests as they are in the checkout, but for
// the image that was just built.
func (d *demo) install(ctx context.Context) error {
	d.headline("The manager")
	file := "deploy/install.yaml"
	image := os.Getenv("MANAGER_IMAGE")
	build := image
	if d.target.local {
		image = d.image
		archive, err := os.ReadFile(d.archive)
		if err != nil {
			return fmt.Errorf("read the manager's image: %w; make image builds it", err)
		}
		sum := sha256.Sum256(archive)
		build = hex.EncodeToString(sum[:8])
	}
	if image != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the installation: %w", err)
		}
		if text, err = manifests.Manager(text, image, build); err != nil {
			return err
		}
		if file, err = d.write("install.yaml", text); err != nil {
			return err
		}
		d.say("%s is deploy/install.yaml with the manager's image %s.", file, image)
	}
	if err := d.shell.show(ctx, "kubectl", "apply", "-f", file); err != nil {
		return err
	}
	return d.shell.show(ctx, "kubectl", "rollout", "status", "deployment/valkey-operator", "-n", "valkey-operator", wait)
}

// publish applies the starter menu; on the local Kubernetes with the Valkey that
// its nodes hold.
func (d *demo) publish(ctx context.Context) error {
	d.headline("The menu of the platform team")
	file := "deploy/starter.yaml"
	if d.target.local {
		image, err := valkeyImage(ctx, d.shell)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the starter menu: %w", err)
		}
		if text, err = manifests.Menu(text, image.Ref, image.Version); err != nil {
			return err
		}
		if file, err = d.write("starter.yaml", text); err != nil {
			return err
		}
		d.say("%s is deploy/starter.yaml with the image that these nodes hold, %s.", file, image.Ref)
	}
	if err := d.shell.show(ctx, "kubectl", "apply", "-f", file); err != nil {
		return err
	}
	return d.shell.show(ctx, "kubectl", "get", "valkeyimages,valkeyconfigs,valkeyroles")
}

// create makes the cluster, or waits for the one of an earlier run, and shows it.
func (d *demo) create(ctx context.Context) error {
	d.headline("A cluster of a product team, encrypted")
	existing, err := d.shell.capture(ctx, "kubectl", "get", "valkeycluster", clusterName, "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.metadata.name}/{.spec.tls.secretRef}")
	if err != nil {
		return err
	}
	switch strings.TrimSpace(existing) {
	case "":
		if err := d.certificate(ctx); err != nil {
			return err
		}
		err = d.shell.show(ctx, "kubectl", "valkey", "create", clusterName, "--config", "standard", "--shards", "3", "--replicas", "1", "--tls-secret", tlsSecret, "--wait")
	case clusterName + "/":
		return fmt.Errorf("cluster %s is there from an earlier run and has no TLS, which can't be added: delete it first: kubectl delete valkeycluster %[1]s", clusterName)
	default:
		d.say("Cluster %s is there from an earlier run and is kept. To see it created again, delete it first:\nkubectl delete valkeycluster %[1]s", clusterName)
		err = d.shell.show(ctx, "kubectl", "wait", "--for=jsonpath={.status.state}=Active", "valkeycluster/"+clusterName, wait)
	}
	if err != nil {
		return err
	}
	return d.shell.show(ctx, "kubectl", "valkey", "status", clusterName)
}

// certificate makes one for development; in earnest it comes from cert-manager.
func (d *demo) certificate(ctx context.Context) error {
	existing, err := d.shell.capture(ctx, "kubectl", "get", "secret", tlsSecret, "-n", namespace, "--ignore-not-found", "-o", "name")
	if err != nil || strings.TrimSpace(existing) != "" {
		return err
	}
	return d.shell.show(ctx, "kubectl", "valkey", "certificate", clusterName, "--self-signed", "--apply")
}

// verify proves what was promised, from this machine.
func (d *demo) verify(ctx context.Context) error {
	d.headline("The proof that it is encrypted")
	return d.shell.show(ctx, "kubectl", "valkey", "verify-tls", clusterName)
}

// use writes and reads keys from a pod beside the cluster, as an application
// would: through the Service, following redirects.
func (d *demo) use(ctx context.Context) error {
	d.headline("An application's view")
	image, names, err := d.members(ctx)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(client(image))
	if err != nil {
		return fmt.Errorf("write the client's pod: %w", err)
	}
	file, err := d.write("client.yaml", text)
	if err != nil {
		return err
	}
	// Of an interrupted run.
	if _, err := d.shell.capture(ctx, "kubectl", "delete", "pod", clientPod, "-n", namespace, "--ignore-not-found", "--wait=true"); err != nil {
		return err
	}
	d.say("%s is a pod that pipes %d SET and GET commands into: %s", file, 2*keyCount, connect())
	if err := d.shell.show(ctx, "kubectl", "apply", "-f", file); err != nil {
		return err
	}
	defer d.shell.capture(context.WithoutCancel(ctx), "kubectl", "delete", "pod", clientPod, "-n", namespace, "--wait=false") //nolint:errcheck // a leftover is deleted by the next run
	if err := d.shell.show(ctx, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+clientPod, "-n", namespace, "--timeout=1m"); err != nil {
		logs, _ := d.shell.capture(ctx, "kubectl", "logs", clientPod, "-n", namespace, "--tail=5")
		return fmt.Errorf("%w; the client said: %s", err, strings.TrimSpace(logs))
	}
	replies, err := d.shell.capture(ctx, "kubectl", "logs", clientPod, "-n", namespace)
	if err != nil {
		return err
	}
	answers, err := parse(replies)
	if err != nil {
		return fmt.Errorf("use the cluster: %w", err)
	}
	fmt.Fprintln(d.shell.out)
	report(d.shell.out, answers, names)
	d.primary = answers[0].node
	return nil
}

// members returns the servers' image, and their pods' names by the servers' IDs.
func (d *demo) members(ctx context.Context) (image string, names map[string]string, err error) {
	out, err := d.shell.capture(ctx, "kubectl", "get", "valkeynodes", "-n", namespace, "-o", "json")
	if err != nil {
		return "", nil, err
	}
	var nodes v1alpha1.ValkeyNodeList
	if err := json.Unmarshal([]byte(out), &nodes); err != nil {
		return "", nil, fmt.Errorf("read the list of nodes: %w", err)
	}
	names = map[string]string{}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.ClusterName == clusterName {
			image = node.Spec.Image
			names[node.Status.NodeID] = node.Name
		}
	}
	if image == "" {
		return "", nil, fmt.Errorf("cluster %s has no nodes", clusterName)
	}
	return image, names, nil
}
