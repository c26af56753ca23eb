// The Helm chart of deploy/helm, rendered by Helm's own engine and read with the types of Kubernetes.
// In: values → out: objects without an unknown field, or an error with a remedy.
// May use Helm's and Kubernetes' modules; never a cluster.
// A value that users may set is tested here.
package chart

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

const folder = "../../../../deploy/helm/fanwire"

// redis has what several nodes need.
const redis = "config: {engine: {type: redis, redis: {address: 'redis://redis:6379'}}}\n"

// texts returns the rendered files by name.
func texts(values string) (map[string]string, error) {
	loaded, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "prod", Namespace: "chat", IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	return files, nil
}

// render returns the objects by kind and name, or the error that Helm prints.
func render(values string) (map[string]any, error) {
	files, err := texts(values)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{}
	for file, text := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---\n") {
			if err := add(objects, document); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", file, err, document)
			}
		}
	}
	return objects, nil
}

// add reads one document strictly: a field that Kubernetes does not know is an error.
func add(objects map[string]any, document string) error {
	var head struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.Kind == "" {
		return err
	}
	kinds := map[string]any{
		"ConfigMap": &core.ConfigMap{}, "Service": &core.Service{}, "ServiceAccount": &core.ServiceAccount{},
		"Deployment": &apps.Deployment{}, "Ingress": &networking.Ingress{}, "NetworkPolicy": &networking.NetworkPolicy{},
		"PodDisruptionBudget": &policy.PodDisruptionBudget{}, "HTTPRoute": &gateway.HTTPRoute{},
		"HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{}, "ServiceMonitor": &monitoring.ServiceMonitor{},
	}
	object, known := kinds[head.Kind]
	if !known {
		return fmt.Errorf("kind %q", head.Kind)
	}
	objects[head.Kind+"/"+head.Metadata.Name] = object
	return yaml.UnmarshalStrict([]byte(document), object)
}

func must(t *testing.T, values string) map[string]any {
	t.Helper()
	objects, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func find[T any](t *testing.T, objects map[string]any, name string) T {
	t.Helper()
	object, is := objects[name].(T)
	if !is {
		t.Fatalf("no %s among %d objects", name, len(objects))
	}
	return object
}

func TestDefaultsAreOneNodeThatEndsInTime(t *testing.T) {
	objects := must(t, "")
	if len(objects) != 5 {
		t.Fatalf("%d objects", len(objects))
	}
	pod := find[*apps.Deployment](t, objects, "Deployment/prod-fanwire").Spec.Template.Spec
	if *pod.TerminationGracePeriodSeconds != 5+30+30+10 {
		t.Fatalf("%d s", *pod.TerminationGracePeriodSeconds)
	}
	container := pod.Containers[0]
	if container.Lifecycle.PreStop.Sleep.Seconds != 5 || container.LivenessProbe.HTTPGet.Path != "/health/live" {
		t.Fatalf("%v", container)
	}
	config := find[*core.ConfigMap](t, objects, "ConfigMap/prod-fanwire").Data["fanwire.yaml"]
	for _, part := range []string{"internal_port: \"9000\"", "drain_interval: 30s", "timeout: 30s", "enabled: true"} {
		if !strings.Contains(config, part) {
			t.Fatalf("no %q in\n%s", part, config)
		}
	}
}

func TestEverythingAtOnceHasNoUnknownField(t *testing.T) {
	objects := must(t, redis+`
existingSecret: secrets
shutdown: {preStopSeconds: 0, drainSeconds: 120, timeoutSeconds: 60}
ingress: {enabled: true, className: nginx, hosts: [a.example.com], tls: [{secretName: t, hosts: [a.example.com]}]}
ingressInternal: {enabled: true, className: nginx, hosts: [{host: b.example.com, paths: [/api, /admin]}, {host: ''}], pathType: Exact}
initContainers: [{name: wait, image: busybox}]
httpRoute: {enabled: true, parentRefs: [{name: public}], hostnames: [a.example.com]}
autoscaling: {enabled: true, connectionsPerNode: 20000}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, internalFrom: [{namespaceSelector: {matchLabels: {a: b}}}]}
podLabels: {team: chat}
podAnnotations: {a: b}
extraEnv: [{name: A, value: b}]
extraEnvFrom: [{configMapRef: {name: c}}]
extraVolumes: [{name: keys, secret: {secretName: keys}}]
extraVolumeMounts: [{name: keys, mountPath: /keys}]
tolerations: [{key: a, operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
imagePullSecrets: [{name: registry}]
`)
	if len(objects) != 12 {
		t.Fatalf("%d objects", len(objects))
	}
	deployment := find[*apps.Deployment](t, objects, "Deployment/prod-fanwire")
	if deployment.Spec.Replicas != nil || *deployment.Spec.Template.Spec.TerminationGracePeriodSeconds != 190 {
		t.Fatalf("%v", deployment.Spec)
	}
	if deployment.Spec.Template.Spec.Containers[0].Lifecycle != nil {
		t.Fatal("a hook that waits for nothing")
	}
	monitor := find[*monitoring.ServiceMonitor](t, objects, "ServiceMonitor/prod-fanwire")
	internal := find[*core.Service](t, objects, "Service/prod-fanwire-internal")
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if internal.Labels[key] != value {
			t.Fatalf("the monitor finds no service: %s is %q", key, internal.Labels[key])
		}
	}
	filter := find[*gateway.HTTPRoute](t, objects, "HTTPRoute/prod-fanwire").Spec.Rules[0].Filters[0]
	if filter.RequestHeaderModifier.Remove[0] != "Forwarded" {
		t.Fatal("a client could hide its address")
	}
	if find[*core.Service](t, objects, "Service/prod-fanwire").Labels["fanwire.io/port"] != "" {
		t.Fatal("the port of clients would be scraped")
	}
}

