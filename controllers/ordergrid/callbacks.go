package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

const (
	functionsVolume = "functions"
	functionsDir    = "/etc/ordergrid/functions"
	flagFunction    = "--function-pre"
	flagPost        = "--function-post"
	flagStamp       = "--function-stamp"
	pageKiB         = 64

	reasonLoaded    = "Loaded"
	reasonNotLoaded = "NotLoaded"
)

// callbackArgs name the functions of spec.callbacks with their digests: a node refuses to start with others, so a pod
// that runs with these arguments has loaded these functions.
func callbackArgs(grid *api.OrderGrid) (args []string) {
	c := grid.Spec.Callbacks
	if c == nil {
		return nil
	}
	for i := range c.Pre {
		f := &c.Pre[i]
		text := fmt.Sprintf("%s=%s/%s.wasm:sha256=%s,fuel=%d,memory=%dKi,onError=%s", f.Name, functionsDir, f.Name, f.Module.SHA256, f.Fuel, f.MemoryPages*pageKiB, f.OnError)
		if len(f.Tags) > 0 {
			text += ",tags=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Tags), " ", "+"), "[]")
		}
		if f.Config != nil {
			text += fmt.Sprintf(",config=%s/%s.conf,configSHA256=%s", functionsDir, f.Name, f.Config.SHA256)
		}
		args = append(args, flagFunction, text)
	}
	for i := range c.Post {
		f := &c.Post[i]
		text := fmt.Sprintf("%s=%s/%s.wasm:sha256=%s,fuel=%d,memory=%dKi", f.Name, functionsDir, postFile(f), f.Module.SHA256, f.Fuel, f.MemoryPages*pageKiB)
		if f.Config != nil {
			text += fmt.Sprintf(",config=%s/%s.conf,configSHA256=%s", functionsDir, postFile(f), f.Config.SHA256)
		}
		args = append(args, flagPost, text)
	}
	if c.StampTag != 0 {
		args = append(args, flagStamp, fmt.Sprint(c.StampTag))
	}
	return args
}

// postFile is how the files of a function are called: a function of pre may have the same name, and none has a point in
// it.
func postFile(f *api.PostCallback) string { return f.Name + ".post" }

// functionVolume has the modules and configurations as NAME.wasm and NAME.conf, or NAME.post.wasm and NAME.post.conf.
func functionVolume(c *api.CallbacksSpec) corev1.Volume {
	var sources []corev1.VolumeProjection
	add := func(f *api.PinnedFile, path string) {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: f.ConfigMapName}, Items: []corev1.KeyToPath{{Key: f.Key, Path: path}},
		}})
	}
	for i := range c.Pre {
		add(&c.Pre[i].Module, c.Pre[i].Name+".wasm")
		if c.Pre[i].Config != nil {
			add(c.Pre[i].Config, c.Pre[i].Name+".conf")
		}
	}
	for i := range c.Post {
		f := &c.Post[i]
		add(&f.Module, postFile(f)+".wasm")
		if f.Config != nil {
			add(f.Config, postFile(f)+".conf")
		}
	}
	return corev1.Volume{Name: functionsVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

// judgeFunctions: every pod runs with the functions of spec.callbacks.
func judgeFunctions(o *observation) judgement {
	want := callbackArgs(o.grid)
	if want == nil {
		return judgement{}
	}
	var names, lacking []string
	for i := range o.grid.Spec.Callbacks.Pre {
		names = append(names, o.grid.Spec.Callbacks.Pre[i].Name)
	}
	for i := range o.grid.Spec.Callbacks.Post {
		names = append(names, o.grid.Spec.Callbacks.Post[i].Name)
	}
	for i := range o.pods {
		if p := &o.pods[i]; !runsWith(p, want) {
			lacking = append(lacking, p.Name)
		}
	}
	if n := len(lacking) + max(0, o.wantPods()-len(o.pods)); n > 0 {
		return judgement{metav1.ConditionFalse, reasonNotLoaded, fmt.Sprintf("%d of %d pods do not run with the functions of spec.callbacks%s%s",
			n, max(o.wantPods(), len(o.pods)), some(lacking), messages.First(o.pods, messages.PodTrouble))}
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, all(len(o.pods), "pod runs", "pods run") + " with the functions " + strings.Join(names, ", ")}
}

// runsWith reports whether the node of a pod has started, with these arguments among its own.
func runsWith(p *corev1.Pod, want []string) bool {
	started := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == containerName && c.Started != nil && *c.Started && c.State.Running != nil
	})
	at := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == containerName })
	if !started || at < 0 {
		return false
	}
	args := p.Spec.Containers[at].Args
	from := slices.IndexFunc(args, isFunctionFlag)
	if from < 0 || len(args) < from+len(want) || !slices.Equal(args[from:from+len(want)], want) {
		return false
	}
	rest := args[from+len(want):]
	return !slices.ContainsFunc(rest, isFunctionFlag)
}

func isFunctionFlag(arg string) bool {
	return arg == flagFunction || arg == flagPost || arg == flagStamp
}
