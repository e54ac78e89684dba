package app

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

const deployed = "../../configs/deploy"

// dockerfile returns the instructions of the Dockerfile, with continued lines joined.
func dockerfile(t *testing.T) (out [][2]string) {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(apptest.ReadText(t, filepath.Join(deployed, "Dockerfile")), "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		if word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" {
			out = append(out, [2]string{word, rest})
		}
	}
	return out
}

// words decodes the exec form of an instruction.
func words(t *testing.T, text string) (out []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// asDeployed starts a server by a command line of configs/deploy or of the compose file, on free
// ports and with files of this machine, and expects these paths to answer, at the port of probes
// where it has one. It returns the ports that the line names.
func asDeployed(t *testing.T, args []string, paths ...string) (ports []string) {
	t.Helper()
	model, store, token := scaledFile(t, 3), filepath.Join(t.TempDir(), "store"), apptest.Write(t, "token", "0123456789abcdef0123\n")
	if err := os.Chmod(token, 0o600); err != nil {
		t.Fatal(err)
	}
	apptest.Succeed(t, "models", "publish", model, "--name", "policy", "--store", store)
	cert, key, _ := certificate(t)
	public := regexp.MustCompile(`^0\.0\.0\.0:(\d+)$`)
	line := slices.Clone(args)
	for i, a := range line {
		switch m := public.FindStringSubmatch(a); {
		case m != nil:
			ports, line[i] = append(ports, m[1]), "127.0.0.1:0"
		case a == "/store":
			line[i] = store
		case a == "{{.Name}}=/mnt/models/model.onnx":
			line[i] = "policy=" + model
		case a == "/tls/tls.crt":
			line[i] = cert
		case a == "/tls/tls.key":
			line[i] = key
		case a == "/tls/ca.crt":
			line[i] = newAuthority(t, "clients").file
		case a == "/run/secrets/onnxrl_token":
			line[i] = token
		case i > 0 && line[i-1] == "--shutdown-delay":
			line[i] = "0s"
		case strings.Contains(a, "/"):
			t.Errorf("%q: a path that this test does not know", a)
		}
	}
	r := apptest.StartServer(t, apptest.Program(t, append(line, "--json")...))
	if len(r.First.Models) != 1 || r.First.Models[0].Name != "policy" || r.First.Models[0].State != "READY" {
		t.Errorf("%v: started with %+v\n%s", args, r.First, r.Log)
	}
	for _, p := range paths {
		resp, err := http.Get("http://" + cmp.Or(r.First.Health, r.First.HTTP) + p)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%v: GET %s: %s, %v", args, p, resp.Status, err)
		}
	}
	return ports
}

// The image is made of pinned ones with the Go of go.mod, has no root, and its server answers where
// its health check asks and on the ports that it exposes.
func TestDockerfile(t *testing.T) {
	last := map[string]string{}
	var from []string
	for _, i := range dockerfile(t) {
		last[i[0]] = i[1]
		switch i[0] {
		case "FROM":
			from = append(from, i[1])
		case "COPY":
			f := strings.Fields(i[1])
			for _, name := range f[:len(f)-1] {
				if strings.HasPrefix(f[0], "--from=") {
					continue
				}
				if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
					t.Errorf("COPY %s: %v", i[1], err)
				}
			}
		case "RUN", "WORKDIR", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD":
		default:
			t.Errorf("%s: an instruction that this test does not know", i[0])
		}
	}
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(apptest.ReadText(t, "../../go.mod"))[1]
	if len(from) != 2 || from[0] != "golang:"+version+"-bookworm AS build" || !regexp.MustCompile(`^debian:12\.\d+-slim$`).MatchString(from[1]) {
		t.Errorf("images %q, expected Go %s on Debian 12, and Debian 12", from, version)
	}
	if user, _, _ := strings.Cut(last["USER"], ":"); !regexp.MustCompile(`^[1-9]\d*$`).MatchString(user) {
		t.Errorf("user %q: expected a number, for runAsNonRoot, and not root", last["USER"])
	}
	if got := words(t, last["ENTRYPOINT"]); !slices.Equal(got, []string{"onnxrl"}) {
		t.Errorf("entry point %v", got)
	}
	_, check, _ := strings.Cut(last["HEALTHCHECK"], "CMD ")
	asked := words(t, check)
	port, path, ok := strings.Cut(strings.TrimPrefix(asked[len(asked)-1], "http://127.0.0.1:"), "/")
	ports := asDeployed(t, words(t, last["CMD"]), "/"+path)
	if !ok || asked[0] != "curl" || len(ports) != 2 || port != ports[0] || last["EXPOSE"] != strings.Join(ports, " ") {
		t.Errorf("exposed %s, asked %v, listens on %v", last["EXPOSE"], asked, ports)
	}
}

