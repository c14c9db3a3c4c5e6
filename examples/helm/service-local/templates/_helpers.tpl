{{- define "service-local.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Labels that never change during the life of a release. Takes root and component. */ -}}
{{- define "service-local.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "service-local.labels" -}}
{{ include "service-local.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- define "service-local.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "service-local.publicUrl" -}}
{{- if .Values.server.publicUrl -}}
{{ .Values.server.publicUrl }}
{{- else if .Values.ingress.enabled -}}
{{ ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.host }}
{{- end -}}
{{- end -}}

{{- /* Helm reads whole numbers from files as floats, and would write large ones as 7.776e+06. */ -}}
{{- define "service-local.text" -}}
{{- if not (kindIs "float64" .) -}}
{{ . }}
{{- else if eq . (floor .) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{- /* Port of the collector; empty without one. */ -}}
{{- define "service-local.telemetryPort" -}}
{{- with .Values.telemetry.endpoint -}}
{{- $url := urlParse . -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
{{- end -}}

{{- define "service-local.exchanges" -}}
{{ toYaml .Values.exchanges }}
{{- end -}}

{{- define "service-local.knowledge" -}}
{{ toYaml .Values.knowledge }}
{{- end -}}

{{- define "service-local.notifications" -}}
{{ toYaml .Values.notifications }}
{{- end -}}

{{- define "service-local.clusters" -}}
{{- $clusters := deepCopy .Values.clusters -}}
{{- with .Values.deployments -}}
{{- if .enabled -}}
{{- if hasKey $clusters .cluster -}}
{{- fail (printf "clusters: %s is what deployments.cluster calls this cluster" .cluster) -}}
{{- end -}}
{{- $service := printf "http://%s.%s.svc:%d" (include "service-local.fullname" $) $.Release.Namespace (int $.Values.service.port) -}}
{{- $here := dict "in_cluster" true "owner" .owner "namespace" (first .namespaces) "image" (include "service-local.image" $) "control_url" (.controlUrl | default $service) -}}
{{- with $.Values.telemetry.endpoint -}}
{{- $_ := set $here "otlp_endpoint" . -}}
{{- end -}}
{{- if .storageClass -}}
{{- $_ := set $here "storage_class" .storageClass -}}
{{- end -}}
{{- $_ := set $clusters .cluster $here -}}
{{- end -}}
{{- end -}}
{{ toYaml $clusters }}
{{- end -}}

{{- /* Common metadata of the pods of servers and workers. Takes root, component and values. */ -}}
{{- define "service-local.podMetadata" -}}
labels:
  {{- include "service-local.labels" . | nindent 2 }}
annotations:
  # Pods read the files once, when they start.
  checksum/files: {{ printf "%s\n---\n%s\n---\n%s\n---\n%s" (include "service-local.exchanges" .root) (include "service-local.knowledge" .root) (include "service-local.notifications" .root) (include "service-local.clusters" .root) | sha256sum }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "service-local.podSpec" -}}
serviceAccountName: {{ include "service-local.fullname" .root }}
automountServiceAccountToken: {{ and .root.Values.deployments.enabled (ne .component "archive") }}
# Variables of Services look like settings.
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
# What is under way is finished or given back: 10 seconds at most for requests, and a step of a
# session or of the database for tasks.
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "service-local.selectorLabels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "service-local.container" -}}
image: {{ include "service-local.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "service-local.env" -}}
- name: HOME
  value: /tmp
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
- name: SERVICE_LOCAL_HOME
  value: /var/lib/service-local
- name: SERVICE_LOCAL_CATALOGUE_DIR
  value: /var/lib/service-local/catalogue
- name: SERVICE_LOCAL_EVENT_ARCHIVE_DIR
  value: /var/lib/service-local/event-archive
- name: SERVICE_LOCAL_EXCHANGES_FILE
  value: /etc/service-local/files/exchanges.yaml
- name: SERVICE_LOCAL_KNOWLEDGE_FILE
  value: /etc/service-local/files/knowledge.yaml
- name: SERVICE_LOCAL_NOTIFICATIONS_FILE
  value: /etc/service-local/files/notifications.yaml
- name: SERVICE_LOCAL_CLUSTERS_FILE
  value: /etc/service-local/files/clusters.yaml
{{- if .Values.license.existingSecret }}
- name: SERVICE_LICENSE_LEASE_PATH
  value: /etc/service-local/license/lease
- name: SERVICE_LICENSE_PUBLIC_KEY_PATH
  value: /etc/service-local/license/public_key
{{- end }}
{{- with .Values.license.root }}
- name: SERVICE_LICENSE_ROOT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.telemetry }}
{{- if .endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
{{- if .headersSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecret }}
      key: {{ .headersKey }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: SERVICE_LOCAL_{{ upper $name }}
  value: {{ include "service-local.text" $value | quote }}
{{- end }}
{{- end -}}

{{- /* Takes root, and whether the catalogue and the archive are writable. */ -}}
{{- define "service-local.volumeMounts" -}}
- name: home
  mountPath: /var/lib/service-local
- name: tmp
  mountPath: /tmp
- name: files
  mountPath: /etc/service-local/files
  readOnly: true
{{- with .root.Values }}
{{- if .catalogue.existingClaim }}
- name: catalogue
  mountPath: /var/lib/service-local/catalogue
  readOnly: {{ not $.isDataWritten }}
{{- end }}
{{- if .archive.existingClaim }}
- name: archive
  mountPath: /var/lib/service-local/event-archive
  readOnly: {{ not $.isDataWritten }}
{{- end }}
{{- if .database.caSecret }}
- name: database
  mountPath: /etc/service-local/database
  readOnly: true
{{- end }}
{{- if .license.existingSecret }}
- name: license
  mountPath: /etc/service-local/license
  readOnly: true
{{- end }}
{{- if .kubeconfigs.existingSecret }}
- name: kubeconfigs
  mountPath: /etc/service-local/kubeconfigs
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{- define "service-local.volumes" -}}
- name: home
  emptyDir:
    sizeLimit: 1Gi
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
- name: files
  configMap:
    name: {{ include "service-local.fullname" . }}
{{- with .Values }}
{{- if .catalogue.existingClaim }}
- name: catalogue
  persistentVolumeClaim:
    claimName: {{ .catalogue.existingClaim }}
{{- end }}
{{- if .archive.existingClaim }}
- name: archive
  persistentVolumeClaim:
    claimName: {{ .archive.existingClaim }}
{{- end }}
{{- if .database.caSecret }}
- name: database
  {{- include "service-local.secret" .database.caSecret | nindent 2 }}
{{- end }}
{{- if .license.existingSecret }}
- name: license
  {{- include "service-local.secret" .license.existingSecret | nindent 2 }}
{{- end }}
{{- if .kubeconfigs.existingSecret }}
- name: kubeconfigs
  {{- include "service-local.secret" .kubeconfigs.existingSecret | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Readable for the group, which is fsGroup. */ -}}
{{- define "service-local.secret" -}}
secret:
  secretName: {{ . }}
  defaultMode: 0440
{{- end -}}