func TestAnIngressHasThePathsOfItsHosts(t *testing.T) {
	paths := func(name string) string {
		text := ""
		objects := must(t, `
ingress: {enabled: true, hosts: [a.example.com, {host: b.example.com, paths: [/connection, /emulation]}]}
ingressInternal: {enabled: true, hosts: [{host: c.example.com, paths: [/api]}]}
`)
		for _, rule := range find[*networking.Ingress](t, objects, name).Spec.Rules {
			for _, path := range rule.HTTP.Paths {
				service := path.Backend.Service
				text += fmt.Sprintf("%s%s -> %s:%s\n", rule.Host, path.Path, service.Name, service.Port.Name)
			}
		}
		return text
	}
	clients := `a.example.com/ -> prod-fanwire:http
b.example.com/connection -> prod-fanwire:http
b.example.com/emulation -> prod-fanwire:http
`
	if found := paths("Ingress/prod-fanwire"); found != clients {
		t.Fatal(found)
	}
	if found := paths("Ingress/prod-fanwire-internal"); found != "c.example.com/api -> prod-fanwire-internal:internal\n" {
		t.Fatal(found)
	}
}

func TestProbesAskAsTheInternalPortAnswers(t *testing.T) {
	for http, want := range map[string]string{
		"{}":                              "HTTP",
		"{tls: {enabled: false}}":         "HTTP",
		"{tls: {enabled: true}}":          "HTTPS",
		"{tls_autocert: {enabled: true}}": "HTTPS",
		"{tls: {enabled: true}, tls_external: true}":                                    "HTTP",
		"{tls: {enabled: true}, tls_external: true, internal_tls: {enabled: true}}":     "HTTPS",
		"{internal_tls: {enabled: true}}":                                               "HTTPS",
		"{tls: {enabled: true, client_ca_pem: /ca.pem}}":                                "connect",
		"{tls: {enabled: true, client_ca_pem: /ca.pem}, tls_external: true}":            "HTTP",
		"{tls: {enabled: true, client_ca_pem: /ca.pem}, internal_tls: {enabled: true}}": "HTTPS",
		"{internal_tls: {enabled: true, client_ca_pem: /ca.pem}}":                       "connect",
		"{proxy_protocol: true, trusted_proxies: [10.0.0.0/8]}":                         "connect",
	} {
		objects := must(t, "config: {http_server: "+http+"}\nserviceMonitor: {enabled: true}\n")
		container := find[*apps.Deployment](t, objects, "Deployment/prod-fanwire").Spec.Template.Spec.Containers[0]
		for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			found := "connect"
			if probe.HTTPGet != nil {
				found = string(probe.HTTPGet.Scheme)
			}
			if found == "" {
				found = "HTTP"
			}
			if found != want || (found == "connect") != (probe.TCPSocket != nil) {
				t.Errorf("%s: %s instead of %s", http, found, want)
			}
		}
		endpoint := find[*monitoring.ServiceMonitor](t, objects, "ServiceMonitor/prod-fanwire").Spec.Endpoints[0]
		if want != "connect" && (endpoint.TLSConfig != nil) != (want == "HTTPS") {
			t.Errorf("%s: the monitor asks by %v", http, endpoint.Scheme)
		}
	}
}

