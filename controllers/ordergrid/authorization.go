package ordergrid

import (
	"context"
	"encoding/json"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

// Path of the rules in a grid node. The kubelet replaces the file when the ConfigMap changes.
const (
	rulesVolume = "authorization"
	rulesDir    = "/etc/ordergrid/authorization"
	rulesKey    = "rules.json"
)

// enforced is spec.security.authorization where mode is Enforce.
func enforced(grid *api.OrderGrid) *api.AuthorizationSpec {
	if a := grid.Spec.Security.Authorization; a != nil && a.Mode == api.AuthorizationEnforce {
		return a
	}
	return nil
}

// authorizationArgs are the flags of a grid node that authorizes clients.
func authorizationArgs(grid *api.OrderGrid) []string {
	a := enforced(grid)
	if a == nil {
		return nil
	}
	return []string{"--authorization", path.Join(rulesDir, rulesKey), "--token-audience", a.TokenAudience}
}

// rulesVolumeOf is the volume of a grid node.
func rulesVolumeOf(grid *api.OrderGrid) corev1.Volume {
	return corev1.Volume{Name: rulesVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: api.AuthorizationConfigMap(grid.Name)},
		DefaultMode:          ptr.To[int32](0o444),
	}}}
}

// rules of the nodes: those of the grid, those for the operator's own tools, and those for the sinks and gateways it runs.
func rules(grid *api.OrderGrid, gateways ...gatewayRights) access.Document {
	a := enforced(grid)
	doc := access.Document{Rules: []access.Rule{{
		Subjects:    []access.Subject{{Kind: string(api.SubjectUser), Name: access.Tools}},
		Permissions: []string{string(api.PermissionSubmit), string(api.PermissionRead), string(api.PermissionAdmin), string(api.PermissionWatch), string(api.PermissionSink)},
	}}}
	for _, s := range grid.SinksWithPods() {
		doc.Rules = append(doc.Rules, access.Rule{
			Subjects:    []access.Subject{{Kind: string(api.SubjectUser), Name: api.SinkUser(s.Name)}},
			Permissions: []string{string(api.PermissionWatch), string(api.PermissionSink)},
		})
	}
	for _, g := range gateways {
		doc.Rules = append(doc.Rules, access.Rule{Subjects: []access.Subject{{Kind: string(api.SubjectUser), Name: api.GatewayUser(g.name)}}, Permissions: g.permissions})
	}
	for _, rule := range a.Rules {
		var r access.Rule
		for _, s := range rule.Subjects {
			r.Subjects = append(r.Subjects, access.Subject{Kind: string(s.Kind), Name: s.Name, Namespace: s.Namespace})
		}
		for _, p := range rule.Permissions {
			r.Permissions = append(r.Permissions, string(p))
		}
		doc.Rules = append(doc.Rules, r)
	}
	return doc
}

// authorization is the ConfigMap that the nodes mount.
func authorization(grid *api.OrderGrid, gateways ...gatewayRights) (*corev1.ConfigMap, error) {
	doc := rules(grid, gateways...)
	if _, err := access.Compile(&doc); err != nil {
		return nil, err // the nodes would refuse it
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: gridMeta(grid, api.AuthorizationConfigMap(grid.Name)), Data: map[string]string{rulesKey: string(text) + "\n"}}, nil
}

// applyAuthorization runs before the pods that mount it are created. When authorization is disabled it stays: pods that
// have not been replaced yet still mount it, and it is deleted with the grid.
func (r *run) applyAuthorization(ctx context.Context) error {
	if enforced(r.grid) == nil {
		return nil
	}
	gateways, err := r.gatewayRights(ctx)
	if err != nil {
		return err
	}
	object, err := authorization(r.grid, gateways...)
	if err != nil {
		return err
	}
	_, err = r.applier.Apply(ctx, r.grid, object)
	return err
}
