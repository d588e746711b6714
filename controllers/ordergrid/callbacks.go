package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

const (
	functionsVolume = "functions"
	functionsDir    = "/etc/ordergrid/functions"
	flagFunction    = "--function-pre"
	flagPost        = "--function-post"
	flagCompute     = "--function-compute"
	flagStamp       = "--function-stamp"
	pageKiB         = 64

	// Keys of the ConfigMap with the copy of a function's files.
	keyModule = "module.wasm"
	keyConfig = "config"
)

// given is what the pods of a grid are given of spec.callbacks. It is kept in a ConfigMap of the grid, so that a pod is
// not started without a function because its GridFunction was changed to something invalid, or deleted.
type given struct {
	Functions []givenFunction `json:"functions"` // by kind, in the order of spec.callbacks
	Stamp     int32           `json:"stamp,omitempty"`
}

// givenFunction is a GridFunction as it was when it was Valid.
type givenFunction struct {
	Kind         api.FunctionKind `json:"kind"`
	Name         string           `json:"name"`
	Files        string           `json:"files"` // names the ConfigMap with the copy of its files
	SHA256       string           `json:"sha256"`
	ConfigSHA256 string           `json:"configSHA256,omitempty"`
	Fuel         int32            `json:"fuel"`
	MemoryPages  int32            `json:"memoryPages"`
	Tags         []int32          `json:"tags,omitempty"`
	OnError      string           `json:"onError,omitempty"`
}

func (g *given) find(kind api.FunctionKind, name string) *givenFunction {
	for i := range g.Functions {
		if f := &g.Functions[i]; f.Kind == kind && f.Name == name {
			return f
		}
	}
	return nil
}

// path of its module without the extension. A function of another kind may have the same name, and none has a point
// in it.
func (f *givenFunction) path() string {
	switch f.Kind {
	case api.FunctionPost:
		return f.Name + ".post"
	case api.FunctionCompute:
		return f.Name + ".compute"
	}
	return f.Name
}

// args name the functions with their digests: a node refuses to start with others, so a pod that runs with these
// arguments has loaded these functions.
func (g *given) args() (args []string) {
	for i := range g.Functions {
		f := &g.Functions[i]
		flag, text := flagFunction, fmt.Sprintf("%s=%s/%s.wasm:sha256=%s,fuel=%d,memory=%dKi", f.Name, functionsDir, f.path(), f.SHA256, f.Fuel, f.MemoryPages*pageKiB)
		switch f.Kind {
		case api.FunctionPost:
			flag = flagPost
		case api.FunctionCompute:
			flag = flagCompute
		default:
			text += ",onError=" + f.OnError
		}
		if len(f.Tags) > 0 {
			text += ",tags=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Tags), " ", "+"), "[]")
		}
		if f.ConfigSHA256 != "" {
			text += fmt.Sprintf(",config=%s/%s.conf,configSHA256=%s", functionsDir, f.path(), f.ConfigSHA256)
		}
		args = append(args, flag, text)
	}
	if g.Stamp != 0 {
		args = append(args, flagStamp, fmt.Sprint(g.Stamp))
	}
	return args
}

// volume has the modules and configurations as NAME.wasm and NAME.conf, of kind Post as NAME.post.wasm and NAME.post.conf,
// of kind Compute as NAME.compute.wasm and NAME.compute.conf.
func (g *given) volume(grid string) corev1.Volume {
	var sources []corev1.VolumeProjection
	for i := range g.Functions {
		f := &g.Functions[i]
		items := []corev1.KeyToPath{{Key: keyModule, Path: f.path() + ".wasm"}}
		if f.ConfigSHA256 != "" {
			items = append(items, corev1.KeyToPath{Key: keyConfig, Path: f.path() + ".conf"})
		}
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: api.FunctionConfigMap(grid, f.Files)}, Items: items,
		}})
	}
	return corev1.Volume{Name: functionsVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

// addTo gives the functions to the pod of a shard.
func (g *given) addTo(grid string, template *corev1.PodTemplateSpec) {
	if g == nil || len(g.Functions) == 0 {
		return
	}
	c := &template.Spec.Containers[0]
	c.Args = append(c.Args, g.args()...)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: functionsVolume, MountPath: functionsDir, ReadOnly: true})
	template.Spec.Volumes = append(template.Spec.Volumes, g.volume(grid))
}

// runsWith reports whether the node of a pod has started, with these arguments among its own and no others of functions.
func runsWith(p *corev1.Pod, want []string) bool {
	started := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == containerName && c.Started != nil && *c.Started && c.State.Running != nil
	})
	return started && hasArgs(p, want)
}

// hasArgs reports whether these are the arguments of a pod that are about functions.
func hasArgs(p *corev1.Pod, want []string) bool {
	return slices.Equal(functionArgsOf(&p.Spec), want)
}

// functionArgsOf are the arguments of a grid node that are about functions: each flag with its value.
func functionArgsOf(spec *corev1.PodSpec) (found []string) {
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == containerName })
	if at < 0 {
		return nil
	}
	args := spec.Containers[at].Args
	for i := 0; i+1 < len(args); i++ {
		if arg := args[i]; arg == flagFunction || arg == flagPost || arg == flagCompute || arg == flagStamp {
			found = append(found, arg, args[i+1])
			i++
		}
	}
	return found
}
