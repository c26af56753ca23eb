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
{{- if dig "uni_grpc" "enabled" false $config -}}
{{- $_ := set $set "uni_grpc" (dict "port" (int $ports.uniGrpc)) -}}
{{- end -}}
{{- if .Values.snapshotClaim -}}
{{- if ne $engine "memory" -}}
{{- fail "snapshotClaim is for the memory engine: an engine in Redis keeps its histories by itself" -}}
{{- end -}}
{{- $_ := set $set "engine" (dict "memory" (dict "snapshot_path" "/var/lib/fanwire/snapshot")) -}}
{{- end -}}
{{- mergeOverwrite $config $set | toYaml -}}
{{- end -}}

{{/* http or https: how the internal port is asked. Where http_server.internal_tls is off, it has the TLS of clients' port. */}}
{{- define "fanwire.internalScheme" -}}
{{- $http := default dict .Values.config.http_server -}}
{{- $own := dig "internal_tls" "enabled" false $http -}}
{{- $shared := and (or (dig "tls" "enabled" false $http) (dig "tls_autocert" "enabled" false $http)) (not (dig "tls_external" false $http)) -}}
{{- ternary "https" "http" (not (not (or $own $shared))) -}}
{{- end -}}

{{/* http or https: how clients come. */}}
{{- define "fanwire.externalScheme" -}}
{{- $http := default dict .Values.config.http_server -}}
{{- $tls := or (dig "tls" "enabled" false $http) (dig "tls_autocert" "enabled" false $http) -}}
{{- ternary "https" "http" (not (not $tls)) -}}
{{- end -}}

{{/* What a probe does, for a path: it cannot answer the questions for a certificate of a client and for the PROXY protocol. */}}
{{- define "fanwire.probe" -}}
{{- $http := default dict .root.Values.config.http_server -}}
{{- $scheme := include "fanwire.internalScheme" .root -}}
{{- $section := ternary "internal_tls" "tls" (not (not (dig "internal_tls" "enabled" false $http))) -}}
{{- $asks := and (eq $scheme "https") (dig $section "client_ca_pem" "" $http) -}}
{{- if or $asks (dig "proxy_protocol" false $http) -}}
tcpSocket: { port: internal }
{{- else -}}
httpGet: { path: {{ .path }}, port: internal{{ if eq $scheme "https" }}, scheme: HTTPS{{ end }} }
{{- end -}}
{{- end -}}

{{/* An Ingress of the values `key`, to the port of a Service. */}}
{{- define "fanwire.ingress" -}}
{{- $ingress := index .root.Values .key -}}
{{- $service := .service -}}
{{- $port := .port -}}
{{- if not $ingress.hosts }}
{{- fail (printf "%s.hosts is empty: name the host of the clients" .key) }}
{{- end -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $service }}
  labels: {{- include "fanwire.labels" .root | nindent 4 }}
  {{- with $ingress.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with $ingress.tls }}
  tls: {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range $ingress.hosts }}
    {{- $host := . }}
    {{- if kindIs "string" . }}{{ $host = dict "host" . }}{{ end }}
    - {{ if $host.host }}host: {{ $host.host | quote }}
      {{ end }}http:
        paths:
          {{- range default (list "/") $host.paths }}
          - path: {{ . | quote }}
            pathType: {{ $ingress.pathType }}
            backend:
              service:
                name: {{ $service }}
                port: { name: {{ $port }} }
          {{- end }}
    {{- end }}
{{- end -}}