func TestWhatAPodNeedsCanBeReplaced(t *testing.T) {
	objects := must(t, `
command: [centrifugo]
podSecurityContext: {runAsUser: 1000, fsGroup: null}
securityContext: {readOnlyRootFilesystem: false}
livenessProbe: {exec: {command: [fanwire, health, live, --config, /etc/fanwire/fanwire.yaml]}}
readinessProbe: {httpGet: {path: /health, port: 9000}, periodSeconds: 7}
startupProbe: {tcpSocket: {port: internal}}
lifecycle: {preStop: {exec: {command: [/bin/sh, -c, sleep 5]}}}
initContainers: [{name: wait, image: busybox, command: [sh, -c, 'until nc -z redis 6379; do sleep 1; done']}]
config: {uni_grpc: {enabled: true}}
networkPolicy: {enabled: true}
ports: {uniGrpc: 12000}
`)
	pod := find[*apps.Deployment](t, objects, "Deployment/prod-fanwire").Spec.Template.Spec
	container := pod.Containers[0]
	context := pod.SecurityContext
	if *context.RunAsUser != 1000 || *context.RunAsGroup != 65532 || context.FSGroup != nil || !*context.RunAsNonRoot {
		t.Fatalf("%v", context)
	}
	if *container.SecurityContext.ReadOnlyRootFilesystem || *container.SecurityContext.AllowPrivilegeEscalation {
		t.Fatalf("%v", container.SecurityContext)
	}
	if container.Command[0] != "centrifugo" || container.Args[0] != "serve" || pod.InitContainers[0].Name != "wait" {
		t.Fatalf("%v", container)
	}
	if container.LivenessProbe.Exec == nil || container.LivenessProbe.PeriodSeconds != 0 || container.Lifecycle.PreStop.Exec == nil {
		t.Fatalf("%v", container)
	}
	if container.ReadinessProbe.PeriodSeconds != 7 || container.StartupProbe.TCPSocket == nil {
		t.Fatalf("%v", container)
	}
	config := find[*core.ConfigMap](t, objects, "ConfigMap/prod-fanwire").Data["fanwire.yaml"]
	service := find[*core.Service](t, objects, "Service/prod-fanwire").Spec.Ports[1]
	open := find[*networking.NetworkPolicy](t, objects, "NetworkPolicy/prod-fanwire").Spec.Ingress[0].Ports[1]
	if !strings.Contains(config, "port: 12000") || service.Port != 12000 || service.TargetPort != *open.Port {
		t.Fatalf("%s\n%v %v", config, service, open)
	}
}

