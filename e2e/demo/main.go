// Command demo does the product's main job before a person's eyes: it installs
// the manager on a Kubernetes, publishes the starter menu, creates an encrypted
// cluster with the plugin, shows it, uses it, and verifies its TLS. Every command is
// shown before it runs. It runs from the root of the checkout, as make demo does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Where the adapted manifests are written, so that the commands shown are the
// commands run.
const outDir = "dist/demo"

func main() {
	image := flag.String("image", "", "image of the manager that the archive holds")
	archive := flag.String("image-archive", "dist/manager-image.tar", "archive of the manager's image, for the local Kubernetes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{
		shell:   &shell{out: os.Stdout, err: os.Stderr},
		named:   os.Getenv("USE_KUBECONFIG"),
		image:   *image,
		archive: *archive,
	}
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; make down stops the local Kubernetes")
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

type demo struct {
	shell *shell
	// named is the kubeconfig of USE_KUBECONFIG, empty for the local Kubernetes.
	named string
	// image of the manager, and the archive that holds it.
	image, archive string
	target         target
	// primary is a pod that answered for keys.
	primary string
}

func (d *demo) run(ctx context.Context) error {
	start := time.Now()
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the demo's manifests: %w", err)
	}
	d.headline("A Kubernetes")
	var err error
	if d.target, err = findTarget(ctx, d.shell, d.named, d.archive); err != nil {
		return err
	}
	if err := d.shell.show(ctx, "kubectl", "get", "nodes", "-L", "topology.kubernetes.io/zone"); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.install, d.publish, d.create, d.use, d.verify} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.next(time.Since(start))
	return nil
}

func (d *demo) headline(text string) { fmt.Fprintf(d.shell.out, "\n=== %s\n", text) }

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.shell.out, "\n"+format+"\n", args...)
}

// write puts a manifest where the next command finds it.
func (d *demo) write(name string, text []byte) (string, error) {
	path := filepath.Join(outDir, name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	return path, nil
}

// next says what to try, with all that it needs to be typed as it stands.
func (d *demo) next(took time.Duration) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		bin = "bin"
	}
	path := bin
	if d.target.kubectlDir != "" {
		path += ":" + d.target.kubectlDir
	}
	d.headline(fmt.Sprintf("Done in %s. What to try next", took.Round(time.Second)))
	fmt.Fprintf(d.shell.out, `
  export KUBECONFIG=%s PATH=%s:$PATH

  kubectl valkey status %[3]s -w           # watch it, and then, in another terminal:
  kubectl delete pod %[4]s            # a primary; its replica takes over, and a new node joins
  kubectl scale valkeycluster %[3]s --replicas 4   # shards: slots move with their keys
  kubectl valkey certificate %[3]s --self-signed --apply --overwrite && kubectl valkey verify-tls %[3]s --wait
  kubectl valkey create cache --config small --shards 6 --replicas 0 --wait
  kubectl valkey create wrong --config standrad --shards 3 --replicas 1
  kubectl get valkey -A
  kubectl delete valkeycluster %[3]s
`, d.target.kubeconfig, path, clusterName, d.primary)
	if d.target.local {
		fmt.Fprint(d.shell.out, "\n  make down                              # stop this Kubernetes and remove it\n\n  Its logs (/var/log/kubectl-valkey) and the cache of built parts stay.\n")
	} else {
		fmt.Fprint(d.shell.out, "\n  kubectl delete -f deploy/install.yaml  # remove the manager, the kinds and every cluster\n")
	}
}