// The server of the compose file answers on the ports that are published, in the image of the
// Dockerfile.
func TestComposeServes(t *testing.T) {
	const dir = "../../configs/observability"
	var c struct {
		Services map[string]struct {
			Command []string
			Ports   []string
			Build   struct{ Context, Dockerfile string }
		}
	}
	if err := yaml.Unmarshal([]byte(apptest.ReadText(t, filepath.Join(dir, "compose.yaml"))), &c); err != nil {
		t.Fatal(err)
	}
	s := c.Services["serve"]
	var want []string
	for _, p := range asDeployed(t, s.Command, "/v2/health/ready") {
		want = append(want, "127.0.0.1:"+p+":"+p)
	}
	if len(want) != 2 || !slices.Equal(s.Ports, want) {
		t.Errorf("ports %v, expected %v", s.Ports, want)
	}
	if _, err := os.Stat(filepath.Join(dir, s.Build.Context, s.Build.Dockerfile)); err != nil || filepath.Base(s.Build.Dockerfile) != "Dockerfile" {
		t.Errorf("%+v: %v", s.Build, err)
	}
}

// The keys that KServe's and Kubernetes' definitions have, as far as the manifests use them: others
// are refused, as kubectl apply does.
type (
	kubeObject[Spec any] struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name string
		}
		Spec Spec
	}
	servingRuntimeSpec struct {
		Annotations           map[string]string
		SupportedModelFormats []struct {
			Name, Version string
			AutoSelect    bool `yaml:"autoSelect"`
		} `yaml:"supportedModelFormats"`
		ProtocolVersions []string `yaml:"protocolVersions"`
		Containers       []container
		Volumes          []volume
	}
	container struct {
		Name, Image string
		Args        []string
		Ports       []struct {
			Name, Protocol string
			ContainerPort  int `yaml:"containerPort"`
		}
		StartupProbe    probe `yaml:"startupProbe"`
		ReadinessProbe  probe `yaml:"readinessProbe"`
		LivenessProbe   probe `yaml:"livenessProbe"`
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			RunAsNonRoot             bool `yaml:"runAsNonRoot"`
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
			SeccompProfile           struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	volume struct {
		Name                  string
		EmptyDir              struct{} `yaml:"emptyDir"`
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"persistentVolumeClaim"`
		Secret struct {
			SecretName string `yaml:"secretName"`
		}
	}
	deploymentSpec struct {
		Replicas int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels, Annotations map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []container
				Volumes                       []volume
			}
		}
	}
	serviceSpec struct {
		Selector map[string]string
		Ports    []struct {
			Name string
			Port int
		}
	}
	probe struct {
		HTTPGet struct {
			Path string
			Port int
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	inferenceServiceSpec struct {
		Predictor struct {
			MinReplicas int `yaml:"minReplicas"`
			Model       struct {
				ModelFormat     struct{ Name, Version string } `yaml:"modelFormat"`
				Runtime         string
				ProtocolVersion string `yaml:"protocolVersion"`
				StorageURI      string `yaml:"storageUri"`
			}
		}
	}
)

// checkContained expects that a container may do no more than it needs.
func checkContained(t *testing.T, c container) {
	t.Helper()
	if sc := c.SecurityContext; !sc.RunAsNonRoot || sc.AllowPrivilegeEscalation || !sc.ReadOnlyRootFilesystem || !slices.Equal(sc.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("security %+v", sc)
	}
}

// The manifest for a cluster without KServe has the keys of Kubernetes' definitions: the server,
// whose clients show certificates, answers probes and Prometheus on a port of its own, which the
// service does not have.
func TestKubernetes(t *testing.T) {
	parts := strings.Split(apptest.ReadText(t, filepath.Join(deployed, "kubernetes.yaml")), "\n---\n")
	if len(parts) != 2 {
		t.Fatalf("%d documents", len(parts))
	}
	var d kubeObject[deploymentSpec]
	var s kubeObject[serviceSpec]
	for i, into := range []any{&d, &s} {
		if err := yaml.UnmarshalWithOptions([]byte(parts[i]), into, yaml.Strict()); err != nil {
			t.Fatal(err)
		}
	}
	p := d.Spec.Template
	if d.APIVersion != "apps/v1" || d.Kind != "Deployment" || s.APIVersion != "v1" || s.Kind != "Service" || len(p.Spec.Containers) != 1 || !maps.Equal(d.Spec.Selector.MatchLabels, p.Metadata.Labels) || !maps.Equal(s.Spec.Selector, p.Metadata.Labels) {
		t.Fatalf("%+v, %+v", d, s)
	}
	c := p.Spec.Containers[0]
	checkContained(t, c)
	ports := asDeployed(t, c.Args, c.StartupProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, p.Metadata.Annotations["prometheus.io/path"])
	if len(ports) != 3 || len(c.Ports) != 3 || len(s.Spec.Ports) != 2 {
		t.Fatalf("listens on %v, the container on %v, the service on %v", ports, c.Ports, s.Spec.Ports)
	}
	for i, port := range c.Ports {
		if ports[i] != strconv.Itoa(port.ContainerPort) || i < 2 && (s.Spec.Ports[i].Port != port.ContainerPort || s.Spec.Ports[i].Name != port.Name) {
			t.Errorf("port %+v, but the server listens on %v, and the service on %v", port, ports, s.Spec.Ports)
		}
	}
	for _, q := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if strconv.Itoa(q.HTTPGet.Port) != ports[2] || p.Metadata.Annotations["prometheus.io/port"] != ports[2] {
			t.Errorf("%+v asks on another port than %s", q, ports[2])
		}
	}
	if len(c.VolumeMounts) != len(p.Spec.Volumes) {
		t.Errorf("mounts %+v of volumes %+v", c.VolumeMounts, p.Spec.Volumes)
	}
	for i, m := range c.VolumeMounts {
		if m.Name != p.Spec.Volumes[i].Name {
			t.Errorf("mount %+v of volume %+v", m, p.Spec.Volumes[i])
		}
	}
}

// KServe's manifests have the keys of its definitions and fit each other, and the server of the
// runtime answers its probes on the port of its container.
func TestKServe(t *testing.T) {
	read := func(name string, into any) {
		t.Helper()
		if err := yaml.UnmarshalWithOptions([]byte(apptest.ReadText(t, filepath.Join(deployed, name))), into, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var r kubeObject[servingRuntimeSpec]
	read("kserve-runtime.yaml", &r)
	var s kubeObject[inferenceServiceSpec]
	read("kserve-service.yaml", &s)
	if r.APIVersion != "serving.kserve.io/v1alpha1" || r.Kind != "ServingRuntime" || s.APIVersion != "serving.kserve.io/v1beta1" || s.Kind != "InferenceService" {
		t.Errorf("%s %s, %s %s", r.APIVersion, r.Kind, s.APIVersion, s.Kind)
	}
	m := s.Spec.Predictor.Model
	if s.Metadata.Name == "" || m.Runtime != r.Metadata.Name || len(r.Spec.SupportedModelFormats) != 1 || m.ModelFormat.Name != r.Spec.SupportedModelFormats[0].Name ||
		m.ModelFormat.Version != r.Spec.SupportedModelFormats[0].Version || !slices.Contains(r.Spec.ProtocolVersions, m.ProtocolVersion) || !strings.HasPrefix(m.StorageURI, "pvc://") {
		t.Errorf("the service %+v does not fit the runtime %+v", m, r.Spec.SupportedModelFormats)
	}
	if len(r.Spec.Containers) != 1 {
		t.Fatalf("%d containers", len(r.Spec.Containers))
	}
	c := r.Spec.Containers[0]
	// KServe gives that name its model and its service, and takes http1 or h2c for one port.
	if c.Name != "kserve-container" || len(c.Ports) != 1 || c.Ports[0].Name != "http1" || !strings.Contains(c.Image, ":") || strings.HasSuffix(c.Image, ":latest") {
		t.Errorf("container %s of %s with ports %v", c.Name, c.Image, c.Ports)
	}
	ports := asDeployed(t, c.Args, c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, r.Spec.Annotations["prometheus.kserve.io/path"])
	for _, p := range []int{c.Ports[0].ContainerPort, c.ReadinessProbe.HTTPGet.Port, c.LivenessProbe.HTTPGet.Port} {
		if len(ports) != 1 || ports[0] != strconv.Itoa(p) {
			t.Errorf("port %d, but the server listens on %v", p, ports)
		}
	}
	if r.Spec.Annotations["prometheus.kserve.io/port"] != ports[0] {
		t.Errorf("Prometheus asks on port %s", r.Spec.Annotations["prometheus.kserve.io/port"])
	}
	checkContained(t, c)
	if len(c.VolumeMounts) != 1 || len(r.Spec.Volumes) != 1 || c.VolumeMounts[0].Name != r.Spec.Volumes[0].Name || c.VolumeMounts[0].MountPath != "/tmp" {
		t.Errorf("mounts %+v of volumes %+v", c.VolumeMounts, r.Spec.Volumes)
	}
	misspelt := strings.Replace(apptest.ReadText(t, filepath.Join(deployed, "kserve-runtime.yaml")), "containerPort", "containerport", 1)
	if err := yaml.UnmarshalWithOptions([]byte(misspelt), &r, yaml.Strict()); err == nil || !strings.Contains(err.Error(), "containerport") {
		t.Errorf("a key that is none: %v", err)
	}
}
