#!/usr/bin/env bash
# Builds what a release publishes: static binaries for linux/amd64 and linux/arm64 with a bill of materials each and one file of
# checksums, with the Go release of the Dockerfile, after govulncheck has found nothing that the program reaches, in its modules or
# in that release's standard library. The same commit gives the same bytes; --twice proves it. Works from any folder.
#
#   deploy/release.sh [--twice] [FOLDER]   default: dist
#
#   ROLLTAP_CACHE   where tools and the database are kept; default: ~/.cache/rolltap/ci
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
twice=''
if [ "${1:-}" = --twice ]; then twice=1; shift; fi
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
cd "$repo"
# shellcheck source=version.sh
source deploy/version.sh
GOTOOLCHAIN=go$(sed -n 's/^ARG GO_VERSION=//p' Dockerfile)
export GOTOOLCHAIN CGO_ENABLED=0

# The stage is red for findings in modules; those in the standard library are notices there, since it is whatever Go builds.
if ! found=$(.ci/run vuln) || grep -q '^notice' <<<"$found"; then
  echo "$found" >&2
  echo "not released" >&2
  exit 1
fi
echo "govulncheck, with $GOTOOLCHAIN: nothing that this program reaches"

build() { # build FOLDER
  local arch
  for arch in amd64 arm64; do
    GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=$version -X main.commit=$revision" -o "$1/rolltap-linux-$arch" .
    deploy/sbom.sh "$1/rolltap-linux-$arch" "$1/rolltap-linux-$arch.cdx.json"
  done
  (cd "$1" && sha256sum rolltap-linux-{amd64,arm64}{,.cdx.json} >SHA256SUMS)
}

build "$out"
if [ -n "$twice" ]; then
  again=$(mktemp -d)
  trap 'rm -rf "$again"' EXIT
  GOCACHE="$again/cache" build "$again"
  cmp "$out/SHA256SUMS" "$again/SHA256SUMS" && echo "a second build, with nothing reused, has the same bytes"
fi
echo "$version ($revision), $(go env GOVERSION)"
cat "$out/SHA256SUMS"
