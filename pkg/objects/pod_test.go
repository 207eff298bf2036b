package objects_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func labelSet(l map[string]string) labels.Set { return l }

func otherShard() objects.NodeInput {
	in := nodeInput()
	in.Name, in.ShardIndex = "my-cluster-ccccc", 11
	return in
}

// featurePods are the pods of every feature set, by golden file.
func featurePods() map[string]*corev1.Pod {
	pod := func(change func(*v1alpha1.ValkeyCluster, *objects.NodeInput, *objects.PodInput)) *corev1.Pod {
		c, in, podIn := cluster(), nodeInput(), objects.PodInput{DefaultZoneSpread: v1alpha1.ZoneSpreadBestEffort}
		change(c, &in, &podIn)
		return objects.Pod(node(c, in), podIn)
	}
	return map[string]*corev1.Pod{
		"pod": pod(func(*v1alpha1.ValkeyCluster, *objects.NodeInput, *objects.PodInput) {}),
		"pod-bare": pod(func(_ *v1alpha1.ValkeyCluster, in *objects.NodeInput, _ *objects.PodInput) {
			in.CPU, in.Memory, in.Settings = nil, nil, nil
		}),
		"pod-tls": pod(func(c *v1alpha1.ValkeyCluster, _ *objects.NodeInput, _ *objects.PodInput) {
			c.Spec.TLS = &v1alpha1.TLS{SecretRef: "user-maintained"}
		}),
		"pod-external": pod(func(c *v1alpha1.ValkeyCluster, in *objects.NodeInput, _ *objects.PodInput) {
			c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
			in.NodeIndex = 2
		}),
		"pod-placed": pod(func(c *v1alpha1.ValkeyCluster, in *objects.NodeInput, podIn *objects.PodInput) {
			c.Spec.Placement = &v1alpha1.Placement{
				Zones:             []string{"zone-a", "zone-b"},
				ZoneSpread:        v1alpha1.ZoneSpreadRequired,
				NodeSelector:      map[string]v1alpha1.NodeLabelValue{"pool": "valkey"},
				Tolerations:       []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
				PriorityClassName: "high",
			}
			in.PreferredZone = "zone-b"
			in.PullSecrets = []string{"registry", "mirror"}
			podIn.Annotations = map[string]string{"example.com/team": "checkout"}
		}),
		"pod-platform-ids": pod(func(_ *v1alpha1.ValkeyCluster, _ *objects.NodeInput, podIn *objects.PodInput) {
			podIn.PlatformIDs = true
		}),
	}
}

func TestPodsOfEveryFeatureSet(t *testing.T) {
	for name, pod := range featurePods() {
		golden(t, name, pod)
	}
}

func TestPodsPassTheRestrictedPodSecurityStandard(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	for name, pod := range featurePods() {
		result := policy.AggregateCheckResults(checks.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			t.Errorf("O-01: %s: %s", name, result.ForbiddenDetail())
		}
		for _, c := range pod.Spec.Containers {
			if !*c.SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("O-01: %s: the root file system of %s is writable", name, c.Name)
			}
		}
	}
}

func TestSecretsAndConfigMapsAreSiblingDirectoriesThatRefresh(t *testing.T) {
	for name, pod := range featurePods() {
		mounts := pod.Spec.Containers[0].VolumeMounts
		for i, m := range mounts {
			if m.SubPath != "" || m.SubPathExpr != "" {
				t.Errorf("L-10: %s: %s is mounted by subPath and would never refresh", name, m.MountPath)
			}
			for j, other := range mounts {
				if i != j && (other.MountPath == m.MountPath || strings.HasPrefix(other.MountPath, m.MountPath+"/")) {
					t.Errorf("%s: %s is inside %s", name, other.MountPath, m.MountPath)
				}
			}
			if writable := m.MountPath == objects.DataDir; m.ReadOnly == writable {
				t.Errorf("%s: %s: read-only is %t", name, m.MountPath, m.ReadOnly)
			}
		}
	}
}

func TestMountedFilesAreReadableByTheServersGroup(t *testing.T) {
	for name, pod := range featurePods() {
		security := pod.Spec.SecurityContext
		platform := name == "pod-platform-ids"
		if platform != (security.FSGroup == nil) || platform != (security.RunAsUser == nil) || platform != (security.RunAsGroup == nil) {
			t.Errorf("L-13: %s: user %v, group %v, fsGroup %v", name, security.RunAsUser, security.RunAsGroup, security.FSGroup)
		}
		for _, v := range pod.Spec.Volumes {
			mode := int32(0o440)
			switch {
			case v.Secret != nil:
				mode = *v.Secret.DefaultMode
			case v.ConfigMap != nil:
				mode = *v.ConfigMap.DefaultMode
			}
			if mode != 0o440 {
				t.Errorf("L-13: %s: volume %s has mode %o", name, v.Name, mode)
			}
		}
	}
}

