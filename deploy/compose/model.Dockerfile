# The demo model of compose.yaml. Its context is the repository's root, its builder that of the Dockerfile there.
ARG GO_VERSION=1.27.3
FROM --platform=${BUILDPLATFORM:-linux/amd64} golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/model ./deploy/model

FROM scratch
COPY --from=build /out/model /model
USER 65532:65532
EXPOSE 8000
ENTRYPOINT ["/model"]
