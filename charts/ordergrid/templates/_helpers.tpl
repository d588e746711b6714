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

{{/* testLabels are not the selector's: no Service leads to what tests the installation. */}}
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
rules are the operator's rights. It creates and changes what grids and probes consist of; it deletes nothing, which is
left to the garbage collector, but evicts a pod that runs an older template; and reads no Secret.
*/}}
{{- define "ordergrid.rules" -}}
- apiGroups: [ordergrid.dev]
  resources: [ordergrids, orderprobes, failoverdrills]
  verbs: [get, list, watch]
- apiGroups: [ordergrid.dev]
  resources: [ordergrids/status, orderprobes/status, failoverdrills/status]
  verbs: [patch]
# Where the API server enforces it, only this allows to name a grid as an owner that blocks its own deletion.
- apiGroups: [ordergrid.dev]
  resources: [ordergrids/finalizers, orderprobes/finalizers, failoverdrills/finalizers]
  verbs: [update]
# The finalizer that keeps a drill until nothing of it is in place. Not among the rights of drills: those may go first, with
# their namespace.
- apiGroups: [ordergrid.dev]
  resources: [failoverdrills]
  verbs: [patch]
- apiGroups: [ordergrid.dev]
  resources: [gridpartitions]
  verbs: [get, list, watch, create, patch]
# Never used by the operator itself: it may grant the pods of a shard only what it holds.
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
# Asked for, by name, only while a pod of a grid with spec.fabric is not on its network: to say that it does not exist.
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [get]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
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
# What belongs to a shard that is removed from a running grid, and Services that spec.externalAccess no longer asks for; of a grid that is deleted the garbage collector takes it.
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [delete]
- apiGroups: [apps]
  resources: [statefulsets]
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

{{/* preflight gives "yes" when the operator is to look at Kubernetes nodes; auto is where it has rights in the whole cluster anyway. */}}
{{- define "ordergrid.preflight" -}}
{{- if or (eq .Values.preflight "always") (and (eq .Values.preflight "auto") (not .Values.watchNamespaces)) -}}yes{{- end -}}
{{- end -}}

{{/*
certificateRules are what spec.security.tls takes, in the namespaces of certificates.namespaces and nowhere else. Neither
list nor watch: the operator reads Secrets by the names it gave them, or that spec gives.
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
drillRules are what drills need beyond that, in the namespaces of drills.namespaces and nowhere else.
*/}}
{{- define "ordergrid.drillRules" -}}
# RollingUpdate: an annotation in spec.podTemplate, which replaces every pod as any change of it does. (HandOver patches a
# GridPartition, which the operator may anyway.)
- apiGroups: [ordergrid.dev]
  resources: [ordergrids]
  verbs: [patch]
# PodDelete: the planned end of a pod, without the disruption budget that an eviction asks.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# The token of a recorder. It is never read: the operator makes it anew from its own key.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
# The Jobs that find out what a node's kernel can do are removed once they have.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [delete]
# Faults: made, looked at, found again by their labels, taken back.
- apiGroups: [chaos-mesh.org]
  resources: [podchaos, networkchaos, stresschaos, timechaos, iochaos]
  verbs: [get, list, create, delete]
# A fault that a kernel cannot do would keep Chaos Mesh trying for ever: its part is taken out of the work list of the pod.
- apiGroups: [chaos-mesh.org]
  resources: [podnetworkchaos, podiochaos]
  verbs: [get, update]
{{- end -}}

{{/* drillEverywhere is "yes" when drills may run in every namespace of the cluster. */}}
{{- define "ordergrid.drillEverywhere" -}}
{{- if and (has "*" .Values.drills.namespaces) (not .Values.watchNamespaces) -}}yes{{- end -}}
{{- end -}}

{{/*
install takes a list: the context, one of auto, always and never, and an API such as monitoring.coreos.com/v1/PodMonitor. It
gives "yes" when objects of that API are to be rendered; auto is when the cluster has it.
*/}}
{{- define "ordergrid.install" -}}
{{- $root := index . 0 -}}{{- $when := index . 1 -}}{{- $api := index . 2 -}}
{{- if or (eq $when "always") (and (eq $when "auto") ($root.Capabilities.APIVersions.Has $api)) -}}yes{{- end -}}
{{- end -}}

{{/* monitorLabels are on everything that Prometheus has to find. */}}
{{- define "ordergrid.monitorLabels" -}}
{{ include "ordergrid.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* scrapeProtocols says how every endpoint is scraped: protobuf first, the only form that has native histograms. */}}
{{- define "ordergrid.scrapeProtocols" -}}
scrapeProtocols: [PrometheusProto, OpenMetricsText1.0.0, OpenMetricsText0.0.1, PrometheusText0.0.4]
{{- end -}}

{{/* gridNamespaces are where grids and probes may be. */}}
{{- define "ordergrid.gridNamespaces" -}}
namespaceSelector:
  {{- if .Values.watchNamespaces }}
  matchNames: {{- toYaml .Values.watchNamespaces | nindent 4 }}
  {{- else }}
  any: true
  {{- end }}
{{- end -}}