func TestAPodHoldsNoPasswordButTheReplicationDirective(t *testing.T) {
	for name, pod := range featurePods() {
		for _, v := range pod.Spec.Volumes {
			if v.Secret == nil || v.Secret.SecretName != objects.AuthSecretName("my-cluster") {
				continue
			}
			want := []corev1.KeyToPath{{Key: "primaryauth.conf", Path: "primaryauth.conf"}}
			if diff := cmp.Diff(want, v.Secret.Items); diff != "" {
				t.Errorf("A-09: %s mounts more of the auth Secret than that: %s", name, diff)
			}
		}
		container := pod.Spec.Containers[0]
		for _, env := range container.Env {
			if env.ValueFrom == nil || env.ValueFrom.SecretKeyRef != nil {
				t.Errorf("A-09: %s: variable %s", name, env.Name)
			}
		}
		if len(container.EnvFrom) > 0 || *pod.Spec.AutomountServiceAccountToken || *pod.Spec.EnableServiceLinks {
			t.Errorf("%s is given more than it needs", name)
		}
	}
}

func TestTheServerAnnouncesThePodIPAndRefusesToStartWithoutOne(t *testing.T) {
	for name, pod := range featurePods() {
		container := pod.Spec.Containers[0]
		if diff := cmp.Diff([]string{"valkey-server"}, container.Command); diff != "" {
			t.Errorf("%s: command %s", name, diff)
		}
		// R-03, V-01: the kubelet expands $(POD_IP) only when the variable is
		// defined, and one argument keeps an empty address a syntax error.
		want := []string{"/etc/valkey/conf/valkey.conf", "--cluster-announce-ip $(POD_IP)"}
		if diff := cmp.Diff(want, container.Args); diff != "" {
			t.Errorf("%s: args %s", name, diff)
		}
		if len(container.Env) != 1 || container.Env[0].Name != "POD_IP" || container.Env[0].ValueFrom.FieldRef.FieldPath != "status.podIP" {
			t.Errorf("%s: variables %v", name, container.Env)
		}
	}
}

func TestADeadServerIsEvidenceAndNeverRestartsInPlace(t *testing.T) {
	for name, pod := range featurePods() {
		if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("F-06: %s restarts %s", name, pod.Spec.RestartPolicy)
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil || v.HostPath != nil || v.Ephemeral != nil {
				t.Errorf("F-06: %s: volume %s outlives the pod", name, v.Name)
			}
		}
	}
}

func TestLivenessAsksForAnyReplyAndReadinessIsTheManagers(t *testing.T) {
	for name, pod := range featurePods() {
		container := pod.Spec.Containers[0]
		if container.ReadinessProbe != nil || container.StartupProbe != nil {
			t.Errorf("O-05: %s has a probe besides liveness", name)
		}
		if diff := cmp.Diff([]corev1.PodReadinessGate{{ConditionType: "valkey.gomomento.com/in-sync"}}, pod.Spec.ReadinessGates); diff != "" {
			t.Errorf("%s: readiness gates %s", name, diff)
		}
		probe := container.LivenessProbe
		if tls := name == "pod-tls"; tls != (probe.TCPSocket != nil) || tls != (probe.Exec == nil) {
			t.Errorf("%s: liveness %+v", name, probe.ProbeHandler)
		}
		if tcp := probe.TCPSocket; tcp != nil && (tcp.Host != "" || tcp.Port.IntValue() != 6379) {
			t.Errorf("%s: the kubelet connects to %q, port %s, not to the pod's 6379", name, tcp.Host, tcp.Port.String())
		}
	}
}

func TestExternalAccessThatIsOffChangesNoPod(t *testing.T) {
	want := objects.Pod(node(cluster(), nodeInput()), objects.PodInput{})
	c := cluster()
	c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Domain: "valkey.example.com", ServiceType: corev1.ServiceTypeLoadBalancer}
	if diff := cmp.Diff(want, objects.Pod(node(c, nodeInput()), objects.PodInput{})); diff != "" {
		t.Errorf("externalAccess.enabled: false changes the pod:\n%s", diff)
	}
}
