# syntax=docker/dockerfile:1

# Releases are built with 1.27.3 or later: older standard libraries have known faults that an HTTP server can be
# driven into, among them those of 1.26 before 1.26.10. go.mod asks for less, so that users of the source can choose.
ARG GO_VERSION=1.27.3

# The builder runs on the machine's own architecture and cross-compiles: no emulation, no cgo.
FROM --platform=${BUILDPLATFORM:-linux/amd64} golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
# The modules are a layer of their own, fetched again only when go.mod or go.sum changes.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
ARG REVISION=unknown
# -trimpath and no VCS stamp: the same commit gives the same bytes in every checkout. The version comes from the build
# arguments because .git is not sent to the builder.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${REVISION}" -o /out/rolltap .
# scratch has no mkdir. Both folders are written by user 65532: the store, and the spool files of large bodies.
RUN mkdir -p /out/folders/rollouts /out/folders/tmp && chmod 0750 /out/folders/rollouts && chmod 1777 /out/folders/tmp

FROM scratch
# An https upstream is verified against these; scratch brings none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Copied as contents of a folder, because only then every builder keeps their modes.
COPY --from=build --chown=65532:65532 /out/folders/ /
COPY --from=build /out/rolltap /rolltap

# A name in place of the number would need /etc/passwd, and Kubernetes' runAsNonRoot can only check a number.
USER 65532:65532
ENV ROLLTAP_STORE=/rollouts
# With a read-only root file system (as the manifests have it) the store must be a volume. It is one already here,
# owned as above, for whoever runs the image without saying so; its folder on a cluster is the mount's.
VOLUME /rollouts
# 8080: the clients' side, 9464: probes and metrics.
EXPOSE 8080 9464
# The drain starts at SIGTERM; `docker stop` waits 10 s by default, less than --drain-timeout: stop with -t 40.
STOPSIGNAL SIGTERM
# A list and no shell: signals reach the program itself.
ENTRYPOINT ["/rolltap"]
CMD ["serve"]

# Last, so that a new date or revision reuses every layer above. The URLs are the publisher's to give.
ARG VERSION=devel
ARG REVISION=unknown
ARG CREATED=""
ARG SOURCE_URL=""
ARG DOCUMENTATION_URL=""
ARG VENDOR="The rolltap authors"
LABEL org.opencontainers.image.title="rolltap" \
      org.opencontainers.image.description="Recording reverse proxy sidecar for LLM agents in front of vLLM" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE_URL}" \
      org.opencontainers.image.url="${SOURCE_URL}" \
      org.opencontainers.image.documentation="${DOCUMENTATION_URL}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="${VENDOR}"
