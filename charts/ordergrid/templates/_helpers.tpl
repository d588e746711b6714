{{/* Names, labels, images and rules that more than one template needs. */}}

{{- define "ordergrid.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ordergrid.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "ordergrid.fullname" .) -}}
{{- end -}}

{{- define "ordergrid.selector" -}}
app.kubernetes.io/name: ordergrid
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* testLabels differ from the selector, so that no Service selects the test pod. */}}
{{- define "ordergrid.testLabels" -}}
app.kubernetes.io/name: ordergrid
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{- define "ordergrid.labels" -}}
{{ include "ordergrid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* image takes a list: the context and an image's name. */}}
{{- define "ordergrid.image" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
{{- $registry := $root.Values.image.registry -}}
{{- $full := ternary (printf "%s/%s" $registry $name) $name (ne $registry "") -}}
{{- if or (contains "@" $name) (contains ":" $name) -}}
{{- $full -}}
{{- else -}}
{{- printf "%s:%s" $full ($root.Values.image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
rules are the operator's permissions. It creates and changes the objects of grids and probes. Deletion is left to the garbage
collector, except below and for pods of an older template, which it evicts. It reads no Secret.
*/}}
{{- define "ordergrid.rules" -}}
- apiGroups: [ordergrid.dev]
  resources: [ordergrids, orderprobes, failoverdrills, gridlinks, ordergateways]
  verbs: [get, list, watch]
- apiGroups: [ordergrid.dev]
  resources: [instrumentsets, gridfunctions, riskprofiles, gridregions]
  verbs: [get, list, watch]
- apiGroups: [ordergrid.dev]
  resources: [ordergrids/status, orderprobes/status, failoverdrills/status, gridlinks/status, ordergateways/status, gridfunctions/status, gridregions/status]
  verbs: [patch]
# For OwnerReferencesPermissionEnforcement: owner references with blockOwnerDeletion.
- apiGroups: [ordergrid.dev]
  resources: [ordergrids/finalizers, orderprobes/finalizers, failoverdrills/finalizers, gridlinks/finalizers, ordergateways/finalizers]
  verbs: [update]
# The runs of an OrderProbe with a schedule, and the removal of the oldest of them.
- apiGroups: [ordergrid.dev]
  resources: [orderprobes]
  verbs: [create, patch, delete]
# The finalizer that keeps a drill until all its faults are recovered. Not in drillRules, which may be removed first, with their
# namespace.
- apiGroups: [ordergrid.dev]
  resources: [failoverdrills]
  verbs: [patch]
- apiGroups: [ordergrid.dev]
  resources: [gridpartitions]
  verbs: [get, list, watch, create, patch]
# Not used by the operator itself: RBAC lets it grant the pods of a shard only permissions that it has.
- apiGroups: [ordergrid.dev]
  resources: [gridpartitions/status]
  verbs: [get, update]
- apiGroups: [""]
  resources: [services, serviceaccounts, configmaps]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# Read by name while a pod of a grid with spec.fabric is not on its network, to report a missing definition.
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [get]
- apiGroups: [apps]
  resources: [statefulsets, deployments]
  verbs: [get, list, watch, create, patch]
# The objects of a sink are owned by its Deployment, and go with it.
- apiGroups: [apps]
  resources: [deployments/finalizers]
  verbs: [update]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch]
# Objects of a shard that is removed from a running grid, and Services that spec.externalAccess no longer requests; those of a
# deleted grid are garbage collected.
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [delete]
# The grid's own copies of modules that none of its pods is given any more.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [delete]
- apiGroups: [apps]
  resources: [statefulsets, deployments]
  verbs: [delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [delete]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* preflight is "yes" if the operator reads Kubernetes nodes; auto is yes if it has cluster-wide permissions anyway. */}}
{{- define "ordergrid.preflight" -}}
{{- if or (eq .Values.preflight "always") (and (eq .Values.preflight "auto") (not .Values.watchNamespaces)) -}}yes{{- end -}}
{{- end -}}

{{/*
certificateRules are the permissions for spec.security.tls, granted in certificates.namespaces only. No list or watch: the operator
reads Secrets by the names it gave them, or that spec gives.
*/}}
{{- define "ordergrid.certificateRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [get, create, patch]
{{- end -}}

{{/*
pullSecretRules are the permissions for imagePullSecrets of GridFunctions, granted in functions.pullSecrets only. No list or watch: the
operator reads the Secrets that spec names.
*/}}
{{- define "ordergrid.pullSecretRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end -}}

{{/*
drillRules are the additional permissions for drills, granted in drills.namespaces only.
*/}}
{{- define "ordergrid.drillRules" -}}
# RollingUpdate: an annotation in spec.podTemplate, which replaces every pod. (HandOver patches a GridPartition, which rules
# above allow.)
- apiGroups: [ordergrid.dev]
  resources: [ordergrids]
  verbs: [patch]
# PodDelete: deletion of a pod, which unlike eviction ignores the disruption budget.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# The token of a recorder. It is never read: the operator derives it from its own key.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
# The Jobs that detect the features of a node's kernel are removed when they are done.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [delete]
# Faults: created, read, listed by their labels, deleted.
- apiGroups: [chaos-mesh.org]
  resources: [podchaos, networkchaos, stresschaos, timechaos, iochaos]
  verbs: [get, list, create, delete]
# Chaos Mesh would retry a fault that a kernel does not support indefinitely: it is removed from the pod's work list.
- apiGroups: [chaos-mesh.org]
  resources: [podnetworkchaos, podiochaos]
  verbs: [get, update]
{{- end -}}

{{/* drillEverywhere is "yes" if drills may run in every namespace of the cluster. */}}
{{- define "ordergrid.drillEverywhere" -}}
{{- if and (has "*" .Values.drills.namespaces) (not .Values.watchNamespaces) -}}yes{{- end -}}
{{- end -}}

{{/*
install takes a list: the context, one of auto, always and never, and an API such as monitoring.coreos.com/v1/PodMonitor. It
is "yes" if objects of that API are to be rendered; auto is yes if the cluster has the API.
*/}}
{{- define "ordergrid.install" -}}
{{- $root := index . 0 -}}{{- $when := index . 1 -}}{{- $api := index . 2 -}}
{{- if or (eq $when "always") (and (eq $when "auto") ($root.Capabilities.APIVersions.Has $api)) -}}yes{{- end -}}
{{- end -}}

{{/* monitorLabels are the labels of all monitors and rules. */}}
{{- define "ordergrid.monitorLabels" -}}
{{ include "ordergrid.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* scrapeProtocols of every endpoint: protobuf first, the only format with native histograms. */}}
{{- define "ordergrid.scrapeProtocols" -}}
scrapeProtocols: [PrometheusProto, OpenMetricsText1.0.0, OpenMetricsText0.0.1, PrometheusText0.0.4]
{{- end -}}

{{/* gridNamespaces selects the namespaces of grids and probes. */}}
{{- define "ordergrid.gridNamespaces" -}}
namespaceSelector:
  {{- if .Values.watchNamespaces }}
  matchNames: {{- toYaml .Values.watchNamespaces | nindent 4 }}
  {{- else }}
  any: true
  {{- end }}
{{- end -}}
