package ordergrid

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/controllers/allow"
)

// A user who may create an OrderGrid need not be allowed to create pods. Additions of spec.podTemplate to the pod that
// the operator builds must therefore not exceed a pod of the Restricted Pod Security Standard that mounts no Secret and
// no claim, has the default priority and is placed by the scheduler. An administrator allows more, by namespace; see
// ADR 30.

// podFeatures are what an administrator can allow, each with the form after the slash that allows it in part.
var podFeatures = map[string]string{
	"Capability":            "NAME",
	"HostIPC":               "",
	"HostNetwork":           "",
	"HostPID":               "",
	"HostPath":              "PATH",
	"HostPort":              "PORT",
	"HostProbe":             "HOST",
	"NodeName":              "NAME",
	"PersistentVolumeClaim": "NAME",
	"PriorityClass":         "NAME",
	"PrivilegeEscalation":   "",
	"Privileged":            "",
	"Root":                  "",
	"Secret":                "NAME",
	"SecurityProfile":       "",
	"Sysctl":                "NAME",
	"Volume":                "TYPE",
}

// CheckPodFeature validates an entry of what spec.podTemplate may have.
func CheckPodFeature(entry string) error {
	feature, value, partly := strings.Cut(entry, "/")
	switch of, known := podFeatures[feature]; {
	case !known:
		return fmt.Errorf("%q is unknown; allowed are %s", feature, strings.Join(podFeatureForms(), ", "))
	case partly && (of == "" || value == ""):
		return fmt.Errorf("%q is not %s", entry, podFeatureForm(feature))
	case feature == "HostPath" && partly && path.Clean(value) != value:
		return fmt.Errorf("%q is not a clean path; use %q", value, path.Clean(value))
	}
	return nil
}

func podFeatureForm(feature string) string {
	if of := podFeatures[feature]; of != "" {
		return feature + " or " + feature + "/" + of
	}
	return feature
}

func podFeatureForms() (forms []string) {
	for feature := range podFeatures {
		forms = append(forms, podFeatureForm(feature))
	}
	slices.Sort(forms)
	return forms
}

// privilege is a field of a pod template beyond a restricted pod.
type privilege struct {
	field, feature, value string
}

func (p privilege) String() string {
	return fmt.Sprintf("spec.podTemplate%s: %q needs %s", p.field, p.value, p.feature)
}

// in reports whether the privilege is among what is allowed. A path allows everything below it.
func (p privilege) in(allowed []string) bool {
	return slices.ContainsFunc(allowed, func(entry string) bool {
		feature, value, partly := strings.Cut(entry, "/")
		switch {
		case feature != p.feature:
			return false
		case !partly || value == p.value:
			return true
		}
		return feature == "HostPath" && strings.HasPrefix(path.Clean(p.value)+"/", strings.TrimSuffix(value, "/")+"/")
	})
}

// LimitError names the fields of spec.podTemplate that an administrator would have to allow.
type LimitError struct {
	namespace  string
	allowed    allow.List
	privileges []privilege
}

func (e *LimitError) Error() string {
	const few = 4
	list := make([]string, 0, few)
	for _, p := range e.privileges[:min(few, len(e.privileges))] {
		list = append(list, p.String())
	}
	more := ""
	if n := len(e.privileges) - few; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf("%s%s (%s). Remove it, or have an administrator add it to the value podTemplates.allow of the operator's chart, for namespace %s",
		strings.Join(list, "; "), more, e.allowed.Sentence(e.namespace), e.namespace)
}

// checkLimits checks the additions of the overlay against what an administrator allows; nil: all are allowed. The
// operator's own parts are exempt: host ports of spec.externalAccess, the grid's own Secrets.
func checkLimits(namespace string, allowed allow.List, built, result *corev1.PodTemplateSpec) *LimitError {
	own, in := privilegesOf(built), allowed.In(namespace)
	added := slices.DeleteFunc(privilegesOf(result), func(p privilege) bool { return slices.Contains(own, p) || p.in(in) })
	if len(added) == 0 {
		return nil
	}
	return &LimitError{namespace, allowed, added}
}

// keepTemplates keeps a grid running whose template is refused: its StatefulSets keep their templates, and pods are
// recreated from them. A grid without any has nothing to keep.
func (r *run) keepTemplates(refused error) error {
	r.templates = make([]corev1.PodTemplateSpec, r.grid.Spec.Shards)
	for shard := range r.templates {
		if set := r.setOf(int32(shard)); set != nil {
			r.templates[shard] = set.Spec.Template
		}
	}
	if !r.built(0) {
		return refused
	}
	r.notAllowed = refused
	return nil
}

// built reports whether there is a template for the shard: one that is added while spec.podTemplate is refused has
// none.
func (r *run) built(shard int32) bool { return len(r.templates[shard].Spec.Containers) > 0 }
