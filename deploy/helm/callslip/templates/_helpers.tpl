{{- define "callslip.labels" -}}
app.kubernetes.io/name: callslip
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "callslip.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "callslip.hosts" -}}
{{- $name := include "callslip.name" . -}}
{{- $inside := printf "%s,%s.%s,%s.%s.svc,%s.%s.svc.cluster.local" $name $name .Release.Namespace $name .Release.Namespace $name .Release.Namespace -}}
{{- if .Values.ingress.enabled }}{{ printf "%s,%s" $inside .Values.ingress.host }}{{ else }}{{ $inside }}{{ end -}}
{{- end }}
