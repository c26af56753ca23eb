{{- define "fanwire.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fanwire.fullname" -}}
{{- $name := include "fanwire.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 54 | trimSuffix "-" -}}
{{- end -}}

{{- define "fanwire.selector" -}}
app.kubernetes.io/name: {{ include "fanwire.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fanwire.labels" -}}
{{ include "fanwire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The most nodes that run at the same time, not counting a rollout. */}}
{{- define "fanwire.nodesMax" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled -}}
{{- end -}}

{{/* The configuration with what the chart sets, as YAML. Fails where nodes would not share messages. */}}
{{- define "fanwire.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $engine := dig "engine" "type" "memory" $config -}}
{{- if and (gt (int (include "fanwire.nodesMax" .)) 1) (eq $engine "memory") -}}
{{- fail "several nodes with the memory engine do not share messages: set config.engine.type to redis with config.engine.redis.address, or replicas to 1 and autoscaling.enabled to false" -}}
{{- end -}}
{{- range tuple "http_server" "health" "prometheus" "shutdown" -}}
{{- if and (hasKey $config .) (ne . "http_server") -}}
{{- fail (printf "config.%s is set by the chart: see the values ports and shutdown" .) -}}
{{- end -}}
{{- end -}}
{{- range tuple "port" "internal_port" "address" "internal_address" -}}
{{- if hasKey (default dict $config.http_server) . -}}
{{- fail (printf "config.http_server.%s is set by the chart: use the values ports" .) -}}
{{- end -}}
{{- end -}}
{{- $ports := .Values.ports -}}
{{- $http := dict "port" (int $ports.external) "internal_port" (int $ports.internal | toString) -}}
{{- $shutdown := dict "timeout" (printf "%ds" (int .Values.shutdown.timeoutSeconds)) -}}
{{- if .Values.shutdown.drainSeconds -}}
{{- $_ := set $shutdown "drain_interval" (printf "%ds" (int .Values.shutdown.drainSeconds)) -}}
{{- end -}}
{{- $set := dict "http_server" $http "health" (dict "enabled" true) "prometheus" (dict "enabled" true) "shutdown" $shutdown -}}
{{- if dig "grpc_api" "enabled" false $config -}}
{{- $_ := set $set "grpc_api" (dict "port" (int $ports.grpc)) -}}
{{- end -}}
{{- mergeOverwrite $config $set | toYaml -}}
{{- end -}}
