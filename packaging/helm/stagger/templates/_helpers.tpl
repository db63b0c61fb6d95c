{{- define "stagger.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stagger.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stagger.labels" -}}
{{ include "stagger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stagger.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "stagger.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "stagger.secret" -}}
{{- if .Values.secrets.name -}}
{{- .Values.secrets.name -}}
{{- else if hasKey .Values.secrets.files "tokens" -}}
{{- include "stagger.name" . -}}
{{- else -}}
{{- fail "the hub listens for other machines, which needs tokens: set secrets.name to a Secret with the key `tokens`, or secrets.files.tokens (stagger token new)" -}}
{{- end -}}
{{- end -}}

{{- /* What the chart sets, and over it what the user's settings say. */ -}}
{{- define "stagger.settings" -}}
{{- $listen := dict "address" (printf "0.0.0.0:%d" 8080) "tokens" "tokens" -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $listen "tls" (dict "certificate" "tls/tls.crt" "key" "tls/tls.key") -}}
{{- end -}}
{{- $settings := dict "listen" $listen "drain" (printf "%ds" (int .Values.drainSeconds)) -}}
{{- if eq .Values.mode "kafka" -}}
{{- $kafka := dict "brokers" .Values.kafka.brokers "topics" .Values.kafka.topics "group" .Values.kafka.group -}}
{{- if .Values.kafka.options -}}
{{- $_ := set $kafka "options" .Values.kafka.options -}}
{{- end -}}
{{- $_ := set $settings "source" "kafka" -}}
{{- $_ := set $settings "kafka" $kafka -}}
{{- $_ := set $settings "store" (dict "path" .Values.postgres.url) -}}
{{- else -}}
{{- $_ := set $settings "store" (dict "path" "/var/lib/stagger/stagger.db" "quota" .Values.quota) -}}
{{- end -}}
{{- mergeOverwrite $settings (deepCopy .Values.settings) | toYaml -}}
{{- end -}}

{{- /* The pod of both kinds; `volume` is where /var/lib/stagger comes from. */ -}}
{{- define "stagger.pod" -}}
metadata:
  labels:
    {{- include "stagger.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/settings: {{ include "stagger.settings" . | sha256sum }}
    {{- if not .Values.secrets.name }}
    checksum/secrets: {{ .Values.secrets.files | toJson | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "stagger.account" . }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ add .Values.preStopSeconds .Values.drainSeconds 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: hub
      image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [hub, -c, /etc/stagger/stagger.yaml]
      {{- if or .Values.env (eq .Values.mode "kafka") }}
      env:
        {{- if and (eq .Values.mode "kafka") .Values.postgres.passwordSecret.name }}
        - name: PGPASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ .Values.postgres.passwordSecret.name }}
              key: {{ .Values.postgres.passwordSecret.key }}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8080
      startupProbe:
        {{- include "stagger.probe" (list . "/healthz") | nindent 8 }}
        periodSeconds: 5
        failureThreshold: 180
      livenessProbe:
        {{- include "stagger.probe" (list . "/healthz") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "stagger.probe" (list . "/readyz") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 3
      lifecycle:
        preStop:
          exec:
            command: [sleep, {{ .Values.preStopSeconds | toString | quote }}]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: settings
          mountPath: /etc/stagger
          readOnly: true
        - name: data
          mountPath: /var/lib/stagger
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: settings
      projected:
        defaultMode: 0440
        sources:
          - configMap:
              name: {{ include "stagger.name" . }}
          - secret:
              name: {{ include "stagger.secret" . }}
          {{- with .Values.tls.secretName }}
          - secret:
              name: {{ . }}
              items:
                - key: tls.crt
                  path: tls/tls.crt
                - key: tls.key
                  path: tls/tls.key
          {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if eq .Values.mode "kafka" }}
    - name: data
      emptyDir: {}
    {{- end }}
{{- end -}}

{{- define "stagger.probe" -}}
{{- $values := (index . 0).Values -}}
httpGet:
  path: {{ index . 1 }}
  port: http
  {{- if $values.tls.secretName }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