func TestASnapshotHasAVolumeAndOneNode(t *testing.T) {
	objects, err := render("snapshotClaim: state\n")
	if err != nil {
		t.Fatal(err)
	}
	deployment := objects["Deployment/prod-fanwire"].(*apps.Deployment)
	if found := deployment.Spec.Strategy; found.Type != apps.RecreateDeploymentStrategyType || found.RollingUpdate != nil {
		t.Errorf("two nodes would have one file: %+v", found)
	}
	pod := deployment.Spec.Template.Spec
	volume := pod.Volumes[len(pod.Volumes)-1]
	if volume.PersistentVolumeClaim == nil || volume.PersistentVolumeClaim.ClaimName != "state" {
		t.Errorf("%+v", volume)
	}
	mounts := pod.Containers[0].VolumeMounts
	mount := mounts[len(mounts)-1]
	config := objects["ConfigMap/prod-fanwire"].(*core.ConfigMap).Data["fanwire.yaml"]
	if mount.Name != volume.Name || !strings.Contains(config, "snapshot_path: "+mount.MountPath+"/snapshot") {
		t.Errorf("%+v is not the place of the file in\n%s", mount, config)
	}
	if _, err := render(redis + "snapshotClaim: state\n"); err == nil || !strings.Contains(err.Error(), "snapshotClaim") {
		t.Errorf("Redis needs no file: %v", err)
	}
}

func TestAnotherConfigurationStartsARollout(t *testing.T) {
	sum := func(values string) string {
		deployment := find[*apps.Deployment](t, must(t, values), "Deployment/prod-fanwire")
		return deployment.Spec.Template.Annotations["checksum/config"]
	}
	if sum("config: {client: {insecure: true}}") == sum("") || sum("replicas: 1") != sum("") {
		t.Fatal("the sum of the configuration")
	}
}

// The manifest for those without Helm: two nodes with Redis. It is written with FANWIRE_WRITE=1.
func TestThePlainManifestIsTheChart(t *testing.T) {
	files, err := texts(redis + "replicas: 2\nexistingSecret: fanwire\nfullnameOverride: fanwire\n")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for name := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	text := "# Two nodes with Redis, as the chart in helm/ makes them: kubectl apply --filename kubernetes.yaml; docs/kubernetes.md\n"
	for _, name := range names {
		text += "---\n" + strings.TrimSpace(files[name]) + "\n"
	}
	for _, line := range []string{"managed-by: Helm", "helm.sh/chart"} {
		text = without(text, line)
	}
	const file = "../../../../deploy/kubernetes.yaml"
	if os.Getenv("FANWIRE_WRITE") == "1" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if there, _ := os.ReadFile(file); string(there) != text {
		t.Fatal("deploy/kubernetes.yaml is not what the chart makes: FANWIRE_WRITE=1 go test ./... in tests/interop/go/chart")
	}
}

// without leaves out the lines with a part.
func without(text, part string) string {
	kept := []string{}
	for _, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, part) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestWrongValuesAreErrorsWithARemedy(t *testing.T) {
	for values, part := range map[string]string{
		"replicas: 3":                  "config.engine.type to redis",
		"autoscaling: {enabled: true}": "config.engine.type to redis",
		redis + "autoscaling: {enabled: true, cpuPercent: 0}":               "autoscaling.connectionsPerNode",
		"config: {http_server: {port: 1}}":                                  "use the values ports",
		"config: {shutdown: {timeout: 5s}}":                                 "values ports and shutdown",
		"ingress: {enabled: true}":                                          "ingress.hosts is empty",
		"ingressInternal: {enabled: true}":                                  "ingressInternal.hosts is empty",
		"ingress: {enabled: true, hosts: [{host: a, paths: [connection]}]}": "paths",
		"probes: {}":                    "probes",
		"httpRoute: {enabled: true}":    "httpRoute.parentRefs is empty",
		"replica: 2":                    "replica",
		"replicas: 0":                   "replicas",
		"shutdown: {drainSeconds: 30s}": "drainSeconds",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
